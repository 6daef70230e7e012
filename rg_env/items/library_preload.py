"""Importing this module loads reasoning-gym, so that workers are forked with it.

The fork server imports it once. A worker that replaces another one then has the library
at once, instead of after the second that importing it takes. The scorers that evaluate
text have their processes replaced often, so what their first call loads is loaded too.
"""

import contextlib

from rg_env.items import worker_jobs
from rg_env.task_rules.table import EVALUATED
from rg_env.tasks import library

worker_jobs.describe_library()
for task in EVALUATED:
    # What is broken is named where the task is tried. Seed 3 makes quick items.
    with contextlib.suppress(Exception):
        entry = next(library.usable_entries(task, {}, range(3, 100)))
        worker_jobs.score_answers(task, {}, entry, [entry["answer"]])
