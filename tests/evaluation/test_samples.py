"""The lines of samples.jsonl as they are read again."""

from __future__ import annotations

import json

import pytest

from rg_env.evaluation.samples import read_rows

ROW = {
    "task": "gcd",
    "category": "arithmetic",
    "question": "of 4 and 6?",
    "completion": 0,
    "score": 1.0,
    "outcome": "right",
    "finish_reason": "stop",
    "messages": [{"role": "user", "content": "of 4 and 6?"}],
}


def read(tmp_path, *lines):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_rows(path)


def test_of_two_lines_about_one_completion_the_last_counts(tmp_path):
    failed = {k: v for k, v in ROW.items() if k != "score"} | {"outcome": "unscored"}
    other = ROW | {"completion": 1}
    found = read(tmp_path, *map(json.dumps, (failed, other, ROW)))
    assert [row.get("score") for row in found] == [1.0, 1.0]


@pytest.mark.parametrize(
    "line",
    [
        '{"task": "gcd", "tor',
        "null",
        '{"task": "gcd", "score": 1.0}',
        "[" * 100_000,
        "\x00\udcff".encode("utf-8", "replace").decode(),
    ],
)
def test_a_line_that_is_no_sample_is_passed_over_and_counted(tmp_path, line, logged):
    assert len(read(tmp_path, json.dumps(ROW), line)) == 1
    assert "1 lines are no samples" in logged.text
