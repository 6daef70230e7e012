"""One run of `process`, with hooks of the test's own and a real file of rows."""

import asyncio
from types import SimpleNamespace

import pytest

from rg_env import patience
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.atropos.process_run import ProcessRun
from rg_env.atropos.rows import RowWriter
from rg_env.rollouts.json_encoding import read_groups
from rg_env.rollouts.ledger import Ending, Ledger
from rg_env.rollouts.line_file import LineFile

ITEMS = SimpleNamespace(is_catching_up=False)
GROUP = {"tokens": [[1], [2]], "scores": [0.0, 1.0]}


class Hooks:
    """An environment whose items are numbers; those in `fruitless` give no group."""

    def __init__(self, rows, fruitless=()):
        self.rows, self.fruitless = rows, set(fruitless)
        self.asked = self.at_once = self.most_at_once = self.logs = 0
        self.curr_step = 0

    async def get_next_item(self):
        self.asked += 1
        return self.asked

    async def collect_trajectories(self, item):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return (None if item in self.fruitless else {**GROUP, "item": item}), []

    async def postprocess_histories(self, group):
        return group

    async def handle_send_to_api(self, group, item, **checks):
        self.rows.write(group)
        self.groups.of(item).end(Ending.WRITTEN)

    async def wandb_log(self):
        self.logs += 1


def written(
    folder, total, at_once, fruitless=(), gave_up=False, items=None, there=0, log=None
):
    """Return the hooks, the run and its rows."""

    async def run():
        rows = RowWriter(LineFile(folder / "rows.jsonl"))
        hooks = Hooks(rows, fruitless)
        hooks.wandb_log = log or hooks.wandb_log
        watch = SimpleNamespace(gave_up=asyncio.Event())
        if gave_up:
            watch.gave_up.set()
        hooks.groups = groups = GroupsInFlight(hooks, Ledger(), None, None, None)
        made = items or ITEMS
        process = ProcessRun(hooks, groups, rows, watch, made)
        hooks.n_groups_to_process, process._begun, process.written = total, there, there
        try:
            await process.write(at_once)
        finally:
            rows.close()
        return hooks, process

    hooks, process = asyncio.run(run())
    path = folder / "rows.jsonl"
    return hooks, process, list(read_groups(path)) if path.exists() else []


def test_it_writes_as_many_rows_as_asked_for_several_at_a_time(tmp_path):
    hooks, process, rows = written(tmp_path, 9, at_once=3)
    assert (process.written, len(rows), hooks.most_at_once) == (9, 9, 3)
    assert (hooks.curr_step, hooks.logs) == (9, 9)


def test_a_group_that_gives_no_row_is_replaced_by_another(tmp_path):
    _, process, rows = written(tmp_path, 4, at_once=2, fruitless=[1, 3])
    assert process.written == 4 and {row["item"] for row in rows} == {2, 4, 5, 6}


def test_it_gives_up_after_many_groups_without_a_row(tmp_path, monkeypatch, logged):
    monkeypatch.setattr(patience, "FRUITLESS_GROUPS_IN_A_ROW", 5)
    hooks, process, rows = written(tmp_path, 4, at_once=2, fruitless=range(100))
    assert (process.written, rows) == (0, []) and hooks.asked < 10
    assert "5 groups in a row gave no row" in logged.text
    assert "only 0 of 4 groups were written" in logged.text


def test_groups_that_an_earlier_run_tried_as_well_do_not_make_it_give_up(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(patience, "FRUITLESS_GROUPS_IN_A_ROW", 5)
    earlier = SimpleNamespace(is_catching_up=True)
    tried = {"fruitless": range(20), "items": earlier}
    _, process, _ = written(tmp_path, 4, at_once=2, **tried)
    assert process.written == 4


def test_rows_that_are_there_count_and_so_does_the_progress(tmp_path, logged):
    hooks, process, rows = written(tmp_path, 9, at_once=3, there=6)
    assert (process.written, len(rows), hooks.asked) == (9, 3, 3)
    assert "process: 9 of 9 groups" in logged.text


def test_it_says_how_many_items_are_needed(tmp_path):
    needed = []

    class Items:
        is_catching_up = False

        def __setattr__(self, name, value):
            needed.append(value)

    written(tmp_path, 4, at_once=2, fruitless=[2], items=Items())
    assert needed[0] == 4 and needed[-1] == 1 and len(needed) == 5


def test_it_begins_nothing_once_the_servers_were_given_up(tmp_path):
    hooks, process, _ = written(tmp_path, 4, at_once=2, gave_up=True)
    assert (process.written, hooks.asked) == (0, 0)


def test_an_error_of_a_hook_ends_it_and_is_raised(tmp_path):
    class BrokenError(RuntimeError):
        pass

    async def broken():
        raise BrokenError

    with pytest.raises(BrokenError):
        written(tmp_path, 4, at_once=2, log=broken)
