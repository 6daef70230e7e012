"""The file of `rescore` is continued, and nothing else is ever written over."""

from __future__ import annotations

import json

import pytest

from rg_env.errors import SettingError
from rg_env.evaluation.rescored_file import WRITTEN, RescoredFile
from rg_env.evaluation.samples import Sample

VERSION = "0.1.25"


def sample(place, **more):
    row = dict.fromkeys(WRITTEN, "x") | {"place": place, "reasoning_gym": VERSION}
    return Sample("gcd", "arithmetic", "q", 1.0, "right", row=row | more)


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


def test_what_was_written_is_not_missing_the_next_time(tmp_path):
    path = written(tmp_path / "new" / "out.jsonl", "1", "2")
    file, places = opened(path)
    assert places == ["1", "2"]
    missing = file.missing([sample("2"), sample("3")])
    assert [s.row["place"] for s in missing] == ["3"]
    file.close()


@pytest.mark.parametrize("outcome", ["timeout", "unscored"])
def test_a_sample_that_no_scorer_gave_a_score_is_tried_again(tmp_path, outcome):
    path = written(tmp_path / "out.jsonl", "1")
    lost = {"score": None, "outcome": outcome}
    line = dict.fromkeys(WRITTEN, "x") | {"reasoning_gym": VERSION} | lost
    with path.open("a") as of_an_earlier_version:
        of_an_earlier_version.write(json.dumps({**line, "place": "2"}) + "\n")
    file, places = opened(path)
    assert places == ["1"]
    missing = file.missing([sample("2")])
    assert len(missing) == 1
    file.write([sample("2", **lost)])
    file.write(missing)
    file.close()
    file, places = opened(path)
    assert places == ["1", "2"]
    file.close()


@pytest.mark.parametrize("text", ["what I learned", '{"lr": 0.1}', '{"source": "a'])
def test_a_file_of_one_unfinished_line_is_not_written_over(tmp_path, text):
    notes = tmp_path / "notes.txt"
    notes.write_text(text)
    with pytest.raises(SettingError, match="is foreign; choose another file"):
        opened(notes)
    assert notes.read_text() == text


def test_a_line_that_a_kill_has_torn_is_written_anew(tmp_path):
    path = written(tmp_path / "out.jsonl", "1", "2")
    path.write_bytes(path.read_bytes()[:-9])
    file, places = opened(path)
    assert places == ["1"]
    file.write(file.missing([sample("1"), sample("2")]))
    file.close()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["place"] for line in lines] == ["1", "2"]


@pytest.mark.parametrize("line", ["{}", "[1]", "text", '{"task": "gcd"}', "[" * 99_999])
def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path, line):
    path = written(tmp_path / "out.jsonl", "1")
    path.write_text(f"{path.read_text()}{line}\n")
    before = path.read_bytes()
    with pytest.raises(SettingError, match=r"line 2 .* is foreign"):
        opened(path)
    assert path.read_bytes() == before


def test_scores_of_another_library_are_not_continued(tmp_path):
    path = written(tmp_path / "out.jsonl", "1")
    path.write_text(path.read_text().replace(VERSION, "0.1.24"))
    with pytest.raises(SettingError, match=r"is of reasoning-gym '?0\.1\.24"):
        opened(path)


@pytest.mark.slow
def test_two_processes_do_not_write_one_file(tmp_path):
    path = tmp_path / "out.jsonl"
    file, _ = opened(path)
    with pytest.raises(OSError, match="another process"):
        RescoredFile(path, VERSION)
    file.close()
