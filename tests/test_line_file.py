"""Lines are on disk or counted, and files are whole, however a process ends."""

import errno
import fcntl
import json
import os
import shutil

import pytest

from rg_env import line_file
from rg_env.line_file import MAX_QUEUED, LineFile, recover_unfinished
from tests.support.processes import files_end_at
from tests.support.worker_attacks import start_script


@pytest.fixture
def part(tmp_path):
    return tmp_path / "dumps" / "a.jsonl.part"


@pytest.fixture
def file(part):
    file = LineFile(part)
    yield file
    file.close()


def line(number):
    return b'{"n": %d}\n' % number


def put(file, numbers):
    return [file.append_or_queue(line(number)) for number in numbers]


def numbers(path):
    return [json.loads(text)["n"] for text in path.read_bytes().splitlines()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- a file ----------------------------------------------------------------------------


def test_a_line_is_on_disk_at_once_and_no_file_is_there_before_the_first(file, part):
    assert not part.parent.exists()
    for number in range(2):
        put(file, [number])
        assert numbers(part) == list(range(number + 1))
    assert file.complete() == part.with_suffix("")
    assert names(part.parent) == ["a.jsonl"]


def test_a_file_without_lines_is_removed_at_its_end(file, part):
    file.open().close()
    file.close()
    assert file.open().complete() is None
    assert names(part.parent) == []


def test_a_link_stays_and_only_regular_files_are_opened(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("a")
    LineFile(link).open().close()
    assert link.is_symlink()
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match="not a regular file"):
            LineFile(tmp_path / name).open()


def test_an_unfinished_file_is_continued_locked_and_without_its_torn_line(part):
    part.parent.mkdir()
    part.write_bytes(line(1) + b'{"n')
    file = LineFile(part).open()
    with pytest.raises(BlockingIOError, match="another process"):
        LineFile(part).open()
    put(file, [2])
    file.close()
    assert numbers(part) == [1, 2]


def test_a_file_that_somebody_removes_is_made_again(file, part):
    put(file, [0])
    part.unlink()
    part.parent.rmdir()
    put(file, [1])
    assert numbers(part) == [1]


def test_no_complete_file_is_overwritten(file, part):
    put(file, [1])
    part.with_suffix("").write_bytes(line(2))
    with pytest.raises(FileExistsError, match="is there already"):
        file.complete()
    file.close()
    assert recover_unfinished(part.parent) == []
    assert (numbers(part), numbers(part.with_suffix(""))) == ([1], [2])


# -- the end of a process --------------------------------------------------------------


@pytest.mark.processes
def test_a_killed_process_loses_nothing_it_accepted(tmp_path, part):
    program = f"""
import pathlib, sys
from rg_env.line_file import LineFile
file = LineFile(pathlib.Path({str(part)!r}))
for number in range(3):
    file.append_or_queue(b'{{"n": %d}}\\n' % number)
print("accepted", flush=True)
sys.stdin.read()
"""
    with start_script(tmp_path, program) as child:
        assert child.stdout.readline() == "accepted\n"
        assert recover_unfinished(part.parent) == []  # its process lives
        child.kill()
    with part.open("ab") as opened:
        opened.write(b'{"n')
    assert recover_unfinished(part.parent) == [part.with_suffix("")]
    assert numbers(part.with_suffix("")) == [0, 1, 2]
    assert names(part.parent) == ["a.jsonl"]


def test_a_file_without_a_whole_line_is_removed_and_other_files_stay(tmp_path, caplog):
    (tmp_path / "a.jsonl").write_bytes(b'{"torn')
    (tmp_path / "c.jsonl.part").write_bytes(b'{"torn')
    (tmp_path / "d.jsonl.part").mkdir()  # cannot be read
    (tmp_path / "e.jsonl.part").write_bytes(line(1))
    (tmp_path / "notes.part").write_bytes(b"mine")
    assert recover_unfinished(tmp_path) == [tmp_path / "e.jsonl"]
    assert names(tmp_path) == ["a.jsonl", "d.jsonl.part", "e.jsonl", "notes.part"]
    assert "d.jsonl.part" in caplog.text


def test_a_recovery_at_the_worst_moment_takes_no_file_from_its_writer(
    file, part, monkeypatch
):
    lock = fcntl.flock

    def recover_first(opened, operation):
        monkeypatch.undo()
        recover_unfinished(part.parent)  # finds the new file empty and not locked yet
        lock(opened, operation)

    monkeypatch.setattr(fcntl, "flock", recover_first)
    put(file, [0])
    assert numbers(part) == [0]


def test_a_file_system_without_locks_takes_lines(file, part, monkeypatch):
    def no_locks(opened, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    put(file, [0])
    assert recover_unfinished(part.parent) == []  # its process may live
    assert numbers(file.complete()) == [0]


# -- a disk that refuses ---------------------------------------------------------------


def test_refused_lines_wait_up_to_a_bound_which_is_counted(file, part, caplog):
    part.parent.write_text("a file where the folder should be")
    taken = put(file, range(MAX_QUEUED + 5))
    assert taken == [True] * MAX_QUEUED + [False] * 5
    assert (len(file.queued), file.lost) == (MAX_QUEUED, 5)
    part.parent.unlink()
    put(file, [999])
    assert numbers(part) == [*range(MAX_QUEUED), 999]
    refused, passed = (r.getMessage() for r in caplog.records)
    assert f"{part} takes no lines" in refused and "the next are lost" in refused
    assert passed == f"{part} takes lines again; 5 were lost"
    shutil.rmtree(part.parent)
    part.parent.write_text("and once more")
    put(file, [0, 1])
    part.parent.unlink()
    put(file, [2, 3])
    again = [r.getMessage() for r in caplog.records][2:]
    assert ["no lines" in again[0], "lines again" in again[1], len(again)] == [1, 1, 2]


def test_refused_lines_have_a_bound_of_bytes_too(file, part, monkeypatch):
    part.parent.write_text("a file where the folder should be")
    monkeypatch.setattr(line_file, "MAX_QUEUED_BYTES", 2 * len(line(0)))
    assert put(file, range(4)) == [True, True, False, False]


def test_a_full_disk_tears_no_line_and_gets_the_rest_later(file, part):
    put(file, [0])
    with files_end_at(12):
        put(file, [1])
        assert (len(file.queued), numbers(part)) == (1, [0])
    put(file, [2])
    assert numbers(file.complete()) == [0, 1, 2]
