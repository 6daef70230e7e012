"""Kernels that lack a layer: the pool says so, and works.

They are tested on this one, by having the kernel refuse the layer.
"""

import pytest

from tests.support.worker_attacks import run_script

pytestmark = pytest.mark.processes

REFUSE = """
import contextlib, ctypes, logging, os, struct, sys
from rg_env.library import worker_jobs
from rg_env.workers.sandbox import seccomp, syscalls
from rg_env.workers.worker_pool import WorkerPool

COLUMN = seccomp.MACHINES.index(os.uname().machine)
SECCOMP, LANDLOCK = seccomp.SECCOMP[COLUMN], 444

def refuse(number):
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 38)]
    code += [(0x06, 0, 0, 0x7FFF0000)]
    packed = (struct.pack("=HBBI", *line) for line in code)
    program = ctypes.create_string_buffer(b"".join(packed))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    header = struct.pack("@HP", len(code), ctypes.addressof(program))
    syscalls.call(SECCOMP, 1, 0, header)

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
"""
"""The head of a script that runs where the kernel refuses a layer, as some do."""


@pytest.mark.parametrize(
    ("layer", "kept"), [("LANDLOCK", "seccomp"), ("SECCOMP", "landlock")]
)
def test_missing_layer_is_said_once_and_items_are_still_made(tmp_path, layer, kept):
    source = f"""\
refuse({layer})
with contextlib.closing(WorkerPool(2, preload=worker_jobs.PRELOAD)) as pool:
    for _ in range(3):
        with contextlib.suppress(Exception):
            pool.call(exec, 'import os; os.abort()', deadline_s=60)
    pool.call(worker_jobs.make_entry, 'codeio', {{}}, 1, False, deadline_s=60)
    print(pool.sandbox_layers)
"""
    *said, layers = run_script(tmp_path, REFUSE + source).splitlines()
    (warning,) = [line for line in said if "its call is run again" not in line]
    assert warning.startswith(f"WARNING worker processes run without {layer.lower()} (")
    assert layers == str(("limits", kept))
