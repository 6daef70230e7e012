"""The folder of a report: what is in it, what it costs, and when it is there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rg_env.errors import SettingError
from rg_env.results.report import write_report
from rg_env.results.report_tally import FIGURES
from tests.support.hostile_texts import HOSTILE
from tests.support.reported import UUID, dump, group, published, read_script, rollout


def metrics_of(folder: Path, *lines: dict[str, Any], run: int = 1) -> None:
    """Write the numbers of a run, of the steps from 1 on."""
    steps = [json.dumps({"step": k, **line}) for k, line in enumerate(lines, 1)]
    (folder / f"{UUID.format(run)}_metrics.jsonl").write_text("\n".join(steps))


def reported(folder: Path, *paths: Path, **how: Any) -> dict[str, Any]:
    """Write a report; return what it shows before anything is chosen."""
    write_report([str(path) for path in paths], folder, **how)
    overview: dict[str, Any] = read_script(folder / "overview.js")
    return overview


def figures_of(overview: dict[str, Any]) -> dict[str, list[float]]:
    """Return the mean of each figure of all runs, with its interval."""
    return dict(zip(FIGURES, overview["all"]["figures"], strict=True))


def texts_of(folder: Path) -> list[dict[str, Any]]:
    """Return the texts of each sample of a report, in their order."""
    chunks = map(read_script, sorted(folder.glob("texts-*.js")))
    return [row for chunk in chunks for row in chunk["rows"]]


# -- what it reads ---------------------------------------------------------------------


def test_files_of_every_kind_are_one_report(tmp_path: Path) -> None:
    dump(tmp_path / "dumps", [group(rollout("2", 1.0), rollout("3"))])
    published(tmp_path / "published", "model_one", "lcm", [("What?", "2", 1.0)])
    rows = {"task": "gcd", "scores": [1.0], "outcomes": ["right"], "answers": ["2"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(rows) + "\n")
    own = tmp_path / "evaluated"
    own.mkdir()
    sample = {"task": "gcd", "question": "What?", "outcome": "no_answer", "score": 0}
    (own / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    (own / "metrics.json").write_text("{}")
    overview = reported(tmp_path / "report", tmp_path)
    names = {run["name"] for run in overview["runs"]}
    assert names == {"2026-01-31 12:00, 0123abcd", "model_one", "rows", "evaluated"}
    assert (overview["samples"], overview["unread"]) == (5, [])
    assert overview["notes"][-1].startswith("scores say little in gcd: ")


# -- what it says ----------------------------------------------------------------------


def samples_of(folder: Path, name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write the samples of an evaluation; those without a score given are right."""
    given = {"task": "gcd", "category": "arithmetic", "score": 1.0}
    (folder / name).mkdir(parents=True)
    lines = [
        {**given, **row, "question": f"What is {row['question']}?"} for row in rows
    ]
    outcomes = {1.0: "right", 0.0: "wrong"}
    lines = [
        {"outcome": outcomes.get(line["score"], "partial"), **line} for line in lines
    ]
    text = "\n".join(map(json.dumps, lines))
    (folder / name / "samples.jsonl").write_text(text)


def test_pass_at_k_is_of_as_many_completions_as_most_items_have(tmp_path: Path) -> None:
    scores = [(1.0, 0.0), (0.0, 0.0, 0.0), (0.5, 0.0), (1.0,)]
    rows = [{"question": q, "score": s} for q, of in enumerate(scores) for s in of]
    samples_of(tmp_path, "one", rows)
    found = reported(tmp_path / "r", tmp_path / "one")
    passed, differ = (figures_of(found)[name][0] for name in ("pass", "variance"))
    assert (found["k"], passed) == (2, pytest.approx(1 / 3, abs=1e-4))
    assert differ == pytest.approx(2 / 3, abs=1e-4)  # of groups of two or more


def test_runs_whose_folders_have_one_name_are_named_by_where_they_differ(
    tmp_path: Path,
) -> None:
    rows = [{"question": k, "model": "m"} for k in range(2)]
    for step in ("step_100", "step_200"):
        samples_of(tmp_path / step, "eval", rows)
        (tmp_path / step / "eval" / "metrics.jsonl").write_text('{"step": 1, "x": 1}')
        published(tmp_path / step, "a_run", "gcd", [("What?", "2", 1.0)])
    samples_of(tmp_path, "other", rows)
    found = reported(tmp_path / "r", tmp_path)
    root = str(tmp_path).lstrip("/")
    steps = [f"{root}/step_{n}" for n in (100, 200)]
    places = [f"{step}/{name}" for step in steps for name in ("a_run", "eval")]
    names = {run["name"].removeprefix("m, ") for run in found["runs"]}
    assert names == {*places, "other"}
    assert {one["name"] for one in found["metrics"]} == {places[1], places[3]}


