"""Importing this module loads reasoning-gym, so that workers are forked with it.

The fork server imports it once. A worker that replaces a killed one then has the
library at once, instead of after the second that importing it takes.
"""

from rg_env.items import worker_jobs

worker_jobs.describe_library()
