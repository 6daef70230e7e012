"""`process`: rows and a report, with the simulated model behind the real command."""

import pytest

from rg_env.errors import RunError
from rg_env.line_file import read_groups
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.faults import LONE, always
from tests.support.inference_server import inference_server
from tests.support.parts import FAST_TASKS, options_of, run_main
from tests.support.reported import read_page
from tests.support.runs import fill_disk, process_env, processed

pytestmark = pytest.mark.processes

GROUPS = 6


def test_it_leaves_rows_their_numbers_and_a_report(tmp_path):
    path = tmp_path / "rows.jsonl"
    options = options_of(SIMULATED, total_steps=GROUPS, data_path_to_save_groups=path)
    assert run_main(["process", *options]) == 0
    rows = list(read_groups(path))
    assert len(rows) == GROUPS
    for row in rows:
        assert row["task"] in FAST_TASKS and isinstance(row["gold_answer"], str)
        assert row["model"] == SIMULATED
        columns = [row[name] for name in ("messages", "answers", "outcomes", "scores")]
        assert [len(column) for column in (row["tokens"], *columns)] == [4] * 5
        for conversation, answer, outcome, score in zip(*columns, strict=True):
            roles = [message["role"] for message in conversation]
            assert roles == ["system", "user", "assistant"]
            assert all(message["content"] for message in conversation)
            assert (answer is None) == (outcome not in ("right", "partial", "wrong"))
            assert answer is None or answer in conversation[-1]["content"]
            assert (outcome == "right") == (score == 1.0)
    assert any(score > 0 for row in rows for score in row["scores"])

    lines = (tmp_path / "rows_metrics.jsonl").read_text().splitlines()
    assert len(lines) == GROUPS
    page = read_page(tmp_path / "rows_report")
    assert page.notes[1] == "The model `simulated` says nothing about any real one."
    (run,) = page.tables["Runs"]
    assert (run["run"], run["model"]) == ("rows", "simulated")


async def test_a_disk_that_takes_no_row_ends_it_with_a_sentence(tmp_path, monkeypatch):
    env = process_env(tmp_path, 3)
    fill_disk(monkeypatch)
    sentence = r"env\.data_path_to_save_groups: .*rows\.jsonl: .*No space left"
    with pytest.raises(RunError, match=sentence):
        await env.process_manager()
    assert env.ledger.endings["written"] == 0 and env.ledger.in_flight == 0


# -- bad bytes -------------------------------------------------------------------------


async def test_bad_text_is_kept_as_it_is_in_rows_and_dumps(tmp_path):
    async with inference_server(always("nasty_text")) as server:
        _, rows = await processed(
            tmp_path,
            3,
            server.url,
            "openai",
            tasks=["gcd"],
            max_token_length=4096,
            data_dumps_dir=str(tmp_path / "dumps"),
            dump_rollouts=True,
            dump_failed_rollouts=True,
            rollout_save_score_threshold=0.0,
        )
    dumped = [g for p in (tmp_path / "dumps").glob("r*") for g in read_groups(p)]
    assert len(rows) == len(dumped) == 3
    in_rows = {m[-1]["content"] for row in rows for m in row["messages"]}
    rollouts = [rollout for group in dumped for rollout in group["rollouts"]]
    assert in_rows == {r["conversation"][-1]["content"] for r in rollouts}
    assert LONE in in_rows
