"""Reward functions of anyone, in workers: what they return, or None and its cause."""

import asyncio
import functools
import importlib
import pickle
import time

import numpy
import pytest

from rg_env import guard
from rg_env.errors import SettingError
from tests.support.processes import left_alive
from tests.support.worker_attacks import HANG_IN_C, run_script

pytestmark = pytest.mark.processes

HOSTILE, MATCHES = "jobs_for_guard:hostile", "jobs_for_guard:matches"
HOW = {"cpu_seconds": 0.5}
SHORT = {"cpu_seconds": 0.5, "wall_seconds": 3.0}  # of what waits
SPAWN = "result = subprocess.run('true').returncode"
THREAD = "threading.Thread(target=time.sleep, args=[99]).start(); result = 0"


@pytest.mark.parametrize("sandbox", [True, False])
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (f"signal.signal(signal.SIGALRM, signal.SIG_IGN); {HANG_IN_C}", "timeout"),
        ("while True: print('x' * 10**6)", "timeout"),
        ("time.sleep(99)", "lost"),
        ("os._exit(0)", "died"),
        (f"result = 'x' * {2**18}", "raised"),
        ("bytearray(20 * 2**30)", "raised"),
        ("result = float('nan')", "no_number"),
        ("result = 'yes'", "no_number"),
        ("result = 10**400", "no_number"),
    ],
)
def test_a_scorer_that_fails_gives_no_score_and_a_cause(answer, cause, sandbox, logged):
    reward = guard(HOSTILE, sandbox=sandbox, **(SHORT if cause == "lost" else HOW))
    assert reward(answer) is None
    assert reward("result = 0.25") == 0.25
    assert reward.counts == {cause: 1, "returned": 1}
    assert f": no score ({cause}, 1 so far): " in " ".join(logged.messages)


FILL = "os.posix_fallocate(os.open('a', os.O_CREAT | os.O_RDWR), 0, 2**20)"


def test_a_scorer_starts_and_writes_nothing_unless_the_user_has_no_sandbox():
    reward = guard(HOSTILE)
    for attempt in (SPAWN, THREAD, FILL, "open('a', 'w')", "os.symlink('/', 'a')"):
        assert reward(f"{attempt}; result = 0") is None
    assert reward.counts == {"raised": 5}
    for source in (SPAWN, THREAD):
        assert guard(HOSTILE, sandbox=False)(source) == 0


def test_a_good_value_comes_back_as_it_is():
    for value in (1, True, None, -2.5, [1.0, None], {"score": 0.5}):
        assert guard(HOSTILE)(f"result = {value!r}") == value


def test_a_fault_in_a_batch_costs_its_own_completion():
    texts = ["time", HANG_IN_C, "time", "1 / 0", "time", "result = 1"]
    columns = {"completions": texts, "solution": ["time"] * 6, "prompts": [[]] * 6}
    reward = guard(MATCHES, **HOW)
    assert reward.__name__ == "matches"
    scores = reward(**columns, trainer_state=object(), log_metric=print)
    assert scores == [1.0, None, 1.0, None, 1.0, 0.0]
    assert reward.counts == {"returned": 4, "timeout": 1, "raised": 1}
    assert reward(completions=["1 / 0"], solution=[""]) == [None]
    assert guard(MATCHES, split=False, **HOW)(**columns) == [None] * 6
    ranks = guard("jobs_for_guard:ranks", split=False)
    assert ranks(completions=["b", "a"]) == [1.0, 0.0]


SPOIL = "os.spoilt = True; result = 0.0"
IS_SPOILT = "result = float(hasattr(os, 'spoilt'))"


def test_no_completion_or_call_decides_what_another_one_gets():
    rewards = guard("jobs_for_guard:each")(completions=[SPOIL, IS_SPOILT] * 20)
    assert rewards == [0.0] * 40
    reward = guard(HOSTILE)
    assert [reward(text) for text in [SPOIL, IS_SPOILT] * 8] == [0.0] * 16


