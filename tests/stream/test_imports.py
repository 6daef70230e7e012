"""What a program pays for that only wants tasks and scores."""

import pytest

from tests.support.worker_attacks import run_script

pytestmark = pytest.mark.processes

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
