"""The file of `rescore`, and what a terminal is shown of it."""

from __future__ import annotations

import json

import pytest

from rg_env.cli.command import rendered
from rg_env.errors import SettingError
from rg_env.evaluation.rescored import WRITTEN, RescoredFile, RescoreTally
from rg_env.evaluation.samples import Sample

VERSION = "0.1.25"


def sample(place, score=1.0, outcome="right", **more):
    row = dict.fromkeys(WRITTEN, "x") | {"place": place, "reasoning_gym": VERSION}
    return Sample("gcd", "arithmetic", "q", score, outcome, row=row | more)


def opened(path):
    """Return a file with all rows read, and their places."""
    file = RescoredFile(path, VERSION)
    try:
        return file, [row["place"] for row in file.rows()]
    except SettingError:
        file.close()
        raise


def written(path, *places):
    file, _ = opened(path)
    file.write(sample(place, text="\ud800\n") for place in places)
    file.close()
    return path


# -- the file --------------------------------------------------------------------------


def test_a_sample_that_no_scorer_gave_a_score_is_tried_again(tmp_path):
    path = written(tmp_path / "new" / "out.jsonl", "1", "2")
    file, places = opened(path)
    assert places == ["1", "2"]
    missing = file.missing(map(sample, "1234"))
    assert [s.row["place"] for s in missing] == ["3", "4"]
    file.write([sample("3", None, "timeout"), sample("4", None, "unmatched")])
    file.close()
    file, places = opened(path)
    assert places == ["1", "2", "4"]
    file.close()


def test_a_line_that_a_kill_has_torn_is_written_anew(tmp_path):
    path = written(tmp_path / "out.jsonl", "1", "2")
    path.write_bytes(path.read_bytes()[:-9])
    file, places = opened(path)
    assert places == ["1"]
    file.write(file.missing([sample("1"), sample("2")]))
    file.close()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["place"] for line in lines] == ["1", "2"]


OTHER = json.dumps(dict.fromkeys(WRITTEN, "0.1.24"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("what I learned", "line 1 .* is foreign"),
        ('{"lr": 0.1}\n', "line 1 .* is foreign"),
        ("[1]\n", "line 1 .* is foreign"),
        ("[" * 99_999 + "\n", "line 1 .* is foreign"),
        (f"{OTHER}\n", r"line 1 .* is of reasoning-gym '?0\.1\.24"),
    ],
)
def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path, text, match):
    (tmp_path / "notes.txt").write_text(text)
    with pytest.raises(SettingError, match=match):
        opened(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == text


# -- counts and examples ---------------------------------------------------------------


def row(saved, ours, task="gcd", question="q", **more):
    scores = {"saved": saved, "library": 0.0, "fixes": 0.0, "ours": ours}
    texts = dict.fromkeys(("answer", "saved_answer", "gold_answer"), "4")
    place = {"source": "file", "place": "1", "outcome": "right"}
    given = {"task": task, "question": question, "score": ours, "scores": scores}
    return given | texts | place | more


def tally_of(*rows, examples=1):
    tally = RescoreTally(examples)
    for each in rows:
        tally.add(each)
    return tally


def test_a_task_has_its_items_means_and_how_many_changed():
    tally = tally_of(
        row(0.0, 1.0),
        row(1.0, 1.0),
        row(1.0, 0.0, question="r"),
        row(None, 1.0, task="lcm"),
    )
    found = tally.numbers()
    gcd, lcm = found["tasks"]["gcd"], found["tasks"]["lcm"]
    assert (gcd["items"], gcd["completions"], gcd["changed"]) == (2, 3, 2)
    assert gcd["mean"]["saved"] == pytest.approx(2 / 3)
    assert (lcm["changed"], lcm["mean"]["saved"]) == (0, None)
    assert (found["all"]["items"], found["all"]["changed"]) == (3, 2)
    lines = [line.split() for line in rendered(tally.table()).splitlines()]
    assert ["gcd", "2", "3", "0.667", "0.000", "0.667", "2"] in lines
    assert ["lcm", "1", "1", "-", "0.000", "1.000", "0"] in lines


def test_completions_without_a_score_are_in_no_mean_and_named_with_the_reason():
    lost = {"outcome": "unmatched", "reason": "another question"}
    tally = tally_of(row(1.0, 1.0), row(0.0, None, **lost), row(0.0, None, **lost))
    whole = tally.numbers()["all"]
    assert (whole["items"], whole["mean"]["saved"]) == (1, 1.0)
    assert whole["without_score"] == {"unmatched": 2}
    total = "without a score, and so not in the means: 2 of 3 completions"
    said = "no score: 2 of gcd, unmatched: another question (the first: file 1)"
    assert [*tally.lines()] == [total, said]


def test_reasons_that_differ_from_row_to_row_do_not_fill_the_screen():
    lost = [row(None, None, reason=f"seed {n}", outcome="x") for n in range(50)]
    lines = [*tally_of(*lost).lines()]
    assert lines[-1] == "no score: 40 of gcd, for 40 other reasons"
    assert len(lines) == 12


def test_as_many_examples_of_changed_scores_are_kept_as_are_wanted():
    tally = tally_of(row(1.0, 1.0), *[row(0.0, 1.0)] * 5, examples=2)
    assert [one["scores"]["saved"] for one in tally.examples] == [0.0, 0.0]
    assert sum(line.startswith("changed: gcd 0.000") for line in tally.lines()) == 2


def test_hostile_texts_neither_steer_the_terminal_nor_mark_up_the_table():
    text = "\x1b[2J[red]\n\u202e\ud800" + "x" * 100_000
    hostile = {"answer": text, "gold_answer": text, "source": text, "task": text[:30]}
    said = tally_of(row(0.0, 1.0, **hostile), row(0.0, None, **hostile, reason=text))
    shown = rendered(said.table()) + "\n".join(said.lines())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 5_000
    assert "[red]" in shown
