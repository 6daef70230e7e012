"""The page on differences has all that differs from what was recorded of the original.

`tools/record_original.py` makes the file from a checkout of Atropos.
"""

import inspect
import json

import pytest

import reasoning_gym_environment as entry
from rg_env import Item, score
from rg_env.cli import run_commands
from rg_env.run import dumps, metrics
from tests.support.documents import ROOT, codes, text_of
from tests.support.parts import build_env

ORIGINAL = json.loads(text_of(ROOT / "tests/project/original.json"))
PAGE = ROOT / "docs/differences.md"
Env = entry.ReasoningGymEnv
UNNAMED = "Any Dict List Literal Optional Tuple Union json logging os pkgutil random re"
UNNAMED += " sys uuid"
"""Standard modules and types, which are nothing of the original's own."""


def parameters_of(name):
    member = getattr(Env, name, None)
    if member is None:
        return None
    found = inspect.signature(member).parameters.values()
    names = [str(p.replace(annotation=inspect.Parameter.empty)) for p in found]
    return ["cls", *names] if inspect.ismethod(member) else names


def differences():
    """Return the names of what is missing here or has another value."""
    exports = set(ORIGINAL["exports"]) - {*UNNAMED.split()}
    yield from exports - set(entry.__all__)
    methods = ORIGINAL["parameters"]
    yield from (n for n, names in methods.items() if parameters_of(n) != names)
    env = build_env()
    yield from (name for name in ORIGINAL["attributes"] if not hasattr(env, name))
    known = {name for option in run_commands.serve(Env).params for name in option.opts}
    yield from (name for name in ORIGINAL["options"] if f"--{name}" not in known)
    keys = text_of(ROOT / "docs/metrics_and_logs.md")
    yield from (key for key in ORIGINAL["wandb"] if f"`{key}`" not in keys)


def test_every_difference_stands_on_the_page():
    named = {code for span in codes(text_of(PAGE)) for code in span.split()}
    named |= {"__init__"}  # by its argument `slurm`
    assert {*differences()} - named == set()


def test_the_log_comes_as_often_as_in_the_original():
    files = build_env()._dumps
    sizes = {files.saved.groups_per_file, files.failed.groups_per_file}
    often = {metrics.GROUP_LINE_EVERY, dumps.PROGRESS_EVERY}
    assert sizes | often == set(ORIGINAL["log_every"])


@pytest.mark.processes
def test_a_wrong_answer_scores_at_most_a_half_whatever_the_original_gave():
    assert "Wrong answers score at most 0.5" in text_of(PAGE)
    for task, case in ORIGINAL["wrong_answers"].items():
        item = Item(task, seed=case["seed"])
        (result,) = score(item, [f"<answer>{case['answer']}</answer>"])
        # An item with an incorrect reference answer is not used.
        limit = min(0.5, case["score"])
        assert result.outcome == "unmatched" or result.value <= limit, task
