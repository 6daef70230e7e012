"""Kernels that lack a layer: what the pool says, and what is denied all the same.

They are tested on this one, by having the kernel refuse the layer.
"""

import pytest

from tests.support.worker_attacks import run_script

pytestmark = pytest.mark.processes

REFUSE = """
import contextlib, ctypes, logging, os, struct, sys
from rg_env.workers.sandbox import seccomp, syscalls
from rg_env.workers.pool_errors import DeadlineExceededError, JobError
from rg_env.workers.worker_pool import WorkerPool

COLUMN = seccomp.MACHINES.index(os.uname().machine)
SECCOMP, LANDLOCK = seccomp.SECCOMP[COLUMN], 444

def refuse(*numbers):
    code = [(0x20, 0, 0, 0)]
    for number in numbers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 38)]
    code += [(0x06, 0, 0, 0x7FFF0000)]
    packed = (struct.pack("=HBBI", *line) for line in code)
    program = ctypes.create_string_buffer(b"".join(packed))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    header = struct.pack("@HP", len(code), ctypes.addressof(program))
    syscalls.call(SECCOMP, 1, 0, header)

def attempt(source):
    try:
        print(pool.call(eval, source, deadline_s=60))
    except JobError as error:
        print(error.kind)

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
"""
"""The head of a script that runs where the kernel refuses a layer, as some do."""


@pytest.mark.parametrize(
    ("layer", "kept"), [("LANDLOCK", "seccomp"), ("SECCOMP", "landlock")]
)
def test_missing_layer_is_said_once_and_replaced_in_python(tmp_path, layer, kept):
    source = f"""\
refuse({layer})
with contextlib.closing(WorkerPool(2)) as pool:
    for _ in range(3):
        with contextlib.suppress(Exception):
            pool.call(exec, 'import os; os.abort()', deadline_s=60)
    print(pool.sandbox_layers)
"""
    *said, layers = run_script(tmp_path, REFUSE + source).splitlines()
    (warning,) = [line for line in said if "its call is run again" not in line]
    assert warning.startswith(f"WARNING worker processes run without {layer.lower()} (")
    assert layers == str(("limits", kept, "audit"))


def test_without_both_layers_python_code_is_denied(tmp_path):
    attacks = (
        "os.fork()",
        "os.system('true')",
        "os.kill(os.getppid(), 0)",
        "__import__('subprocess').run(['true'])",
        "__import__('socket').socket()",
        "open('/etc/passwd')",
        "os.listdir('/')",
        f"open({str(tmp_path / 'file')!r}, 'w')",
        f"os.mkdir({str(tmp_path / 'folder')!r})",
        "os.symlink('/etc/passwd', 'x') or open('x')",
    )
    source = f"""\
refuse(LANDLOCK, SECCOMP)
with contextlib.closing(WorkerPool(1)) as pool:
    for attack in {attacks!r}:
        attempt('(os := __import__("os")) and ' + attack)
"""
    output = run_script(tmp_path, REFUSE + source).splitlines()
    assert output[2:] == ["PermissionError"] * len(attacks)


def test_without_both_layers_items_are_still_made(tmp_path):
    source = """\
refuse(LANDLOCK, SECCOMP)
from rg_env.library import worker_jobs
with contextlib.closing(WorkerPool(1, preload=worker_jobs.PRELOAD)) as pool:
    for task in ('codeio', 'figlet_font', 'rearc', 'list_functions'):
        for seed in range(5):
            job = worker_jobs.make_entry, task, {}, seed, False
            pool.call(*job, deadline_s=60)
    attempt('open("x", "w").write("text")')
"""
    assert run_script(tmp_path, REFUSE + source).splitlines()[2:] == ["4"]
