"""The solvers and the cells of the studies."""

import json
import subprocess
import sys

import pytest

from examples.studies import cells, truths
from rg_env import Tasks
from rg_env.installation import PROJECT

SMALL = {
    truths.spelled_backward: ("spell_backward", {}),
    truths.unjumbled: ("letter_jumble", {"min_words": 2, "max_words": 2}),
    truths.halting: ("game_of_life_halting", {"grid_size_x": 8, "grid_size_y": 8}),
    truths.rectangles: (
        "rectangle_count",
        {"width": 10, "height": 10, "max_rectangles": 5},
    ),
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
        assert is_right is None or is_right(item.gold)
        assert is_right is None or not is_right("x")
    assert sum(truth(item.entry) is not None for item in items) > 20


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Make a study of a function, in a folder of its own."""
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    monkeypatch.setattr(cells, "TABLES", tmp_path / "results")
    monkeypatch.setattr("sys.argv", ["study"])

    def make(run, left_out=()):
        arms = ("ours", "library")
        tasks = ("gcd", "lcm")
        metrics = ("true", "reward")
        return cells.Cells("study", arms, tasks, (0, 1, 2), metrics, run, left_out)

    return make


def test_an_arm_and_a_task_that_do_not_go_together_have_no_cell(study):
    ran = []

    def run(*cell):
        ran.append(cell[:2])
        return {"true": 0.5, "reward": 0.5}

    whole = study(run, [("library", "lcm")])
    for cell in whole.pending():
        whole.one(cell)
    assert {*ran} == {("ours", "gcd"), ("ours", "lcm"), ("library", "gcd")}
    assert not whole.pending() and len(whole.table().splitlines()) == 5


def test_cells_are_kept_and_the_table_pairs_equal_seeds(study, tmp_path, monkeypatch):
    def run(arm, task, seed, share):
        return {"true": 0.5 + 0.1 * seed - 0.2 * (arm == "library"), "reward": share}

    of = study(run)
    for seed in of.seeds:
        for arm in of.arms:
            of.one((arm, "gcd", seed))
    assert len(of.results()) == 6
    kept = json.loads((tmp_path / "study" / "library-gcd-1.json").read_text())
    assert kept["true"] == pytest.approx(0.4) and kept["seconds"] >= 0
    lines = of.table().splitlines()
    assert len(lines) == 4 and lines[2].startswith("| gcd | ours | 3 | 0.600 (")
    assert "| -0.200 (-0.200 to -0.200) |" in lines[3]
    monkeypatch.setattr("sys.argv", ["study", "--only", "ours", "lcm", "2"])
    of.main()
    assert ("ours", "lcm", 2) in of.results()


PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, {project!r})
from examples.studies import cells

cells.FOLDER = Path(__file__).parent

def run(arm, task, seed, share):
    with open(cells.FOLDER / "runs", "a") as runs:
        print(arm, task, seed, share, file=runs)
    return {{"true": 1 / (seed / (arm != "faulty"))}}

cells.Cells("study", ("ours", "faulty"), ("gcd",), (1, 2), ("true",), run).main()
"""


@pytest.mark.processes
def test_a_study_says_how_long_it_takes_and_runs_what_is_not_there(tmp_path):
    program = tmp_path / "study.py"
    program.write_text(PROGRAM.format(project=str(PROJECT)))

    def study():
        command = [sys.executable, str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.splitlines(), done.stderr, done.returncode

    lines, errors, code = study()
    assert lines[0].startswith("4 cells: some ") and "| gcd | ours | 2 |" in lines[-1]
    assert "ZeroDivisionError" in errors and code == 1
    runs = (tmp_path / "runs").read_text().splitlines()
    assert runs[:3] == ["ours gcd 1 0", "ours gcd 1 0", f"ours gcd 1 {cells.TRIAL}"]
    assert sorted(runs[3:])[2:] == ["ours gcd 1 1.0", "ours gcd 2 1.0"]
    lines, *_ = study()  # the two that have failed
    assert lines[0].startswith("2 cells: some ")
    runs = (tmp_path / "runs").read_text().splitlines()
    assert sorted(runs[7:]) == ["faulty gcd 1 1.0", "faulty gcd 2 1.0"]


def test_the_table_of_a_whole_study_is_written_to_a_file(study, tmp_path):
    whole = study(lambda *_: {"true": 0.5, "reward": 0.5})
    for cell in whole.pending():
        whole.one(cell)
    whole.main()
    written = (tmp_path / "results" / "study.md").read_text(encoding="utf-8")
    assert written.endswith(f"\n\n{whole.table()}\n")
    assert "| lcm | library | 3 |" in written


def test_a_cell_that_fails_leaves_nothing(study, tmp_path):
    def run(arm, task, seed, share):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        study(run).one(("ours", "gcd", 0))
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.processes
def test_the_arms_value_the_same_answers_differently():
    pytest.importorskip("torch")
    wrong = pytest.importorskip("examples.studies.wrong_rewards")
    params = {"spell_backward": {"min_word_len": 5}}
    items = Tasks("spell_backward", params=params).evaluation(40)
    texts = [
        (f"<answer>{item.gold}</answer>", f"<answer>{item.gold[:-1]}q</answer>", "no")
        for item in items
    ]
    pairs = list(zip(items, texts, strict=True))
    for item, of_item in pairs[:3]:
        assert wrong.true_values(item, of_item) == [1.0, 0.0, 0.0]
        assert 0 < wrong.scores(item, of_item)[1] <= 0.5
        assert wrong.library(item, of_item)[1] >= 0.8
        assert wrong.scores(item, of_item)[::2] == wrong.library(item, of_item)[::2]
    for arm, share in {"flips": wrong.FLIPPED, "refusals": wrong.REFUSED}.items():
        reward = wrong.reward_of(arm, 0)
        values = [reward(*pair) for pair in pairs]
        assert values == [reward(*pair) for pair in pairs]
        assert sum(v[0] == 0 for v in values) / 40 == pytest.approx(share, abs=0.2)
        paid = sum(v[2] == 1 for v in values)
        assert paid == 0 if arm == "refusals" else 0 < paid < 15
