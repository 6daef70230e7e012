"""Importing this module loads reasoning-gym, so that workers are forked with it.

The fork server imports it once. A worker that replaces a killed one then has the
library at once, instead of after the second that importing it takes, and all workers
share what its largest files hold.
"""

from rg_env.items import worker_jobs
from rg_env.tasks import library

worker_jobs.describe_library()
library.build_shared_datasets()