def test_a_batch_is_split_in_any_kind_of_sequence_and_refused_without_its_name():
    reward = guard("jobs_for_guard:each")
    texts = [SPOIL, IS_SPOILT]
    for batch in (tuple(texts), numpy.array(texts)):
        assert reward(completions=batch) == [0.0, 0.0]
    assert reward(texts) is None
    assert reward.counts == {"returned": 4, "raised": 1}


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("answer", [[], [1.0] * 3, 1.0, None])
def test_a_batch_with_another_number_of_values_has_no_score(answer, split):
    reward = guard("jobs_for_guard:whatever", split=split)
    assert reward(completions=["a", "b"], answer=answer) == [None, None]
    assert reward.counts == {"no_number": 2}


STAYS = "result = subprocess.Popen(['sleep', '999'], start_new_session=True).pid"
ORPHAN = ["setsid", "sh", "-c", "sleep 999 > /dev/null & echo $!"]


@pytest.mark.parametrize(
    "how", [STAYS, f"result = int(subprocess.check_output({ORPHAN}))"]
)
def test_a_scorer_outside_the_sandbox_leaves_no_process(how):
    pid = guard(HOSTILE, sandbox=False)(how)
    assert pid > 1
    assert left_alive([pid]) == []


def test_a_function_is_taken_as_its_name():
    jobs = importlib.import_module("jobs_for_guard")
    assert guard(jobs.ranks)(completions=["a"]) == [0.0]
    for scorer in (lambda text: 1.0, functools.partial(abs), [].append, 1):
        with pytest.raises(SettingError, match=r"^guard: .* top of a module"):
            guard(scorer)


async def test_an_event_loop_is_not_blocked_and_a_cancelled_call_is_killed():
    reward = guard(MATCHES, cpu_seconds=30)
    columns = {"completions": ["time", "1 / 0"], "solution": ["time"] * 2}
    begin_s = time.monotonic()
    endless = reward.acall(completions=[HANG_IN_C] * 9, solution=["time"] * 9)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(endless, 0.5)
    assert await reward.acall(**columns) == reward(**columns) == [1.0, None]
    assert time.monotonic() - begin_s < 10


@pytest.mark.parametrize(
    ("name", "how", "sentence"),
    [
        ("jobs_for_guard:hostil", {}, "no attribute 'hostil'"),
        ("no_such_module:check", {}, "No module named 'no_such_module'"),
        ("/nowhere/rewards.py:check", {}, "No such file"),
        ("jobs_for_guard:__doc__", {}, "not a function"),
        ("jobs_for_guard:eventual", {}, "`async`"),
        (HOSTILE, {"wall_seconds": 0}, "above 0"),
    ],
)
def test_a_wrong_name_or_limit_stops_with_one_sentence(name, how, sentence):
    with pytest.raises(SettingError, match=f"^guard: .*{sentence}"):
        guard(name, **how)


def test_it_pickles():
    assert pickle.loads(pickle.dumps(guard(HOSTILE)))(answer="result = 5") == 5


def test_a_script_guards_a_thread_and_a_fork_and_ends_beside_a_call(tmp_path):
    (tmp_path / "rewards.py").write_text("def check(a):\n    return pow(a, a**a)\n")
    source = """\
import os, sys, threading, time
from rg_env import guard
reward = guard("rewards:check", cpu_seconds=0.5)
endless = guard(sys.path[0] + "/rewards.py:check", cpu_seconds=500)
values = []
thread = threading.Thread(target=lambda: values.append(reward(9)))
thread.start()
if not (child := os.fork()):
    os._exit(reward(2) != 16 or reward(9) is not None)
print(os.waitpid(child, 0)[1], reward(2), thread.join(), values, flush=True)
threading.Thread(target=endless, args=[9], daemon=True).start()
time.sleep(0.5)
"""
    assert run_script(tmp_path, source) == "0 16 None [None]\n"
