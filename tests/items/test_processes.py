"""Scores wherever Python runs: forks, spawned processes, threads, killed ones."""

from __future__ import annotations

import os

import pytest

from tests.support.processes import descendants, left_alive
from tests.support.worker_attacks import run_script, start_script

pytestmark = pytest.mark.processes

BEGIN = """\
import multiprocessing, os, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
from rg_env import Item, Tasks, score
from rg_env.items.item import shared_pool

def value(item):
    right = f"<answer>{item.gold}</answer>"
    return [result.value for result in score(item, [right, "no answer"])]

def worker():
    return shared_pool().call(os.getpid, deadline_s=60)
"""


def test_a_forked_child_scores_with_workers_of_its_own(tmp_path):
    source = f"""{BEGIN}
tasks = Tasks("gcd", "chain_sum")
item = next(tasks)
assert value(item) == [1.0, 0.0]
before = worker()
if os.fork() == 0:
    assert value(item) == value(next(tasks)) == [1.0, 0.0]
    assert worker() != before
    print("child", flush=True)
    sys.exit()
assert os.wait()[1] == 0
assert worker() == before and value(next(tasks)) == [1.0, 0.0]
print("parent")
"""
    assert run_script(tmp_path, source) == "child\nparent\n"


def test_a_child_that_is_forked_while_threads_draw_and_score_is_not_held_up(tmp_path):
    source = f"""{BEGIN}
tasks = Tasks("gcd")
item = next(tasks)
ended = threading.Event()

def busy():
    while not ended.is_set():
        value(next(tasks))

threads = [threading.Thread(target=busy) for _ in range(3)]
[thread.start() for thread in threads]
children = []
for _ in range(5):
    children.append(os.fork())
    if not children[-1]:
        value(next(tasks))
        os._exit(0)
statuses = [os.waitpid(child, 0)[1] for child in children]
ended.set()
[thread.join() for thread in threads]
print(statuses)
"""
    assert run_script(tmp_path, source) == "[0, 0, 0, 0, 0]\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_processes_scores_items_that_were_handed_to_it(tmp_path, method):
    source = f"""{BEGIN}
if __name__ == "__main__":
    items = [item for item, _ in zip(Tasks("gcd"), range(6))]
    context = multiprocessing.get_context("{method}")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(set(map(tuple, pool.map(value, items))))
"""
    assert run_script(tmp_path, source) == "{(1.0, 0.0)}\n"


def test_threads_that_score_first_start_one_fork_server(tmp_path):
    source = f"""{BEGIN}
item = Item("gcd", {{}}, 7)
threads = [threading.Thread(target=value, args=[item]) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(value(item), flush=True)
time.sleep(60)
"""
    with start_script(tmp_path, source) as script:
        assert script.stdout
        assert script.stdout.readline() == "[1.0, 0.0]\n"
        started = descendants(script.pid)
        script.kill()
        # One fork server, and a worker for each core.
        assert 2 <= len(started) <= 1 + max(2, (os.cpu_count() or 1) // 2)
        assert left_alive(started) == []
