"""Which groups are dumped, and the rows of `process`."""

import asyncio
import json

import pytest

from rg_env.rollouts.group import Rollout
from rg_env.rollouts.json_encoding import read_groups
from rg_env.rollouts.run_dumps import Dumps
from tests.support.groups import scored
from tests.support.parts import build_env


def group(*scores):
    rollouts = [Rollout([], n, n, "right", "4", "stop", 1, 1) for n in scores]
    return scored("gcd", rollouts)


KEEPS_NOTHING = {"keep_good": False, "keep_failed": False, "threshold": 0.7}


def dumped(folder, *records, cancel=False, **changes):
    async def run():
        dumps = Dumps(folder, **{**KEEPS_NOTHING, **changes})
        for record in records:
            writing = asyncio.ensure_future(dumps.record(record, {}))
            await asyncio.sleep(0)
            if cancel:
                writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await dumps.close()
        await dumps.close()

    asyncio.run(run())
    return {p.name.rsplit("_", 2)[0]: list(read_groups(p)) for p in folder.iterdir()}


SAVED = "reasoning_gym_environment_rollouts"
FAILED = "reasoning_gym_environment_FAILED_rollouts"


GOOD, ALL_RIGHT, FAILED_ONE = (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("groups", "changes", "counts"),
    [
        (
            [GOOD, ALL_RIGHT, FAILED_ONE],
            {"keep_good": True, "keep_failed": True},
            {SAVED: 2, FAILED: 1},
        ),
        ([GOOD, FAILED_ONE], {}, {}),
        ([GOOD, FAILED_ONE], {"keep_good": True, "threshold": 1.0}, {SAVED: 1}),
    ],
    ids=["good and failed ones", "none", "perfect ones"],
)
def test_groups_go_to_the_files_that_the_settings_want(
    tmp_path, groups, changes, counts
):
    found = dumped(tmp_path, *(group(*scores) for scores in groups), **changes)
    assert {name: len(lines) for name, lines in found.items()} == counts


def test_a_group_whose_caller_is_cancelled_is_written_all_the_same(tmp_path):
    found = dumped(tmp_path, group(1.0, 0.0), cancel=True, keep_good=True)
    assert len(found[SAVED]) == 1


@pytest.mark.processes
def test_what_a_killed_process_left_is_completed_by_the_next_start(tmp_path):
    line = json.dumps({"item_id": "gcd", "rollouts": []})
    left = tmp_path / f"{SAVED}_old_0000.jsonl.part"
    left.write_text(f'{line}\n{{"item_id": "to')

    async def run():
        env = build_env(data_dumps_dir=str(tmp_path))
        await env.setup()
        await env.close()

    asyncio.run(run())
    (complete,) = tmp_path.iterdir()
    assert complete.name == f"{SAVED}_old_0000.jsonl"
    assert [g["item_id"] for g in read_groups(complete)] == ["gcd"]
