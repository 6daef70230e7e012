"""`process`: rows and a report, with the simulated server behind the real command."""

import asyncio

import pytest

from rg_env.errors import RunError
from rg_env.pages.report import write_report
from rg_env.reports import alarms
from rg_env.rollouts.json_encoding import read_groups
from tests.support.faults import LONE, NASTY, always
from tests.support.inference_server import faulty_server
from tests.support.parts import (
    FAST_TASKS,
    GUARD_S,
    NOWHERE,
    options_of,
    run_main,
    start_entry,
    vllm_reply,
    vllm_server,
)
from tests.support.reported import read_script
from tests.support.runs import fill_disk_of, process_env, status_of

pytestmark = pytest.mark.processes

GROUPS = 6


def process(folder, url, kind="vllm", **changes):
    """Run `process`; return its status and its rows."""
    path = folder / "rows.jsonl"
    given = {"total_steps": GROUPS, "data_path_to_save_groups": path}
    status = run_main(["process", *options_of(url, kind, **(given | changes))])
    return status, list(read_groups(path)) if path.exists() else []


@pytest.fixture(scope="module")
def done(simulated, tmp_path_factory):
    """The folder, status and rows of one run."""
    folder = tmp_path_factory.mktemp("process")
    return folder, *process(folder, simulated.url)


def test_it_ends_with_status_0_and_as_many_rows_as_asked_for(done):
    _, status, rows = done
    assert (status, len(rows)) == (0, GROUPS)


def test_the_numbers_lie_beside_the_rows_where_a_report_finds_them(done, tmp_path):
    folder = done[0]
    lines = (folder / "rows_metrics.jsonl").read_text().splitlines()
    assert len(lines) == GROUPS
    write_report([str(folder / "rows.jsonl")], tmp_path / "report")
    (numbers,) = read_script(tmp_path / "report" / "overview.js")["metrics"]
    assert numbers["steps"][-1] == GROUPS


def test_log_probabilities_of_a_temperature_are_checked(simulated, tmp_path, logged):
    status, rows = process(tmp_path, simulated.url, temperature=0.5, total_steps=1)
    assert (status, len(rows)) == (0, 1)
    assert "log-probabilities of env.temperature" in logged.text


def test_a_row_holds_whole_conversations(done):
    for row in done[2]:
        assert len(row["messages"]) == 4
        for conversation in row["messages"]:
            roles = [message["role"] for message in conversation]
            assert roles == ["system", "user", "assistant"]
            assert all(message["content"] for message in conversation)


def test_a_row_has_the_task_the_reference_answer_and_every_outcome(done):
    for row in done[2]:
        assert row["task"] in FAST_TASKS
        assert isinstance(row["gold_answer"], str)
        for name in ("answers", "outcomes", "scores"):
            assert len(row[name]) == 4
        for answer, outcome in zip(row["answers"], row["outcomes"], strict=True):
            assert (answer is None) == (outcome not in ("right", "partial", "wrong"))


def test_the_answers_stand_in_their_own_conversations(done):
    for row in done[2]:
        for answer, conversation in zip(row["answers"], row["messages"], strict=True):
            assert answer is None or answer in conversation[-1]["content"]


def test_right_answers_score_1_and_are_told_from_the_rest(done):
    pairs = [
        (outcome, score)
        for row in done[2]
        for outcome, score in zip(row["outcomes"], row["scores"], strict=True)
    ]
    assert all((outcome == "right") == (score == 1.0) for outcome, score in pairs)


def test_rows_hold_what_a_trainer_needs(done):
    for row in done[2]:
        lengths = [len(tokens) for tokens in row["tokens"]]
        assert [len(mask) for mask in row["masks"]] == lengths
        assert [len(logprobs) for logprobs in row["inference_logprobs"]] == lengths


def test_the_report_has_every_rollout(done):
    folder = done[0] / "rows_report"
    assert (folder / "index.html").is_file()
    overview = read_script(folder / "overview.js")
    assert overview["samples"] == sum(len(row["scores"]) for row in done[2])
    assert {name for name, _ in overview["tasks"]} == {row["task"] for row in done[2]}


def test_the_report_shows_the_alarms_of_the_run(tmp_path, simulated, monkeypatch):
    monkeypatch.setattr(alarms, "GROUPS_WITHOUT_VARIANCE", 1)
    own = {"tasks": "gcd", "data_dumps_dir": tmp_path / "dumps"}
    process(tmp_path, simulated.url, total_steps=12, **own)
    overview = read_script(tmp_path / "rows_report" / "overview.js")
    rows = read_script(tmp_path / "rows_report" / "alarms.js")
    ((run, name, task, times, said, _),) = rows
    assert (name, task, times) == ("no_variance", "gcd", 1)
    assert overview["metrics"][0]["name"] == run and "equal rewards" in said


def test_groups_of_equal_scores_are_kept(tmp_path, simulated):
    status, rows = process(tmp_path, simulated.url, group_size=1)
    assert (status, len(rows)) == (0, GROUPS)
    assert all(len(row["scores"]) == 1 for row in rows)


