"""What is read of the rows that a run left."""

import json

from rg_env.atropos.resumed_rows import read_resumed
from rg_env.tasks.recent_questions import digest

ROW = {
    "task": "gcd",
    "question": "?",
    "index": 3,
    "level": 0.5,
    "scores": [0.25, 0.0],
    "task_scores": [1.0, 0.5],
    "tokens": [[1], [2]],
}


def read(folder, *lines):
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return read_resumed(path)


def line(**changes):
    return json.dumps(ROW | changes).encode()


def test_the_result_is_of_the_scores_and_the_variance_of_the_rewards(tmp_path):
    left = read(tmp_path, line())
    assert left.sampled == {3: ("gcd", digest("?"))}
    assert left.results == [("gcd", 0.75, 0.5, True)]


def test_half_a_character_is_read_as_it_was_sampled(tmp_path):
    for changes in ({"question": "\ud800"}, {"messages": "\ud800"}):
        left = read(tmp_path, line(**changes))
        assert left.sampled[3] == ("gcd", digest(changes.get("question", "?")))


def test_lines_that_are_no_rows_are_passed_over_and_said(tmp_path, logged):
    bad = [b"{", b"[]", b"\0" * 9, b"[" * 10**6, b'{"task": "gcd"}']
    bad += [line(index=-1), line(level=2), line(task_scores=[]), line(scores="x")]
    left = read(tmp_path, line(), *bad, line(index=4))
    assert list(left.sampled) == [3, 4] and len(left.results) == 2
    assert f"{len(bad)} lines are no rows" in logged.text


def test_a_long_file_is_said_to_be_read(tmp_path, monkeypatch, logged):
    monkeypatch.setattr("rg_env.atropos.resumed_rows.SAID_FROM_MB", 1)
    assert len(read(tmp_path, line(messages="x" * 2**20)).results) == 1
    assert f"reading {tmp_path / 'rows.jsonl'}, 1 MB" in logged.text