def test_the_figures_are_those_of_the_samples(tmp_path: Path) -> None:
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
    overview = reported(tmp_path / "report", dump(tmp_path / "d", lines))
    figures = figures_of(overview)
    assert figures["score"][1] < 3.5 / 6 < figures["score"][2]
    assert {name: found[0] for name, found in figures.items()} == {
        "score": 0.5833,
        "right": 0.5,
        "pass": 1,
        "answered": 0.8333,
        "variance": 0.6667,
        "level": 0.5,
        "length": 6.6667,
        "truncated": 0.1667,
    }
    assert (overview["unit"], overview["k"]) == ("tokens", 6)
    assert overview["parts"][0] == ["category", "arithmetic"]


def test_the_folder_of_a_launch_has_rollouts_among_other_files(tmp_path: Path) -> None:
    dump(tmp_path / "data_dumps", [group(rollout("2", 1.0))])
    for name in ("policy/config.json", "policy/x.json", "checkpoints/history.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert reported(tmp_path / "report", tmp_path)["unread"] == []


def test_a_point_of_a_curve_is_of_32_rollouts_at_least(tmp_path: Path) -> None:
    numbers = ({"train/mean_score": k % 2} for k in range(8))
    lines = [{**n, "train/rollouts_scored": 8 * k} for k, n in enumerate(numbers, 1)]
    metrics_of(tmp_path, *lines)
    (metrics,) = reported(tmp_path / "report", tmp_path)["metrics"]
    assert metrics["steps"] == [4, 8]
    assert metrics["values"] == {"train/mean_score": [0.5, 0.5]}


def test_the_newest_alarms_of_each_run_stand_in_it(tmp_path: Path) -> None:
    first, last = [["a", "gcd", n, "32 groups", ["'0': 1.0"]] for n in (1, 2)]
    metrics_of(tmp_path, {"alarms": [first]}, {"alarms": [last]}, {})
    with next(tmp_path.iterdir()).open("a") as file:
        file.write('\n[]\n3\n{"step": 9, "alarms": [1]}\n{"step": 9, "alarms": 1}\n')
    found = reported(tmp_path / "r", tmp_path)
    assert found["alarms"] == ["0123abcd: a in gcd, 2 times, the newest: 32 groups"]


@pytest.mark.parametrize("scored", [None, 2, 8])
def test_one_line_says_that_dump_files_do_not_hold_all_groups(
    tmp_path: Path, scored: int | None
) -> None:
    for run in "ab":
        path = dump(tmp_path, [group(rollout("2", 1.0), rollout("3"))])
        uuid = f"{run}{UUID.format(1)[1:]}"
        path.rename(path.with_name(path.name.replace(UUID.format(1), uuid)))
        line = {"step": 1, "train/rollouts_scored": scored}
        (tmp_path / f"{uuid}_metrics.jsonl").write_text(json.dumps(line))
    found = reported(tmp_path / "r", tmp_path)
    hold = {2: [], 8: ["4 of 16 scored rollouts"]}
    said = hold.get(scored or 0, ["groups that were kept, perhaps not all"])
    *notes, _ = [note.partition(":")[0] for note in found["notes"]]
    assert notes == [f"dump files hold {one}" for one in said]


# -- texts -----------------------------------------------------------------------------


def test_every_text_is_kept_letter_by_letter_in_plain_ascii(tmp_path: Path) -> None:
    texts = [hostile.text for hostile in HOSTILE if len(hostile.text) < 10_000]
    texts += ["</script><script>alert(1)</script>", "half \ud800", "\u2028\u202e\x00"]
    lines = [group(rollout(f"{text}.", question=text, answer=text)) for text in texts]
    reported(tmp_path / "report", dump(tmp_path / "d", lines))
    found = texts_of(tmp_path / "report")
    assert [one["question"] for one in found] == texts
    assert [one["completion"] for one in found] == [f"{text}." for text in texts]
    assert {one["place"].rpartition(".")[2] for one in found} == {"1"}


# -- the folder ------------------------------------------------------------------------


def test_a_report_replaces_one_and_nothing_else(tmp_path: Path) -> None:
    path = dump(tmp_path / "d", [group(rollout("2", 1.0))])
    folder = tmp_path / "report"
    reported(folder, path)
    files = {each.name for each in folder.iterdir()}
    (folder / "texts-0099.js").touch()
    (folder / "notes.md").touch()
    reported(folder, path)
    assert {each.name for each in folder.iterdir()} == files | {"notes.md"}
    (tmp_path / "d" / "report.js").touch()  # as a report has one
    with pytest.raises(SettingError, match="is there already"):
        reported(tmp_path / "d", path)
    names = {each.name for each in (tmp_path / "d").iterdir()}
    assert names == {path.name, "report.js"}
