"""The limits of a worker, and the report of its layers."""

import pytest

from rg_env.workers.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES
from tests.support.worker_attacks import (
    LAYERS,
    evaluate,
    execute,
    fails_with,
    new_pool,
    run_script,
)

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("RLIMIT_AS", DEFAULT_MEMORY_LIMIT_BYTES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", 3600),
        ("RLIMIT_FSIZE", 2**24),
        ("RLIMIT_NOFILE", 64),
    ],
)
def test_limit_is_set_and_cannot_be_raised(pool, name, limit):
    source = f"(r := __import__('resource')).getrlimit(r.{name})"
    assert evaluate(pool, source) == (limit, limit)
    raising = f"import resource as r; r.setrlimit(r.{name}, (2**40, 2**40))"
    fails_with(pool, "ValueError", raising)


def test_only_the_channel_and_the_standard_streams_are_open():
    source = """\
import os
def is_open(fd):
    try: return bool(os.fstat(fd))
    except OSError: return False
assert sum(map(is_open, range(64))) == 4
"""
    with new_pool(preload=["numpy"]) as fresh:
        execute(fresh, source)


def test_layers_are_reported_by_the_pool(pool):
    assert pool.sandbox_layers == LAYERS
    with new_pool() as unused:
        assert unused.sandbox_layers == ()


def test_scorer_that_a_layer_stops_is_a_scorer_error(pool):
    source = (
        "__import__('rg_env.reward.score', fromlist=['_']).score_answer("
        "'x', {}, lambda answer, entry: __import__('os').fork())"
    )
    assert evaluate(pool, source)["outcome"] == "scorer_error"


# -- kernels that lack a layer, or refuse it, which looks the same ---------------------

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
"""The beginning of a script that has the kernel refuse a layer."""


@pytest.mark.parametrize(
    ("layer", "kept"), [("LANDLOCK", "seccomp"), ("SECCOMP", "landlock")]
)
def test_missing_layer_is_logged_once_and_items_are_still_made(tmp_path, layer, kept):
    source = f"""\
refuse({layer})
with contextlib.closing(WorkerPool(2, preload=worker_jobs.PRELOAD)) as pool:
    for _ in range(3):
        with contextlib.suppress(Exception):
            pool.call(exec, 'import os; os.abort()', deadline_s=60)
    pool.call(worker_jobs.make_entry, 'codeio', {{}}, 1, False, deadline_s=60)
    print(pool.sandbox_layers)
"""
    *lines, layers = run_script(tmp_path, REFUSE + source).splitlines()
    (warning,) = [line for line in lines if "ended during a call" not in line]
    assert warning.startswith(f"WARNING worker processes run without {layer.lower()} (")
    assert layers == str(("limits", kept))
