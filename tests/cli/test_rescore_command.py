"""`rescore`: the scores of saved completions, and continued files."""

from __future__ import annotations

import collections
import json
import re

import pytest

from rg_env.library import worker_jobs
from rg_env.results.samples import SCORES
from rg_env.reward.score import Score
from rg_env.stream.group_scorer import GroupScorer, ScoringUnavailableError
from tests.support import published
from tests.support.parts import GUARD_S, run_main
from tests.support.reported import write_lines

pytestmark = pytest.mark.processes

GCD = published.config_of(size=20)
WAYS = ["right", "formatted", "twice", "untagged", "wrong"]


@pytest.fixture(scope="module")
def corpus(pool, tmp_path_factory):
    """Two runs of two tasks, two hundred completions."""
    folder = tmp_path_factory.mktemp("corpus")
    for task in ("gcd", "lcm"):
        entries = published.entries_of(pool, task, GCD)
        for run in ("one", "two"):
            ways = WAYS if run == "one" else ["right"] * 5
            document = published.document(
                task, "arithmetic", GCD, entries, lambda place, ways=ways: ways
            )
            published.write(folder, run, document)
    return folder


@pytest.fixture
def own(pool, tmp_path):
    """A right completion of an item, and one of an item that is not made again."""
    entry = pool.call(worker_jobs.make_entry, "gcd", {}, 3, deadline_s=GUARD_S)
    lines = [
        {"task": "gcd", "seed": 3, "text": f"<answer>{entry['answer']}</answer>"},
        {"task": "gdc", "seed": 3, "text": "<answer>1</answer>"},
    ]
    return write_lines(tmp_path / "own" / "lines.jsonl", lines)


def rescored(capsys, *argv):
    assert run_main(["rescore", "--workers", "2", *map(str, argv)]) == 0
    return capsys.readouterr().out


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_scores_of_all_runs_are_compared(corpus, capsys):
    results = json.loads(rescored(capsys, corpus, "--json"))["results"]
    assert [each["name"] for each in results] == [*SCORES]
    assert [each["all"]["completions"] for each in results] == [200] * 4
    saved, *_, ours = (each["task"]["lcm"]["by_item"]["mean"] for each in results)
    assert saved > ours == 0.7


def test_an_answer_in_the_file_is_not_scored_again(corpus, capsys, tmp_path):
    out = tmp_path / "out.jsonl"
    first = rescored(capsys, corpus / "one", "--out", out)
    assert len(rows_of(out)) == 100
    again = rescored(capsys, corpus / "one", "--out", out)
    assert (again, len(rows_of(out))) == (first, 100)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join([*lines[:30], b'{"task": "gcd", "sco']))  # as a kill does
    rescored(capsys, corpus, "--out", out)
    places = collections.Counter((row["source"], row["place"]) for row in rows_of(out))
    assert (len(places), max(places.values())) == (200, 1)


@pytest.mark.parametrize("outcome", ["unscored", "timeout"])
def test_an_answer_without_a_score_is_scored_again(
    own, capsys, tmp_path, monkeypatch, outcome
):
    async def lost(scorer, item, entry, answers):
        if outcome == "unscored":
            raise ScoringUnavailableError("workers were killed")
        return [Score(0.0, outcome, answer) for answer in answers]

    out = tmp_path / "out.jsonl"
    monkeypatch.setattr(GroupScorer, "score_group", lost)
    assert run_main(["rescore", str(own), "--out", str(out)]) == 1
    printed = capsys.readouterr().out
    assert {"unmatched 1", f"{outcome} 1"} == set(
        re.search("so not in the means: (.*)", printed)[1].split(", ")
    )
    assert [row["outcome"] for row in rows_of(out)] == ["unmatched"]
    monkeypatch.undo()
    rescored(capsys, own, "--out", out)
    assert [row["outcome"] for row in rows_of(out)] == ["unmatched", "right"]


@pytest.mark.parametrize(
    "text",
    ["what I learned", "[1]\n", '{"task": "x", "answer": ""}\n'],
)
def test_a_file_of_another_kind_is_not_changed(own, tmp_path, capsys, text):
    out = tmp_path / "notes.txt"
    out.write_text(text)
    assert run_main(["rescore", str(own), "--out", str(out)]) == 2
    assert "is not of reasoning-gym" in capsys.readouterr().err
    assert out.read_text() == text


def test_the_output_file_is_not_one_of_the_sources(own, capsys):
    out = own.parent / "out.jsonl"
    for _ in range(2):
        document = json.loads(rescored(capsys, own.parent, "--out", out, "--json"))
        counts = document["results"][-1]["all"]
        assert (counts["completions"], counts["failed"]) == (1, 1)
