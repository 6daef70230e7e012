"""One run of `process`, with hooks of the test's own and a real file of rows."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from rg_env import patience
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.atropos.process_run import ProcessRun, read_resumed
from rg_env.rollouts.json_encoding import read_groups
from rg_env.rollouts.ledger import Ending, Ledger
from rg_env.rollouts.line_file import LineFile
from rg_env.rollouts.row_writer import RowWriter
from rg_env.tasks.recent_questions import digest

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
        made = SimpleNamespace(items=items or ITEMS)
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


# -- the rows of an interrupted run ---------------------------------------------------

ROW = {
    "task": "gcd",
    "question": "?",
    "index": 3,
    "level": 0.5,
    "scores": [0.25, 0.0],
    "task_scores": [1.0, 0.5],
    "tokens": [[1], [2]],
}


def read(folder, *lines):
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return read_resumed(path)


def line(**changes):
    return json.dumps(ROW | changes).encode()


def test_the_result_is_of_the_scores_and_the_variance_of_the_rewards(tmp_path):
    left = read(tmp_path, line())
    assert left.sampled == {3: ("gcd", digest("?"))}
    assert left.results == [("gcd", 0.75, 0.5, True)]


def test_half_a_character_is_read_as_it_was_sampled(tmp_path):
    for changes in ({"question": "\ud800"}, {"messages": "\ud800"}):
        left = read(tmp_path, line(**changes))
        assert left.sampled[3] == ("gcd", digest(changes.get("question", "?")))


def test_lines_that_are_no_rows_are_passed_over_and_said(tmp_path, logged):
    bad = [b"{", b"[]", b"\0" * 9, b"[" * 10**6, b'{"task": "gcd"}']
    bad += [line(index=-1), line(level=2), line(task_scores=[]), line(scores="x")]
    left = read(tmp_path, line(), *bad, line(index=4))
    assert list(left.sampled) == [3, 4] and len(left.results) == 2
    assert f"{len(bad)} lines are no rows" in logged.text


def test_a_long_file_is_said_to_be_read(tmp_path, monkeypatch, logged):
    monkeypatch.setattr("rg_env.atropos.process_run.SAID_FROM_MB", 1)
    assert len(read(tmp_path, line(messages="x" * 2**20)).results) == 1
    assert f"reading {tmp_path / 'rows.jsonl'}, 1 MB" in logged.text
