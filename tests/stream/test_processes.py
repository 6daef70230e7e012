"""Scores wherever Python runs: forks, spawned processes, without other packages."""

import pytest

from tests.support.worker_attacks import run_script

pytestmark = pytest.mark.processes

BEGIN = """\
import multiprocessing, os, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
from rg_env import Item, Tasks, score
from rg_env.library.installed_library import shared_pool

def value(item):
    right = f"<answer>{item.gold}</answer>"
    return [result.value for result in score(item, [right, "no answer"])]

def worker():
    return shared_pool().call(os.getpid, deadline_s=60)
"""


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
for _ in range(2):
    children.append(os.fork())
    if not children[-1]:
        value(next(tasks))
        os._exit(0)
statuses = [os.waitpid(child, 0)[1] for child in children]
ended.set()
[thread.join() for thread in threads]
print(statuses)
"""
    assert run_script(tmp_path, source) == "[0, 0]\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_scores_items_that_were_handed_to_it(tmp_path, method):
    source = f"""{BEGIN}
if __name__ == "__main__":
    items = [item for item, _ in zip(Tasks("gcd"), range(6))]
    context = multiprocessing.get_context("{method}")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(set(map(tuple, pool.map(value, items))))
"""
    assert run_script(tmp_path, source) == "{(1.0, 0.0)}\n"


FOREIGN = "aiohttp atroposlib click fastapi numpy openai pydantic reasoning_gym torch"
FOREIGN += " transformers wandb"


def test_items_are_made_and_scored_without_the_packages_of_other_frameworks(tmp_path):
    source = f"""
import sys

class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {FOREIGN.split()}:
            raise ImportError(f"{{name}} is not needed")

sys.meta_path.insert(0, Forbid())
from rg_env import Item, Tasks, score
item = Item.from_json(next(Tasks("gcd", levels="curriculum")).to_json())
print(score(item, [f"<answer>{{item.gold}}</answer>"])[0].value)
"""
    assert run_script(tmp_path, source) == "1.0\n"
