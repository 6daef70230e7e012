"""The folder of a report: what is in it, what it costs, and when it is there."""

import re

import pytest

from rg_env.errors import SettingError, visible
from rg_env.results.report import MAX_TEXT_CHARS, write_report
from rg_env.results.run_metrics import metrics_path
from tests.support.hostile_texts import HOSTILE
from tests.support.reported import (
    UUID,
    dump,
    group,
    published,
    read_page,
    read_script,
    rollout,
    write_lines,
)

FIRST_RUN = UUID.format(1)


def metrics_of(folder, *lines, run=FIRST_RUN):
    """Write the numbers of a run, of the steps from 1 on."""
    steps = [{"step": k, **line} for k, line in enumerate(lines, 1)]
    write_lines(folder / f"{run}_metrics.jsonl", steps)


def samples_of(folder, name, rows):
    """Write the samples of an evaluation; those without a score given are right."""
    given = {"task": "gcd", "category": "arithmetic", "score": 1.0}
    lines = [{**given, **row, "question": f"{row['question']}?"} for row in rows]
    write_lines(folder / name / "samples.jsonl", lines)


def reported(folder, *paths):
    """Write a report; return what its page says."""
    write_report([str(path) for path in paths], folder)
    return read_page(folder)


def texts_of(folder):
    """Return the texts of each sample of a report, in their order."""
    chunks = map(read_script, sorted(folder.glob("texts-*.js")))
    return [row for _, rows in chunks for row in rows]


# -- what it reads ---------------------------------------------------------------------


def test_files_of_every_kind_are_one_report(tmp_path):
    dump(tmp_path / "dumps", [group(rollout("2", 1.0), rollout("3"))])
    published(tmp_path / "published", "model_one", "lcm", ["2"])
    rows = {"task": "gcd", "scores": [1.0], "outcomes": ["right"], "answers": ["2"]}
    rows["model"] = "policy"
    write_lines(tmp_path / "rows.jsonl", [rows])
    numbers = [{"step": 1, "time": "2026-02-01T08:30:00+00:00"}]
    write_lines(tmp_path / "rows_metrics.jsonl", numbers)
    samples_of(tmp_path, "evaluated", [{"question": "What"}])
    write_lines(tmp_path / "evaluated" / "metrics.json", ["{}"])
    page = reported(tmp_path / "report", tmp_path)
    told = {(r["run"], r["model"], r["began"]) for r in page.tables["Runs"]}
    assert told == {
        ("0123abcd, 2026-01-31 12:00", "", "2026-01-31 12:00"),
        ("model_one", "", ""),
        ("rows", "policy", "2026-02-01 08:30"),
        ("evaluated", "", ""),
    }
    assert page.notes[0].startswith("5 rollouts of 4 runs in 5 files of ")
    assert page.notes[-1].startswith("Scores say little in gcd: ")
    assert not any(note.startswith("Not read") for note in page.notes)


# -- what it says ----------------------------------------------------------------------


def test_pass_at_k_is_of_as_many_completions_as_most_items_have(tmp_path):
    scores = [(1.0, 0.0), (0.0, 0.0, 0.0), (0.5, 0.0), (1.0,)]
    rows = [
        {"question": q, "score": s} for q, values in enumerate(scores) for s in values
    ]
    samples_of(tmp_path, "one", rows)
    (run,) = reported(tmp_path / "r", tmp_path / "one").tables["Runs"]
    assert float(run["pass@2"]) == pytest.approx(1 / 3)
    # Groups of two or more.
    assert float(run["with variance"]) == pytest.approx(2 / 3)


def test_runs_of_one_name_are_named_by_their_folders_and_models(tmp_path):
    rows = [{"question": 1, "model": "m"}, {"question": 2, "model": "m"}]
    samples_of(tmp_path / "step_1", "eval", rows)
    samples_of(tmp_path / "step_2", "eval", rows)
    samples_of(tmp_path, "other", [*rows, {"question": 3, "model": "n"}])
    runs = reported(tmp_path / "r", tmp_path).tables["Runs"]
    root = str(tmp_path).lstrip("/")
    evals = {f"{root}/step_1/eval", f"{root}/step_2/eval"}
    assert {run["run"] for run in runs} == {*evals, "other, m", "other, n"}


def test_the_figures_are_those_of_the_samples(tmp_path):
    lines = [
        group(rollout("2", 1.0), rollout("3"), level=0.25),
        group(
            rollout("4", 0.5, finish_reason="length", completion_tokens=15),
            rollout("", outcome="no_answer", answer=None),
            level=0.75,
            seed=8,
        ),
        group(rollout("5", 1.0), rollout("5", 1.0), seed=9),
    ]
    page = reported(tmp_path / "report", dump(tmp_path / "d", lines))
    (run,) = page.tables["Runs"]
    figures = {name: run[name] for name in list(run)[1:-2]}
    assert {name: float(value) for name, value in figures.items()} == {
        "score": pytest.approx(3.5 / 6),
        "right": 0.5,
        "pass@6": 1,
        "answered": pytest.approx(5 / 6),
        "with variance": pytest.approx(2 / 3),
        "truncated": pytest.approx(1 / 6),
        "level": 0.5,
        "tokens": pytest.approx(40 / 6),
        "rollouts": 6,
        "items": 1,
    }
    assert [row["level"] for row in page.tables["Levels"]] == [
        "0.2 to 0.3",
        "0.7 to 0.8",
    ]
    assert [row["category"] for row in page.tables["Categories"]] == ["arithmetic"]
    shares = {row["outcome"]: row["rollouts"] for row in page.tables["Outcomes"]}
    assert shares == {"right": "3", "partial": "1", "wrong": "1", "no_answer": "1"}


