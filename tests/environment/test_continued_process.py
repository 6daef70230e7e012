"""`process` continues where it stopped: the same command, the same file, its items."""

import json
import signal

import pytest

from rg_env.atropos.process_run import Processing
from rg_env.line_file import read_groups
from rg_env.results.result_file import settings_path
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import options_of, run_main
from tests.support.runs import completions_of, interrupted_when, processed

pytestmark = pytest.mark.processes


def rows_of(path):
    """Return what a file of rows holds, sorted, without how long each has taken."""
    rows = list(read_groups(path))
    for row in rows:
        del row["seconds"]
    return sorted(map(json.dumps, rows))


GROUPS = 8


def command(path, **changes):
    defaults = {
        "complexity_mode": "random",
        "total_steps": GROUPS,
        "max_num_workers": 2,
        "data_path_to_save_groups": path,
    }
    return ["process", *options_of(SIMULATED, **defaults | changes)]


def test_interrupted_it_is_continued_with_the_items_of_the_rows_that_are_missing(
    tmp_path, monkeypatch, logged
):
    path = tmp_path / "rows.jsonl"

    def rows():
        return path.read_bytes().splitlines(keepends=True) if path.exists() else []

    # In the midst of the fourth group.
    asked = interrupted_when(monkeypatch, lambda: len(asked) > 12)
    assert run_main(command(path)) == 128 + signal.SIGINT
    monkeypatch.undo()
    there = len(rows())
    assert 1 < there < GROUPS and not (tmp_path / "rows_report").exists()
    assert f"report {path}" in logged.text
    assert (
        f"only {there} of {GROUPS} groups were written; run the same c" in logged.text
    )
    left = b"".join([rows()[0], *rows()[2:]])
    path.write_bytes(left + b'{"task": "gcd", "tor')  # as a kill leaves it
    asked = completions_of(monkeypatch)
    # Settings that decide no row may change.
    how = {"max_num_workers": 3, "worker_timeout": 100, "debug_logging": True}
    assert run_main(command(path, **how)) == 0
    assert f"rows go to {path}: written {there - 1}, wanted {GROUPS}" in logged.text
    assert len(asked) == 4 * (GROUPS - there + 1)
    assert path.read_bytes().startswith(left)
    whole = tmp_path / "uninterrupted" / "rows.jsonl"
    assert run_main(command(whole)) == 0
    assert rows_of(path) == rows_of(whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "rows.jsonl",
        "rows.jsonl.settings.yaml",
        "rows_metrics.jsonl",
        "rows_report",
        "uninterrupted",
    ]


async def test_a_file_that_is_complete_or_of_another_run_is_left_as_it_is(
    tmp_path, logged
):
    path = tmp_path / "rows.jsonl"
    env, _ = await processed(tmp_path, GROUPS)
    before = path.read_bytes()
    settings = settings_path(path).read_text()
    assert "seed: 1918" in settings and "reasoning_gym:" in settings
    assert env.server.servers[0].config.api_key == "x"
    assert "api_key: ''" in settings

    async def goes_to(name, **changes):
        logged.clear()
        await processed(tmp_path, GROUPS, **changes)
        assert len(list(read_groups(tmp_path / name))) == GROUPS
        assert path.read_bytes() == before

    await goes_to("rows_1.jsonl")
    assert f"not continued: {path} has its {GROUPS} rows" in logged.text
    await goes_to("rows_2.jsonl", temperature=0.5)
    assert "rows.jsonl was made with another env.temperature" in logged.text


# -- what results move -----------------------------------------------------------------


@pytest.mark.parametrize(
    "moved",
    [
        {"complexity_mode": "curriculum", "tasks": ["spell_backward"]},
        {"task_choice": "adaptive", "tasks": ["spell_backward", "gcd"]},
    ],
)
async def test_levels_and_weights_are_those_after_the_rows_that_are_there(
    tmp_path, moved, monkeypatch
):
    first, rows = await processed(tmp_path, 12, max_num_workers=1, **moved)
    assert any(len(set(row["scores"])) > 1 for row in rows)

    async def write_nothing(self, *_):
        self._env.curr_step = 13

    monkeypatch.setattr(Processing, "_write_rows", write_nothing)
    again, _ = await processed(tmp_path, 13, max_num_workers=1, **moved)
    for part in ("progress", "curriculum", "adaptive"):
        states = [getattr(env._feedback, part) for env in (first, again)]
        if states[0] is not None:
            assert states[1].state_dict() == states[0].state_dict()
    assert again._feedback.changes == first._feedback.changes
