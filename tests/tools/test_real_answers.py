"""The audit of published answers: its tables hold what was put into the files."""

from __future__ import annotations

import sys

import pytest

from rg_env.evaluation.samples import Sample
from tests.support import published
from tools.real_answers import __main__ as command
from tools.real_answers import tables
from tools.real_answers.judge import verdicts

pytestmark = pytest.mark.processes

GCD = published.config_of(size=12)
ALPHA, BETA = "acme_alpha_20250101_000000", "acme_beta_20250101_000000"
WAYS = {
    ALPHA: ["right", "formatted", "twice", "untagged", "negated"],
    BETA: ["right"] * 4 + ["wrong"],
}


def with_scores(document, score):
    """Return a document whose published scores are all the same."""
    for result in document["results"]:
        for completion in result["completions"]:
            completion["score"] = score
    return document


@pytest.fixture(scope="module")
def checkout(pool, tmp_path_factory):
    """Ten items of a task, one of them another question than the library's."""
    folder = tmp_path_factory.mktemp("checkout")
    entries = published.entries_of(pool, "gcd", GCD)
    entries[0]["question"] = "What is it?"
    for run, ways in WAYS.items():
        document = published.document(
            "gcd", "arithmetic", GCD, entries, lambda place, ways=ways: ways
        )
        published.write(
            folder / "hard", run, with_scores(document, 0.9 if run == ALPHA else 0.5)
        )
    return folder


def printed(capsys, monkeypatch, *argv):
    monkeypatch.setattr(sys, "argv", ["real_answers", *map(str, argv)])
    assert command.main() == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def rows(checkout, tmp_path_factory):
    """The cells of all rows by the heading above their table."""
    out = tmp_path_factory.mktemp("out") / "scores.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        argv = ["real_answers", str(checkout), "--workers", "2", "--out", str(out)]
        patch.setattr(sys, "argv", argv)
        said = []
        patch.setattr("builtins.print", lambda *texts, **_: said.extend(texts))
        assert command.main() == 0
    found, title = {}, ""
    for line in "\n".join(said).splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(title, []).append(cells)
        elif line.startswith(("##", "ours scores", "library scores")):
            title = line.strip("# ")
    return found | {"out": out}


def test_scores_far_apart_are_counted_by_task_and_cause_with_what_the_judge_says(rows):
    library = "library scores 0.5 more: 9 of 72 answers"
    ours = "ours scores 0.5 more: 9 of 72 answers"
    assert rows[library][2:] == [["gcd", "fix", "9", "0", "9", "0"]]
    assert rows[ours][2:] == [["gcd", "normalization", "9", "9", "0", "0"]]


def test_answers_are_counted_as_right_or_wrong_by_the_judge(rows):
    assert rows["Judged"][2] == ["all", "54", "0", "18", "0", "0"]


def test_refused_completions_are_read_by_the_first_and_the_last_tag(rows):
    by_model = {
        cells[0]: cells[1:] for cells in rows["One answer outside the thinking"]
    }
    assert by_model["alpha"] == ["45", "20.0%", "9", "9", "9", "9"]
    assert by_model["beta"] == ["45", "0.0%", "0", "0", "0", "0"]


def test_a_command_given_again_scores_nothing_twice(
    rows, checkout, capsys, monkeypatch
):
    before = rows["out"].read_bytes()
    said = printed(capsys, monkeypatch, checkout, "--out", rows["out"])
    assert "library scores 0.5 more: 9 of 72 answers" in said
    assert rows["out"].read_bytes() == before


def test_examples_are_the_texts_behind_the_counts(rows, checkout, capsys, monkeypatch):
    argv = [checkout, "--out", rows["out"], "--examples", "2", "--tasks", "gcd"]
    said = printed(capsys, monkeypatch, *argv).splitlines()
    place = said.index("gcd by fix: 9")
    assert [" x '-" in line for line in said[place + 1 : place + 4]] == [
        True,
        True,
        False,
    ]


def test_a_folder_without_published_files_is_refused(checkout, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["real_answers", str(checkout), "--split", "easy"])
    with pytest.raises(SystemExit, match="no easy/RUN/"):
        command.main()


def sample_of(right, ours):
    scores = {"library": 1.0, "fixes": 1.0, "ours": ours}
    row = {"right": right, "scores": scores, "answer": "5", "gold_answer": "5"}
    row["task"] = "gcd"
    return Sample("gcd", "arithmetic", "?", ours, "right", row=row)


@pytest.mark.parametrize(("right", "ours"), [(True, 0.1), (False, 1.0)])
def test_a_task_is_named_that_the_judge_contradicts(right, ours):
    said = "\n".join(tables.judgement([sample_of(right, ours)], 1))
    cells = [1, 1, 0, 0, 0] if right else [0, 0, 1, 1, 0]
    assert f"| gcd | {' | '.join(map(str, cells))} |" in said
    assert "    1 x '5' for '5'" in said


@pytest.mark.parametrize(("right", "ours"), [(True, 1.0), (False, 0.1)])
def test_a_task_is_not_named_that_the_judge_agrees_with(right, ours):
    assert "gcd" not in "\n".join(tables.judgement([sample_of(right, ours)], 1))


def test_conclusions_are_judged_by_a_truth_table(monkeypatch):
    metadata = {"variables": ["P", "Q"], "premises": ["(P → Q)", "P"]}
    entry = {"question": "?", "answer": "", "metadata": metadata}
    made = lambda task, config: [entry]  # noqa: E731
    monkeypatch.setattr("rg_env.tasks.library.dataset_entries", made)
    answers = ["Q", "P and Q", "¬Q", "(Q ∨ ¬Q)", "what?"]  # noqa: RUF001
    said = verdicts("propositional_logic", "{}", "?", "", answers)
    assert said == [True, True, False, False, False]
