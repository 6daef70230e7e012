"""The solvers, the cells and the verdicts of the studies."""

import dataclasses
import json
import math
import statistics

import pytest

from examples.studies import cells, truths, verdicts
from rg_env import Tasks

SMALL = {
    truths.spelled_backward: ("spell_backward", {}),
    truths.sorted_words: ("word_sorting", {"min_words": 3, "max_words": 3}),
    truths.total: ("chain_sum", {"min_terms": 2, "max_terms": 4}),
}


@pytest.mark.processes
@pytest.mark.parametrize("truth", SMALL, ids=lambda truth: truth.__name__)
def test_a_solver_agrees_with_the_references_that_are_checked(truth):
    task, params = SMALL[truth]
    items = Tasks(task, params={task: params}).evaluation(25)
    assert items
    for item in items:
        is_right = truth(item.entry)
        assert is_right(item.gold)
        assert not is_right("x")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    monkeypatch.setattr(cells, "TABLES", tmp_path)

    def run(arm, task, seed):
        return {"true": 0.5 + 0.01 * (seed % 10) - 0.2 * (arm == "b"), "reward": 1.0}

    settings = {"tokens": 5}
    tasks = ("gcd", "lcm")
    metrics = ("true", "reward")
    out = [("b", "lcm")]
    return cells.Study(
        "study", ("a", "b"), tasks, metrics, run, lambda _: settings, left_out=out
    )


def main(monkeypatch, study, *words):
    monkeypatch.setattr("sys.argv", ["study", "study", *words])
    cells.main(study)


def test_cells_are_kept_and_the_table_pairs_equal_seeds(study, tmp_path, monkeypatch):
    main(monkeypatch, study)
    lines = (tmp_path / "study.md").read_text().splitlines()
    width = 2.262 * statistics.stdev(n / 100 for n in range(10)) / math.sqrt(10)
    interval = f"0.545 ({0.545 - width:.3f} to {0.545 + width:.3f})"
    assert f"| gcd | a | 10 | {interval} | 1.000 (1.000 to 1.000) |" in lines[6]
    assert lines[7].endswith("| -0.200 (-0.200 to -0.200) |")
    assert lines[-1] == "| b | 10 | -0.200 (-0.200 to -0.200) | 0.002 | worse |"
    assert not study.pending(study.seeds) and len(study.results()) == 30


def test_a_study_of_places_has_a_table_of_their_scores(study):
    def run(arm, task, seed):
        first = (seed - 100) / 10
        last = 0.5 if arm == "a" else 0.7
        return {"true": 0.0, "reward": 0.0, "curve": [[first, 0.0], [last, 0.25]]}

    study = dataclasses.replace(study, run=run, places=("easy", "hard"), left_out=())
    for cell in study.pending([101, 102]):
        study.one(cell)
    rows = ["| before | 0.15 | 0.00 |", "| a | 0.50 | 0.25 |", "| b | 0.70 | 0.25 |"]
    assert study.table().splitlines()[-3:] == rows


def test_a_cell_knows_its_settings_and_other_settings_have_other_cells(study):
    study.one(("a", "gcd", 100))
    (kept,) = [json.loads(file.read_text()) for file in cells.FOLDER.rglob("*.json")]
    assert kept["settings"] == {"tokens": 5} and kept["true"] == 0.5
    assert ("a", "gcd", 100) not in study.pending([100])
    study.settings("gcd")["tokens"] = 6
    assert ("a", "gcd", 100) in study.pending([100]) and not study.results()


def test_each_seed_that_is_there_is_printed_and_the_table_has_those_of_the_protocol(
    study, monkeypatch, capsys
):
    main(monkeypatch, study, "7", "100")
    shown = capsys.readouterr().out
    main(monkeypatch, study, "--print")
    assert shown.endswith(capsys.readouterr().out)
    assert "gcd, b, seed 7: true 0.370, reward 1.000" in shown
    assert "| gcd | a | 1 | 0.500 (-inf to inf) |" in shown
    assert not (cells.TABLES / "study.md").exists()


def test_a_cell_that_fails_leaves_nothing(study):
    def run(arm, task, seed):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        dataclasses.replace(study, run=run).one(("a", "gcd", 100))
    assert not list(cells.FOLDER.rglob("*.json"))


def test_an_interval_at_95_percent_is_students():
    bounds = verdicts.interval([0.4, 0.5, 0.6])
    assert bounds == pytest.approx((0.2516, 0.7484), abs=1e-4)


def test_p_is_the_share_of_sign_flips_that_are_as_far_from_0():
    assert verdicts.p_value([1.0] * 10) == 2 / 2**10
    assert verdicts.p_value([1.0, 1.0, -1.0]) == 1.0
    assert verdicts.p_value([]) == 1.0


def test_holm_multiplies_the_smallest_by_all_and_never_turns_the_order():
    assert verdicts.holm([0.03, 0.01, 0.9]) == pytest.approx([0.06, 0.03, 0.9])
    assert verdicts.holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])


@pytest.mark.parametrize(
    ("mean", "spread", "p", "word"),
    [
        (0.005, 0.001, 0.001, "equal"),
        (0.05, 0.001, 0.01, "better"),
        (-0.05, 0.001, 0.01, "worse"),
        (0.05, 0.001, 0.06, "undecided"),
        (0.01, 0.1, 0.5, "undecided"),
    ],
)
def test_a_verdict_is_that_of_the_protocol(mean, spread, p, word):
    differences = [mean + spread * sign for sign in (1, -1) * 5]
    assert verdicts.verdict(differences, p) == word
