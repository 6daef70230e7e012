"""The rows of `process`: each on disk when it is written, whole or not at all."""

import contextlib
import json
import resource
from fractions import Fraction

import pytest

from rg_env.line_file import read_groups
from rg_env.results.process_rows import RowWriter, read_written
from rg_env.results.result_file import settings_path
from tests.support.groups import group


def writer_in(folder):
    return RowWriter(folder / "rows.jsonl", folder / "rows.jsonl")


def test_a_row_is_on_disk_at_once_with_the_lists_of_numbers_last(tmp_path):
    writer = writer_in(tmp_path)
    row = {**group(2000), "gold_answer": Fraction(1, 3), "task": "gcd"}
    writer.write(row)
    (found,) = read_groups(writer.path)
    assert found == {**row, "gold_answer": "1/3"}
    assert list(found)[-3:] == ["tokens", "masks", "inference_logprobs"]
    writer.close()


def test_a_disk_that_is_full_in_the_middle_of_a_row_keeps_the_rows_whole(tmp_path):
    writer = writer_in(tmp_path)
    writer.write({"task": "first"})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        with pytest.raises(OSError, match="space"):
            writer.write({"task": "second" * 100})
    writer.write({"task": "third"})
    writer.close()
    assert [r["task"] for r in read_groups(writer.path)] == ["first", "third"]


def test_the_settings_come_beside_the_first_row_of_a_file_and_not_without_one(tmp_path):
    writer = writer_in(tmp_path)
    assert writer.resume("seed: 1\n", 2) == (set(), [])
    beside = settings_path(writer.path)
    assert not beside.exists()
    writer.write({"task": "first"})
    assert beside.read_text() == "seed: 1\n"
    beside.write_text("as they were")
    writer.write({"task": "second"})
    assert beside.read_text() == "as they were"
    writer.path.unlink()
    writer.write({"task": "third"})
    assert beside.read_text() == "seed: 1\n"
    writer.close()


# -- the rows of an interrupted run ---------------------------------------------------

ROW = {
    "task": "gcd",
    "question": "half \ud800",
    "index": 3,
    "level": 0.5,
    "scores": [0.25, 0.0],
    "task_scores": [1.0, 0.5],
    "tokens": [[1], [2]],
}


def line(**changes):
    return json.dumps(ROW | changes).encode()


def test_rows_are_read_again_and_lines_that_are_none_are_passed_over(tmp_path, logged):
    bad = [b"{", b"[]", b"\0" * 9, b"[" * 10**6, b'{"task": "gcd"}']
    bad += [line(index=-1), line(level=2), line(task_scores=[]), line(scores="x")]
    path = tmp_path / "rows.jsonl"
    equal = line(index=4, scores=[1.0, 1.0])
    outside = {name: ROW[name] for name in ROW.keys() - {"index", "level"}}
    good = [equal, json.dumps(outside).encode()]
    torn = line(index=5)  # which a kill has left without its end
    path.write_bytes(b"\n".join([line(), *bad, *good, torn]))
    sampled, results = read_written(path)
    assert sampled == {3, 4}
    # The result is of the task's scores, and the variance of the rewards.
    first, second, third = results
    assert (first, second) == (("gcd", 0.75, 0.5, True), ("gcd", 0.75, 0.5, False))
    assert third == ("gcd", 0.75, None, True)  # of an item from outside
    assert f"{len(bad)} lines are not results" in logged.text