def test_a_length_is_a_whole_number_at_both_ends_of_its_interval_and_axis(tmp_path):
    lengths = (1, 901)
    lines = [group(rollout("2", completion_tokens=n, question=f"{n}")) for n in lengths]
    dump(tmp_path, lines)
    metrics_of(tmp_path, *({"train/completion_tokens": n} for n in lengths))
    reported(tmp_path / "r", tmp_path)
    said = " ".join((tmp_path / "r" / "index.html").read_text().split())
    assert re.search(r">451<small>0 to [1-9][\d,]*</small>", said)
    assert "<div><span>901</span><span>450</span><span>0</span></div>" in said


def test_the_head_counts_the_files_that_it_names(tmp_path):
    dump(tmp_path, [group(rollout("2"))])
    (path,) = tmp_path.glob("*.jsonl")
    metrics_path(path).parent.mkdir(exist_ok=True)
    metrics_path(path).write_text('{"step": 1, "train/mean_score": 1}\n')
    assert f"in 1 file of {path.name}; " in reported(tmp_path / "r", path).notes[0]


def test_a_curve_of_many_steps_has_a_hundred_points_of_their_means(tmp_path):
    metrics_of(tmp_path, *({"train/mean_score": step % 2} for step in range(200)))
    ((_, label, points),) = reported(tmp_path / "report", tmp_path).curves["score"]
    assert label == "0123abcd ends at 0.500"
    assert len(points) == 100 and {height for _, height in points} == {500}


def test_a_run_has_one_number_and_so_one_colour_in_every_curve(tmp_path):
    both = {"train/mean_score": 1, "train/level": 1}
    metrics_of(tmp_path, {"train/mean_score": 1}, {"train/mean_score": 1}, run="a")
    metrics_of(tmp_path, both, both, run="b")
    curves = reported(tmp_path / "r", tmp_path).curves
    assert curves["level"] == curves["score"][1:]


def test_the_newest_alarms_of_each_run_stand_in_it(tmp_path):
    first, last = [["a", "gcd", n, "32 groups", ["'0': 1.0"]] for n in (1, 2)]
    metrics_of(tmp_path, {"alarms": [first]}, {"alarms": [last]}, {})
    with next(tmp_path.iterdir()).open("a") as file:
        file.write('[]\n3\n{"step": 9, "alarms": [1]}\n{"step": 9, "alarms": 1}\n')
    notes = reported(tmp_path / "r", tmp_path).notes
    assert notes[1] == "0123abcd: a in gcd, 2 times, the newest: 32 groups"


def test_a_run_says_how_many_of_its_scored_rollouts_the_dump_files_hold(tmp_path):
    dump(tmp_path, [group(rollout("2", 1.0), rollout("3"))])
    metrics_of(tmp_path, {"train/rollouts_scored": 8})
    reported(tmp_path / "r", tmp_path)
    text = (tmp_path / "r" / "index.html").read_text()
    assert text.count("2<small>of 8 scored</small>") == 1


# -- texts -----------------------------------------------------------------------------


def test_every_text_is_kept_letter_by_letter_in_plain_ascii(tmp_path):
    texts = [hostile.text for hostile in HOSTILE if len(hostile.text) < 10_000]
    texts += ["</script><script>alert(1)</script>", "half \ud800", "\u2028\u202e\x00"]
    lines = [group(rollout(f"{text}.", question=text, answer=text)) for text in texts]
    reported(tmp_path / "report", dump(tmp_path / "d", lines))
    found = texts_of(tmp_path / "report")
    texts = [visible(text) for text in texts]
    assert [row["question"] for row in found] == texts
    assert [row["completion"] for row in found] == [f"{text}." for text in texts]
    assert {row["place"].rpartition(".")[2] for row in found} == {"1"}


def test_a_text_that_is_too_long_lacks_its_middle_and_says_so(tmp_path):
    text = "a" * MAX_TEXT_CHARS + "b" * MAX_TEXT_CHARS
    reported(tmp_path / "r", dump(tmp_path / "d", [group(rollout(text))]))
    (found,) = texts_of(tmp_path / "r")
    begin, said, end = found["completion"].split("\n\n")
    assert (begin, end) == ("a" * (MAX_TEXT_CHARS // 2), "b" * (MAX_TEXT_CHARS // 2))
    assert said == "[... 32,000 of 64,000 characters are left out here ...]"


# -- the folder ------------------------------------------------------------------------


def test_a_report_replaces_one_and_nothing_else(tmp_path):
    path = dump(tmp_path / "d", [group(rollout("2", 1.0))])
    folder = tmp_path / "report"
    reported(folder, path)
    files = {file.name for file in folder.iterdir()}
    for name in ("texts-0099.js", "notes.md"):
        (folder / name).touch()
    reported(folder, path)
    assert {file.name for file in folder.iterdir()} == files | {"notes.md"}
    (tmp_path / "d" / "report.js").touch()  # as a report has one
    with pytest.raises(SettingError, match="is there already"):
        reported(tmp_path / "d", path)
    names = {file.name for file in (tmp_path / "d").iterdir()}
    assert names == {path.name, "report.js"}
