"""The audit of published answers: its tables hold what was put into the files."""

import sys

import polars as pl
import pytest

from tests.support import published
from tests.support.parts import run_main
from tools import real_answers as command

pytestmark = pytest.mark.processes

GCD = published.config_of(size=12)
ALPHA, BETA = "acme_alpha_20250101_000000", "acme_beta_20250101_000000"
WAYS = {
    ALPHA: ["right", "formatted", "twice", "untagged", "negated"],
    BETA: ["right"] * 4 + ["wrong"],
}


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
        published.write(folder / "hard", run, document)
    return folder


@pytest.fixture(scope="module")
def scores(checkout, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "scores.jsonl"
    assert run_main(["rescore", "--workers=2", str(checkout), "--out", str(out)]) == 0
    return out


@pytest.fixture
def said(scores, capsys, monkeypatch):
    argv = ["real_answers", str(scores)]
    monkeypatch.setattr(sys, "argv", argv)
    assert command.main() == 0
    return capsys.readouterr().out


def test_verdicts_are_counted(said):
    assert "all 54 0 18 0 0" in cells_of(said)


def cells_of(text):
    return " ".join(text.replace("|", "").split())


@pytest.mark.parametrize(("right", "ours"), [(True, 0.1), (False, 1.0)])
def test_a_task_is_named_that_the_judge_contradicts(right, ours):
    answers = pl.DataFrame({"task": ["gcd"], "right": [right], "ours": [ours]})
    rows = command.judgement(answers).rows()
    assert ("gcd", *((1, 1, 0, 0, 0) if right else (0, 0, 1, 1, 0))) in rows


def test_conclusions_are_judged_by_a_truth_table():
    metadata = {"variables": ["P", "Q"], "premises": ["(P → Q)", "P"]}
    entry = {"question": "?", "answer": "", "metadata": metadata}
    answers = ["Q", "P and Q", "¬Q", "(Q ∨ ¬Q)", "what?"]  # noqa: RUF001
    said = command.verdicts("propositional_logic", entry, answers)
    assert said == [True, True, False, False, False]
