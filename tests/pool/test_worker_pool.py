"""WorkerPool under attack: each test tries one thing a job or a caller can do.

Jobs are functions of the standard library, mostly `exec`, so that each attack is
read where it is made and no worker has to import this file.
"""

import asyncio
import contextlib
import math
import operator
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from rg_env.cli import main as command_line
from rg_env.items import worker_jobs
from rg_env.pool import early_start
from rg_env.pool.fork_server_program import Order
from rg_env.pool.pool_errors import (
    DeadlineExceeded,
    JobFailed,
    PoolClosed,
    PoolError,
    PoolFull,
    WorkerDied,
)
from rg_env.pool.wire import unpack_result
from rg_env.pool.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES, WorkerPool

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 60.0
HANG_IN_C = "pow(9, 9**9)"
STOP_SELF = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


@pytest.fixture
def single() -> Iterator[WorkerPool]:
    pool = WorkerPool(1, max_pending=2)
    yield pool
    pool.close()


def execute(pool: WorkerPool, source: str, deadline_s: float = LONG_S, **names: object):
    return pool.call(exec, source, names, deadline_s=deadline_s)


def evaluate(pool: WorkerPool, source: str, **names: object):
    return pool.call(eval, source, names, deadline_s=LONG_S)


def read_parent(pid: int) -> int | None:
    """Parent of a process that runs; None for a zombie or none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state == "Z" else int(parent)


def find_descendants(ancestor: int) -> set[int]:
    parents = {
        int(p.name): read_parent(int(p.name)) for p in Path("/proc").glob("[0-9]*")
    }
    found = {ancestor}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {ancestor}


def wait_until_gone(pids: set[int]) -> None:
    end = time.monotonic() + 10
    while any(read_parent(pid) is not None for pid in pids):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.02)


def start_script(folder: Path, source: str, **variables: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(source)
    return subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_script(folder: Path, source: str, **variables: str) -> str:
    with start_script(folder, source, **variables) as script:
        return script.communicate(timeout=LONG_S)[0]


# --- answers -----------------------------------------------------------------------


def test_result_is_returned(pool):
    assert pool.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0


def test_submit_gives_a_future_without_an_event_loop(pool):
    assert pool.submit(math.sqrt, 4.0, deadline_s=LONG_S).result() == 2.0


def test_run_is_awaited(pool):
    assert asyncio.run(pool.run(math.sqrt, 4.0, deadline_s=LONG_S)) == 2.0


def test_plain_data_arrives_with_its_types(pool):
    value = {"a": (1, [2.5, None]), "b": {3}, "c": Fraction(1, 3), "d": b"x", "e": 1j}
    assert pool.call(dict, value, deadline_s=LONG_S) == value


@pytest.mark.parametrize("source", ["str_('2')", "int64(2)", "float32(2)", "bool_(1)"])
def test_numpy_scalar_arrives_as_the_value_it_holds(pool, source):
    value = evaluate(pool, f"__import__('numpy').{source}")
    assert type(value) in (str, int, float, bool)


def test_dataclass_of_the_project_arrives(pool):
    order = Order(3, ["a"], [], "b", None)
    assert pool.call(Order, 3, ["a"], [], "b", None, deadline_s=LONG_S) == order


def test_large_arguments_and_results_pass(pool):
    text = "x" * 5_000_000
    assert pool.call(str, text, deadline_s=LONG_S) == text


def test_workers_give_way_to_their_owner(pool):
    worker = pool.call(os.getpid, deadline_s=LONG_S)
    own, theirs = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, worker))
    assert theirs == min(19, own + 10)


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="sessions share no cores here"
)
def test_session_of_the_workers_gives_way_to_others(pool):
    worker = pool.call(os.getpid, deadline_s=LONG_S)
    group, _, niceness = Path(f"/proc/{worker}/autogroup").read_text().split()
    assert group not in Path("/proc/self/autogroup").read_text()
    assert int(niceness) == 10


def test_calls_from_many_threads_get_their_own_results(pool):
    results: dict[int, int] = {}

    def ask(number: int) -> None:
        results[number] = pool.call(operator.neg, number, deadline_s=LONG_S)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: -i for i in range(40)}


# --- jobs that raise ---------------------------------------------------------------


def test_exception_becomes_job_failed(pool):
    with pytest.raises(JobFailed) as caught:
        pool.call(int, "seven", deadline_s=LONG_S)
    assert caught.value.kind == "ValueError"
    assert "seven" in caught.value.message
    assert "Traceback" in caught.value.detail


def test_job_failed_pickles():
    error = JobFailed("KeyError", "x", "Traceback")
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_base_exception_becomes_job_failed(single, kind):
    worker = single.call(os.getpid, deadline_s=LONG_S)
    with pytest.raises(JobFailed, match=kind):
        execute(single, f"raise {kind}(3)")
    assert single.call(os.getpid, deadline_s=LONG_S) == worker


def test_exception_that_does_not_pickle_becomes_job_failed(pool):
    source = "class Local(Exception): lock = open\nraise Local(lambda: 0)"
    with pytest.raises(JobFailed, match="Local"):
        execute(pool, source)


def test_exception_whose_text_raises_becomes_job_failed(pool):
    source = "class Mute(Exception):\n def __str__(self): exit(1)\nraise Mute()"
    with pytest.raises(JobFailed, match="Mute"):
        execute(pool, source)


def test_message_of_a_failure_is_bounded(pool):
    with pytest.raises(JobFailed) as caught:
        execute(pool, "raise ValueError('x' * 10**7)")
    assert len(caught.value.message) + len(caught.value.detail) < 20_000


def test_result_that_does_not_pickle_becomes_job_failed(pool):
    with pytest.raises(JobFailed, match="pickle"):
        pool.call(threading.Lock, deadline_s=LONG_S)


def test_result_that_is_not_plain_data_becomes_job_failed(pool):
    with pytest.raises(JobFailed, match="UnreadableResult: pathlib"):
        pool.call(Path, "x", deadline_s=LONG_S)


def test_result_does_not_run_in_the_caller(pool, tmp_path):
    mark = tmp_path / "mark"
    trap = "lambda self: (__import__('os').mkdir, (mark,))"
    with pytest.raises(JobFailed, match="UnreadableResult"):
        evaluate(pool, f"type('T', (), {{'__reduce__': {trap}}})()", mark=str(mark))
    assert not mark.exists()


def test_result_cannot_change_a_class_of_the_caller():
    build = b"crg_env.pool.fork_server_program\nOrder\nN}Vpreload\nVx\ns\x86b."
    with pytest.raises(TypeError):
        unpack_result(build)
    assert not hasattr(Order, "preload")


def test_result_cannot_name_a_function_through_a_class_or_module():
    for name in (b"os\nsystem", b"rg_env.pool.fork_server\nsubprocess.Popen"):
        with pytest.raises(pickle.UnpicklingError, match="not plain data"):
            unpack_result(b"c" + name + b"\n.")


def test_job_that_cannot_be_pickled_is_refused_at_once(pool):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.submit(lambda: 0, deadline_s=LONG_S)


@pytest.mark.parametrize("deadline_s", [0, -1, math.inf, math.nan])
def test_deadline_that_is_none_is_refused(pool, deadline_s):
    with pytest.raises(ValueError, match="deadline_s"):
        pool.submit(math.sqrt, 4.0, deadline_s=deadline_s)


# --- jobs that hang or die ---------------------------------------------------------


@pytest.mark.parametrize("attack", [HANG_IN_C, STOP_SELF, "while True: pass"])
def test_hang_ends_at_its_deadline_and_others_go_on(pool, attack):
    hang = pool.submit(exec, attack, {}, deadline_s=1.0)
    for _ in range(20):
        assert pool.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0
    assert not hang.done()
    with pytest.raises(DeadlineExceeded):
        hang.result()


def test_worker_is_replaced_after_a_deadline(single):
    worker = single.call(os.getpid, deadline_s=LONG_S)
    server = single.call(os.getppid, deadline_s=LONG_S)
    with pytest.raises(DeadlineExceeded):
        execute(single, HANG_IN_C, deadline_s=0.2)
    assert single.call(os.getpid, deadline_s=LONG_S) != worker
    assert single.call(os.getppid, deadline_s=LONG_S) == server


@pytest.mark.parametrize(
    ("attack", "end"),
    [
        ("import os; os._exit(3)", "status 3"),
        ("import os; os.abort()", "signal 6"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40"),
        ("import os; os.closerange(3, 256)", ""),
        ("import os\nfor fd in range(3, 99):\n os.write(fd, b'junk' * 99)", ""),
    ],
)
def test_death_takes_only_its_own_call(pool, attack, end):
    neighbour = pool.submit(time.sleep, 0.3, deadline_s=LONG_S)
    dying = pool.submit(exec, attack, {}, deadline_s=LONG_S)
    waiting = [pool.submit(math.sqrt, 4.0, deadline_s=LONG_S) for _ in range(5)]
    with (
        pytest.raises(WorkerDied, match=end) if end else contextlib.suppress(Exception)
    ):
        dying.result(timeout=LONG_S)
    assert neighbour.result() is None
    assert [call.result() for call in waiting] == [2.0] * 5


def test_idle_worker_that_dies_costs_no_call(single):
    os.kill(single.call(os.getpid, deadline_s=LONG_S), signal.SIGKILL)
    time.sleep(0.2)
    assert single.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0
    assert single.deaths == 0


def test_zygote_that_dies_is_replaced(single):
    zygote = single.call(os.getppid, deadline_s=LONG_S)
    call = single.submit(time.sleep, 60, deadline_s=LONG_S)
    time.sleep(0.2)
    os.kill(zygote, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        call.result()
    assert single.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0


def test_memory_limit_fails_that_call_only():
    with contextlib.closing(WorkerPool(1, memory_limit_bytes=2**30)) as pool:
        with pytest.raises((JobFailed, WorkerDied)):
            pool.call(operator.mul, b"x", 2**32, deadline_s=LONG_S)
        assert pool.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0


@pytest.mark.parametrize(
    "waste",
    [
        "kept = b'x' * 2**29",
        "from threading import Timer; Timer(60, print).start()",
    ],
)
def test_worker_that_keeps_something_is_recycled(single, waste):
    worker = single.call(os.getpid, deadline_s=LONG_S)
    execute(single, waste)
    assert single.call(os.getpid, deadline_s=LONG_S) != worker


def test_preload_that_fails_is_named():
    pool = WorkerPool(1, preload=["no_such_module"])
    with contextlib.closing(pool), pytest.raises(WorkerDied, match="no_such_module"):
        pool.call(math.sqrt, 4.0, deadline_s=LONG_S)


def test_owner_without_file_handles_gets_an_error_and_can_go_on(tmp_path):
    source = (
        "import math, resource\n"
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "pool = WorkerPool(1)\n"
        "limits = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "for number in (4, 5, 6, 7, limits[0]):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (number, limits[1]))\n"
        "    try: print(pool.submit(math.sqrt, 4.0, deadline_s=9).result(20))\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "pool.close()\n"
    )
    assert run_script(tmp_path, source) == "WorkerDied\n" * 4 + "2.0\n"


# --- the clock, the queue, cancelling ----------------------------------------------


def test_deadline_does_not_count_waiting(single):
    single.submit(time.sleep, 1.0, deadline_s=LONG_S)
    assert single.submit(math.sqrt, 4.0, deadline_s=0.5).result() == 2.0


def test_deadline_does_not_count_preloading(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text("import time; time.sleep(1)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(WorkerPool(1, preload=["slow_module"])) as pool:
        assert pool.call(math.sqrt, 4.0, deadline_s=0.5) == 2.0


def test_submit_refuses_what_has_no_place(single):
    running = [single.submit(time.sleep, 0.2, deadline_s=LONG_S) for _ in range(2)]
    with pytest.raises(PoolFull):
        single.submit(math.sqrt, 4.0, deadline_s=LONG_S)
    for call in running:
        call.result()


def test_run_waits_for_a_place(single):
    async def run_many():
        calls = (single.run(operator.neg, i, deadline_s=LONG_S) for i in range(30))
        return await asyncio.gather(*calls)

    assert asyncio.run(run_many()) == [-i for i in range(30)]


def test_cancelled_run_frees_its_worker_and_its_place():
    async def give_up_and_ask(pool):
        hang = asyncio.create_task(pool.run(exec, HANG_IN_C, {}, deadline_s=LONG_S))
        await asyncio.sleep(0.5)
        hang.cancel()
        return await asyncio.wait_for(pool.run(math.sqrt, 4.0, deadline_s=LONG_S), 20)

    with contextlib.closing(WorkerPool(1, max_pending=1)) as pool:
        assert asyncio.run(give_up_and_ask(pool)) == 2.0
        assert pool.deaths == 0


def test_run_cancelled_at_any_moment_loses_no_place():
    async def give_up_often(pool):
        for i in range(60):
            tasks = [
                asyncio.create_task(pool.run(math.sqrt, 4.0, deadline_s=LONG_S))
                for _ in range(3)
            ]
            await asyncio.sleep(i * 1e-5)
            for task in tasks[i % 2 :]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return await asyncio.wait_for(pool.run(math.sqrt, 9.0, deadline_s=LONG_S), 20)

    with contextlib.closing(WorkerPool(1, max_pending=1)) as pool:
        assert asyncio.run(give_up_often(pool)) == 3.0
        assert pool.deaths == 0


def test_cancelled_futures_leave_nothing_in_the_queue(single):
    single.submit(time.sleep, 0.5, deadline_s=LONG_S)
    for _ in range(1000):
        assert single.submit(math.sqrt, 4.0, deadline_s=LONG_S).cancel()


def test_waiting_calls_are_served_in_the_order_they_came(single):
    served: list[int] = []

    async def run(number):
        await single.run(operator.neg, number, deadline_s=LONG_S)
        served.append(number)

    async def run_many():
        await asyncio.gather(*map(run, range(30)))

    asyncio.run(run_many())
    assert served == list(range(30))


def test_calls_that_are_lost_with_their_worker_are_counted(single):
    with pytest.raises(JobFailed):
        single.call(int, "x", deadline_s=LONG_S)
    with pytest.raises(DeadlineExceeded):
        single.call(time.sleep, 60, deadline_s=0.1)
    assert single.deaths == 0
    with pytest.raises(WorkerDied):
        single.call(os._exit, 1, deadline_s=LONG_S)
    single.call(math.sqrt, 4.0, deadline_s=LONG_S)
    assert single.deaths == 1


# --- closing -----------------------------------------------------------------------


def test_close_leaves_no_process_and_can_be_repeated():
    before = find_descendants(os.getpid())
    pool = WorkerPool(2)
    hang = pool.submit(exec, HANG_IN_C, {}, deadline_s=LONG_S)
    pool.call(math.sqrt, 4.0, deadline_s=LONG_S)
    started = find_descendants(os.getpid()) - before
    assert len(started) == 3
    pool.close()
    pool.close()
    assert not started & find_descendants(os.getpid())
    with pytest.raises(PoolClosed):
        hang.result()


def test_close_fails_what_waits():
    async def close_under_waiters(pool):
        calls = [pool.run(time.sleep, 60, deadline_s=LONG_S) for _ in range(4)]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(pool.close)
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(close_under_waiters(WorkerPool(1, max_pending=2)))
    assert [type(result) for result in results] == [PoolClosed] * 4


def test_close_during_preloading_does_not_wait_for_it(tmp_path, monkeypatch):
    (tmp_path / "endless_module.py").write_text("import time; time.sleep(600)")
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = WorkerPool(1, preload=["endless_module"])
    call = pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)
    pool.close()
    with pytest.raises(PoolClosed):
        call.result()


def test_closed_pool_refuses_calls(pool):
    pool.close()
    with pytest.raises(PoolClosed):
        pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)


def test_pool_can_be_closed_by_the_callback_of_a_call():
    pool = WorkerPool(1)
    closed = threading.Event()
    call = pool.submit(math.sqrt, 4.0, deadline_s=LONG_S)
    call.add_done_callback(lambda _: (pool.close(), closed.set()))
    assert closed.wait(20)


def test_unused_pool_starts_nothing():
    before = find_descendants(os.getpid()), threading.active_count()
    with contextlib.closing(WorkerPool(4)):
        assert (find_descendants(os.getpid()), threading.active_count()) == before


def test_repeated_pools_leak_no_handle_and_no_thread():
    def open_and_close() -> tuple[int, int]:
        with contextlib.closing(WorkerPool(2)) as pool:
            pool.call(math.sqrt, 4.0, deadline_s=LONG_S)
            with pytest.raises(DeadlineExceeded):
                pool.call(time.sleep, 60, deadline_s=0.05)
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    first = open_and_close()
    assert [open_and_close() for _ in range(5)] == [first] * 5


def test_pools_live_side_by_side(pool, single):
    with contextlib.closing(WorkerPool(1)) as third:
        pids = {p.call(os.getppid, deadline_s=LONG_S) for p in (pool, single, third)}
    assert len(pids) == 3
    assert pool.call(math.sqrt, 4.0, deadline_s=LONG_S) == 2.0


# --- what a worker is --------------------------------------------------------------


def test_main_script_is_not_imported_again(tmp_path):
    source = (
        "import math, os\n"
        "open('imports', 'a').write(f'{__name__}\\n')\n"
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "if __name__ == '__main__':\n"
        f"    os.chdir({str(tmp_path)!r})\n"
        "    pool = WorkerPool(2, preload=['json'])\n"
        "    print(pool.call(math.sqrt, 4.0, deadline_s=60))\n"
        "    pool.close()\n"
    )
    source = source.replace("'imports'", repr(str(tmp_path / "imports")))
    assert run_script(tmp_path, source) == "2.0\n"
    assert (tmp_path / "imports").read_text() == "__main__\n"


def test_job_of_the_main_script_is_refused(tmp_path):
    source = (
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "def job(): pass\n"
        "try: WorkerPool(1).submit(job, deadline_s=1)\n"
        "except ValueError as error: print(error)\n"
    )
    assert "__main__" in run_script(tmp_path, source)


def test_program_that_forgets_to_close_ends(tmp_path):
    source = (
        "import math\n"
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "print(WorkerPool(1).call(math.sqrt, 4.0, deadline_s=60))\n"
    )
    with start_script(tmp_path, source) as script:
        assert script.wait(20) == 0


def test_killed_owner_leaves_no_process(tmp_path):
    source = (
        "import math, time\n"
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "pool = WorkerPool(2)\n"
        "pool.submit(pow, 9, 9**9, deadline_s=60)\n"
        "print(pool.call(math.sqrt, 4.0, deadline_s=60), flush=True)\n"
        "time.sleep(60)\n"
    )
    with start_script(tmp_path, source) as script:
        assert script.stdout
        assert script.stdout.readline() == "2.0\n"
        started = find_descendants(script.pid)
        script.send_signal(signal.SIGKILL)
    assert len(started) == 3
    wait_until_gone(started)


def test_hash_seed_is_zero_whatever_the_owner_has(tmp_path):
    source = (
        "from rg_env.pool.worker_pool import WorkerPool\n"
        "pool = WorkerPool(1)\n"
        "print(pool.call(hash, 'x', deadline_s=60))\n"
        "pool.close()\n"
    )
    zero = run_script(tmp_path, "print(hash('x'))", PYTHONHASHSEED="0")
    for seed in ("1", "2"):
        assert run_script(tmp_path, source, PYTHONHASHSEED=seed) == zero


def test_output_goes_nowhere(pool, capfd):
    execute(pool, "import os; print('a'); os.write(1, b'b'); os.write(2, b'c')")
    pool.close()
    assert capfd.readouterr() == ("", "")


def test_input_is_empty(pool):
    with pytest.raises(JobFailed, match="EOFError"):
        pool.call(input, deadline_s=LONG_S)


def test_working_folder_is_private_and_goes_with_the_pool(pool):
    folder = Path(pool.call(os.getcwd, deadline_s=LONG_S))
    execute(pool, "open('litter', 'w').write('x')")
    assert folder.is_dir()
    assert folder.parent.stat().st_mode & 0o077 == 0
    assert not Path("litter").exists()
    pool.close()
    assert not folder.parent.exists()


def test_keys_of_the_run_are_not_in_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with contextlib.closing(WorkerPool(1)) as pool:
        assert "secret" not in evaluate(pool, "str(__import__('os').environ)")


def test_interrupt_key_does_not_reach_workers(single):
    execute(single, "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    group = single.call(os.getpgid, 0, deadline_s=LONG_S)
    assert group != os.getpgid(0)


def test_workers_have_the_paths_of_the_owner(tmp_path, monkeypatch):
    (tmp_path / "module_by_path.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(WorkerPool(1, preload=["module_by_path"])) as pool:
        execute(pool, "import module_by_path")


def test_pool_takes_over_the_zygote_that_was_begun_for_it():
    before = find_descendants(os.getpid())
    early_start.begin(["fractions"], 2**31)
    begun = find_descendants(os.getpid()) - before
    with contextlib.closing(WorkerPool(1, preload=["fractions"])) as pool:
        assert {pool.call(os.getppid, deadline_s=LONG_S)} == begun
    wait_until_gone(begun)


@pytest.mark.parametrize(
    "asked", [{"preload": ["decimal"]}, {"preload": ["fractions"]}, {}]
)
def test_zygote_that_was_begun_ends_when_the_pool_has_other_arguments(asked):
    before = find_descendants(os.getpid())
    early_start.begin(["fractions"], 2**30)
    begun = find_descendants(os.getpid()) - before
    with contextlib.closing(WorkerPool(1, **asked)) as pool:
        wait_until_gone(begun)
        assert pool.call(os.getppid, deadline_s=LONG_S) not in begun


BEGINS_AND_ENDS = """
import os, pathlib
from rg_env.pool import early_start
early_start.begin(["fractions"], None)
print(*pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())
"""


def test_zygote_that_no_pool_takes_ends_with_the_process(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    begun = run_script(tmp_path, BEGINS_AND_ENDS, TMPDIR=str(scratch)).split()
    assert len(begun) == 1
    wait_until_gone(set(map(int, begun)))
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "count"),
    [("serve", 1), ("", 1), ("evaluate --env.seed 3", 1), ("serve --help", 0)],
)
def test_commands_that_make_items_begin_their_workers_before_they_import(
    command, count
):
    before = find_descendants(os.getpid())
    command_line.begin_workers(command.split())
    begun = find_descendants(os.getpid()) - before
    assert len(begun) == count
    early_start.take(worker_jobs.PRELOAD, DEFAULT_MEMORY_LIMIT_BYTES).close()
    wait_until_gone(begun)


def test_zygote_has_one_thread_with_numpy_loaded():
    with contextlib.closing(WorkerPool(1, preload=["numpy"])) as pool:
        pid = pool.call(os.getppid, deadline_s=LONG_S)
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1


def test_core_dumps_are_off(pool):
    source = "__import__('resource').getrlimit(__import__('resource').RLIMIT_CORE)"
    assert evaluate(pool, source) == (0, 0)


def test_every_error_is_an_isolation_error():
    kinds = (DeadlineExceeded, JobFailed, PoolClosed, PoolFull, WorkerDied)
    assert all(issubclass(kind, PoolError) for kind in kinds)