@pytest.mark.parametrize("kind", ["openai", "sglang"])
def test_every_type_of_server_gives_rows(tmp_path, simulated, kind):
    status, rows = process(tmp_path, simulated.url, kind, total_steps=3)
    assert (status, len(rows)) == (0, 3)
    assert any(score > 0 for row in rows for score in row["scores"])


def test_no_groups_to_write_are_refused_and_leave_no_file(tmp_path, capsys):
    status, rows = process(tmp_path, NOWHERE, total_steps=0)
    assert (status, rows) == (2, [])
    assert "env.total_steps" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_works_without_a_wandb_account(tmp_path, simulated, monkeypatch):
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no_netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "rows.jsonl"
    options = options_of(simulated.url, total_steps=1, data_path_to_save_groups=path)
    options = [option for option in options if "use_wandb" not in option]
    with start_entry("process", *options, cwd=tmp_path) as child:
        said, _ = child.communicate(timeout=GUARD_S)
    assert child.returncode == 0, said
    assert "W&B has no login" in said


# -- servers that are down -------------------------------------------------------------


def test_a_server_that_is_not_there_ends_it_with_status_1_and_is_named(
    tmp_path, logged
):
    status, rows = process(tmp_path, NOWHERE, give_up_after_s=1)
    assert (status, rows) == (1, [])
    said = [r.getMessage() for r in logged.records if NOWHERE in r.getMessage()]
    assert any("--openai.base_url" in line for line in said)
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_missing_item_does_not_end_the_run_with_success(tmp_path):
    async def run():
        async with vllm_server(lambda body: vllm_reply(["x"] * body["n"])) as url:
            env = process_env(url, tmp_path / "rows.jsonl", 3)

            async def get_next_item():
                return None

            env.get_next_item = get_next_item
            return await status_of(env.process_manager())

    assert asyncio.run(run()) == 1


def test_a_disk_that_takes_no_row_ends_it_with_a_sentence(tmp_path):
    async def run():
        async with vllm_server(lambda body: vllm_reply(["x"] * body["n"])) as url:
            env = process_env(url, tmp_path / "rows.jsonl", 3)
            fill_disk_of(env.jsonl_writer)
            said = r"env\.data_path_to_save_groups: .*rows\.jsonl: .*No space left"
            with pytest.raises(RunError, match=said):
                await env.process_manager()
            return env.ledger

    ledger = asyncio.run(run())
    assert ledger.outcomes["written"] == 0 and ledger.in_flight == 0


# -- bad bytes -------------------------------------------------------------------------


def processed(folder, kind, fault, groups):
    """Process groups whose first completion is bad; return rows, dumps and texts."""

    async def run():
        async with faulty_server(always(fault)) as server:
            env = process_env(
                server.url,
                folder / "rows.jsonl",
                groups,
                kind,
                tasks=["gcd"],
                max_token_length=4096,
                data_dumps_dir=str(folder / "dumps"),
                dump_rollouts=True,
                dump_failed_rollouts=True,
                rollout_save_score_threshold=0.0,
            )
            await env.process_manager()

    asyncio.run(run())
    path = folder / "rows.jsonl"
    dumps = [g for p in sorted((folder / "dumps").glob("r*")) for g in read_groups(p)]
    write_report([str(path)], folder / "report")
    chunks = map(read_script, sorted((folder / "report").glob("texts-*.js")))
    texts = [text for chunk in chunks for text in chunk["texts"]]
    return list(read_groups(path)), dumps, texts


def texts_in_rows(found):
    return {m[-1]["content"] for row in found for m in row["messages"]}


def texts_in_dumps(found):
    return {r["conversation"][-1]["content"] for g in found for r in g["rollouts"]}


def test_text_that_is_no_unicode_is_kept_as_it_is_in_rows_and_dumps(tmp_path):
    found, dumps, texts = processed(tmp_path, "openai", "nasty_text", 3)
    assert len(found) == 3 and len(dumps) == 3
    assert LONE in texts_in_rows(found)
    assert LONE in texts_in_dumps(dumps)
    assert LONE in texts


def test_control_characters_are_kept_as_they_are_in_rows_and_dumps(tmp_path):
    found, dumps, texts = processed(tmp_path, "vllm", "nasty_text", 12)
    assert len(found) == 12 and len(dumps) == 12
    assert texts_in_rows(found) == texts_in_dumps(dumps)
    # The tokens of two of them are special and are no text.
    assert len(texts_in_rows(found) & set(NASTY)) >= 3
    assert LONE not in texts


def test_megabytes_of_text_are_kept_in_rows_and_dumps_and_shown(tmp_path):
    found, dumps, texts = processed(tmp_path, "openai", "endless_text", 1)
    longest = max(texts_in_rows(found), key=len)
    assert len(longest) == len("<answer>") + 3_000_000
    assert longest in texts_in_dumps(dumps)
    assert any(isinstance(t, list) and t[2] == len(longest) for t in texts)
