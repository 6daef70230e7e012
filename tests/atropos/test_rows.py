"""The rows of `process`: each on disk when it is written, whole or not at all."""

import asyncio
import contextlib
import json
import resource
import threading
import time
from fractions import Fraction

import pytest

from rg_env.atropos.rows import RowWriter, read_resumed, settings_path
from rg_env.items.run_stream import question_digest
from rg_env.rollouts.json_encoding import read_groups
from rg_env.rollouts.line_file import LineFile, continued
from tests.support.groups import group
from tests.support.parts import build_env


def test_rows_without_tokens_have_all_else(tmp_path):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    writer.with_tokens = False
    writer.write({"task": "gcd", "tokens": [[1]], "masks": [[1]], "scores": [1.0]})
    writer.close()
    row = json.loads((tmp_path / "rows.jsonl").read_text())
    assert row == {"task": "gcd", "scores": [1.0]}


def test_the_last_row_is_on_disk_before_the_file_is_closed(tmp_path):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    writer.write({"tokens": [[1]], "task": "gcd"})
    (row,) = read_groups(tmp_path / "rows.jsonl")
    assert list(row) == ["task", "tokens"]
    writer.close()
    writer.close()


def test_a_file_of_no_rows_goes_with_the_folders_made_for_it(tmp_path):
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    made = [folder, tmp_path / "runs"]
    RowWriter(LineFile(folder / "rows.jsonl"), made).close()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_that_others_have_put_in_its_place_stays(tmp_path):
    path = tmp_path / "rows.jsonl"
    writer = RowWriter(LineFile(path))
    (tmp_path / "others").touch()
    (tmp_path / "others").rename(path)
    writer.close()
    assert path.exists()


def test_a_device_is_not_removed_as_an_empty_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.symlink_to("/dev/null")
    RowWriter(LineFile(path)).close()
    assert path.is_symlink()


@pytest.mark.parametrize("tokens", [3, 2000])
def test_a_row_holds_what_the_group_holds_the_lists_of_numbers_last(tmp_path, tokens):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    row = {**group(tokens), "gold_answer": Fraction(1, 3), "task": "gcd"}
    writer.write(row)
    writer.close()
    (line,) = (tmp_path / "rows.jsonl").read_bytes().splitlines()
    found = json.loads(line)
    assert found == {**row, "gold_answer": "1/3"}
    assert list(found)[-3:] == ["tokens", "masks", "inference_logprobs"]


@pytest.mark.parametrize("row", [{}, {"tokens": [[1]]}, {"task": "gcd"}])
def test_a_row_of_any_fields_is_one_object(tmp_path, row):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    writer.write(row)
    writer.close()
    assert json.loads((tmp_path / "rows.jsonl").read_bytes()) == row


@contextlib.contextmanager
def files_end_at(num_bytes):
    """Let the disk be full for every file of this size."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def test_a_disk_that_is_full_in_the_middle_of_a_row_keeps_the_rows_whole(tmp_path):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    writer.write({"task": "first"})
    with files_end_at(100), pytest.raises(OSError, match="space"):
        writer.write({"task": "second" * 100})
    writer.write({"task": "third"})
    writer.close()
    assert [r["task"] for r in read_groups(writer.path)] == ["first", "third"]
    assert (writer.rows, writer.rows_lost) == (2, 1)


def test_the_settings_come_beside_the_first_row_and_not_without_one(tmp_path):
    writer = RowWriter(LineFile(tmp_path / "rows.jsonl"))
    writer.settings = "seed: 1\n"
    beside = settings_path(writer.path)
    assert not beside.exists()
    writer.write({"task": "first"})
    assert beside.read_text() == "seed: 1\n"
    beside.write_text("as they were")
    writer.write({"task": "second"})
    assert beside.read_text() == "as they were"
    writer.close()


def test_a_left_file_is_continued_locked_and_without_its_torn_line(tmp_path):
    left = tmp_path / "rows.jsonl"
    left.write_bytes(b'{"task": "first"}\n{"ta')
    writer = RowWriter(LineFile(tmp_path / "rows_1.jsonl"))
    writer.continue_in(continued(left))
    with pytest.raises(BlockingIOError, match="another process"):
        continued(left)
    writer.write({"task": "second"})
    writer.close()
    assert [r["task"] for r in read_groups(left)] == ["first", "second"]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_rows_are_written_off_the_event_loop_and_before_the_file_is_closed(tmp_path):
    path = tmp_path / "rows.jsonl"
    threads = []

    async def run():
        env = build_env(data_path_to_save_groups=str(path), group_size=2)
        write = env.jsonl_writer.write

        def watched(row):
            threads.append(threading.current_thread())
            time.sleep(0.1)  # the end comes meanwhile
            write(row)

        env.jsonl_writer.write = watched
        sending = asyncio.ensure_future(
            env.handle_send_to_api(group(20_000), do_send_to_api=False)
        )
        while not threads:  # noqa: ASYNC110 - a thread tells
            await asyncio.sleep(0.01)
        await env.close()
        await sending

    asyncio.run(run())
    assert threads != [threading.main_thread()]
    assert len(path.read_bytes().splitlines()) == 1


# -- the rows of an interrupted run ---------------------------------------------------

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
    assert left.sampled == {3: ("gcd", question_digest("?"))}
    assert left.results == [("gcd", 0.75, 0.5, True)]


def test_half_a_character_is_read_as_it_was_sampled(tmp_path):
    for changes in ({"question": "\ud800"}, {"messages": "\ud800"}):
        left = read(tmp_path, line(**changes))
        assert left.sampled[3] == ("gcd", question_digest(changes.get("question", "?")))


def test_lines_that_are_no_rows_are_passed_over_and_said(tmp_path, logged):
    bad = [b"{", b"[]", b"\0" * 9, b"[" * 10**6, b'{"task": "gcd"}']
    bad += [line(index=-1), line(level=2), line(task_scores=[]), line(scores="x")]
    left = read(tmp_path, line(), *bad, line(index=4))
    assert list(left.sampled) == [3, 4] and len(left.results) == 2
    assert f"{len(bad)} lines are no rows" in logged.text


def test_a_long_file_is_said_to_be_read(tmp_path, monkeypatch, logged):
    monkeypatch.setattr("rg_env.atropos.rows.SAID_FROM_MB", 1)
    assert len(read(tmp_path, line(messages="x" * 2**20)).results) == 1
    assert f"reading {tmp_path / 'rows.jsonl'}, 1 MB" in logged.text
