"""Jobs that raise, print, read or keep something."""

import os
import pickle

import pytest

from rg_env.workers.call import JobError
from rg_env.workers.worker_program import MAX_GROWTH_KIB
from tests.support.worker_attacks import LONG_S, execute, new_pool, worker_of

pytestmark = pytest.mark.processes


def test_exception_becomes_a_job_error(pool):
    with pytest.raises(JobError) as caught:
        pool.call(int, "seven", deadline_s=LONG_S)
    error = caught.value
    assert error.class_name == "ValueError" and "seven" in error.message
    assert "Traceback" in error.detail
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "raise type('Odd', (Exception,), {'lock': open})(lambda: 0)  # no pickle",
        "class Odd(Exception):\n def __str__(self): raise SystemExit(1)\nraise Odd()",
    ],
)
def test_exception_of_any_kind_becomes_a_job_error_and_the_worker_lives_on(
    single, source
):
    worker = worker_of(single)
    with pytest.raises(JobError, match=r"SystemExit|KeyboardI|GeneratorExit|Odd"):
        execute(single, source)
    assert worker_of(single) == worker


def test_message_of_a_job_error_is_bounded_and_cannot_steer_a_terminal(pool):
    with pytest.raises(JobError) as caught:
        execute(pool, r"raise ValueError('a\x1b[2J\x9bb\n' + 'x' * 10**7)")
    message, detail = caught.value.message, caught.value.detail
    assert len(message) + len(detail) < 20_000
    assert message.startswith("a\\x1b[2J\\x9bb\nxxx") and "\x1b" not in detail


def test_output_goes_nowhere_and_input_is_empty(capfd):
    with new_pool() as pool:
        execute(pool, "import os; print('a'); os.write(1, b'b'); os.write(2, b'c')")
        with pytest.raises(JobError, match="EOFError"):
            pool.call(input, deadline_s=LONG_S)
    assert capfd.readouterr() == ("", "")


def test_worker_that_grows_is_replaced(single):
    worker = worker_of(single)
    execute(single, f"kept = b'x' * {(MAX_GROWTH_KIB + 2**14) * 2**10}")
    assert worker_of(single) != worker


def test_interrupt_key_does_not_reach_workers(single):
    execute(single, "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    group = single.call(os.getpgid, 0, deadline_s=LONG_S)
    assert group != os.getpgid(0)
