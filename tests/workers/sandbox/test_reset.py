"""One call leaves no state and no file for the next call of the same worker."""

import contextlib
import os

import pytest

from rg_env.workers.call import WorkerDiedError
from tests.support.worker_attacks import LONG_S, evaluate, execute, worker_of

pytestmark = pytest.mark.processes


STATES = """
    os.chdir('/')                                  | os.getcwd()
    os.environ['X'] = 'x'                          | dict(os.environ)
    os.environ.clear()                             | dict(os.environ)
    sys.setrecursionlimit(10**6)                   | sys.getrecursionlimit()
    sys.set_int_max_str_digits(0)                  | sys.get_int_max_str_digits()
    decimal.getcontext().prec = 3                  | decimal.getcontext().prec
    decimal.setcontext(decimal.ExtendedContext)    | str(decimal.getcontext())
    random.seed(7)                                 | random.random()
    numpy.random.seed(7)                           | numpy.random.random()
    signal.setitimer(signal.ITIMER_REAL, 9)        | signal.getitimer(0)[0]
    open('file', 'w').write('x')                   | os.listdir()
    os.makedirs('a/b/c')                           | os.listdir()
    tempfile.tempdir = '/nowhere'                  | tempfile.gettempdir()
"""
"""Changes, and the state that each would leave."""


@pytest.mark.parametrize("row", STATES.strip().splitlines())
def test_state_is_reset_before_the_next_call(pool, row):
    change, state = map(str.strip, row.split("|"))
    imports = "import decimal, os, random, signal, sys, tempfile, numpy.random\n"
    read = f"exec({imports!r}) or {state}"
    before = evaluate(pool, read)
    worker = worker_of(pool)
    execute(pool, f"{imports}{change}")
    assert evaluate(pool, read) == before
    assert worker_of(pool) == worker


def test_worker_that_leaves_files_open_is_replaced(pool):
    worker = worker_of(pool)
    execute(pool, "import sys; sys.kept = [open('/dev/null') for _ in range(40)]")
    assert worker_of(pool) != worker


# -- the scratch folder ----------------------------------------------------------------


def test_folders_deeper_than_the_recursion_limit_are_deleted(pool):
    server = pool.call(os.getppid, deadline_s=LONG_S)
    source = "import os\nfor _ in range(1200): os.mkdir('x'); os.chdir('x')"
    for ending in ("", "os._exit(0)"):
        with contextlib.suppress(WorkerDiedError):
            execute(pool, f"{source}\n{ending}")
        assert pool.call(os.listdir, deadline_s=LONG_S) == []
    assert pool.call(os.getppid, deadline_s=LONG_S) == server
