"""Dumps: what was accepted is on disk or counted, however the process ends."""

import contextlib
import errno
import fcntl
import json
import logging
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.rollouts import dump_writer
from rg_env.rollouts.dump_writer import MAX_WAITING_GROUPS, DumpWriter
from rg_env.rollouts.json_encoding import encode_line, read_groups
from rg_env.rollouts.line_file import recover_unfinished

PER_FILE = 3


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "dumps"


@pytest.fixture
def writer(folder):
    writer = DumpWriter(folder, "rollouts", "uuid", PER_FILE)
    yield writer
    writer.close()


def group(number):
    return {"item_id": "gcd", "rollouts": [], "number": number}


def write(writer, numbers):
    for number in numbers:
        writer.write(group(number))


def numbers(path):
    return [written["number"] for written in read_groups(path)]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def all_numbers(folder):
    return [n for path in sorted(folder.iterdir()) for n in numbers(path)]


def start_child(repo_root, folder, program):
    """Start a process that has `write(n)`; it says a line of its own to be awaited."""
    prelude = f"""
        import os, pathlib, resource, signal, sys
        sys.path.insert(0, {str(repo_root)!r})
        from rg_env.rollouts.dump_writer import DumpWriter
        from rg_env.rollouts.line_file import recover_unfinished
        folder = pathlib.Path({str(folder)!r})
        writer = DumpWriter(folder, "rollouts", "child", {PER_FILE})
        def write(number):
            writer.write({{"item_id": "gcd", "rollouts": [], "number": number}})
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def child(repo_root, folder):
    """A process that has accepted seven groups, each said aloud, and then waits."""
    program = """
        for number in range(7):
            write(number)
        print("accepted", flush=True)
        sys.stdin.read()
    """
    with start_child(repo_root, folder, program) as process:
        assert process.stdout.readline() == "accepted\n"
        yield process
        process.kill()


# -- files -----------------------------------------------------------------------------


def test_a_group_is_on_disk_when_write_returns(writer, folder):
    for number in range(2):
        writer.write(group(number))
        assert all_numbers(folder) == list(range(number + 1))


def test_nothing_is_made_before_the_first_group(writer, folder):
    assert writer.finish() is None
    writer.close()
    assert not folder.exists()


def test_a_file_is_complete_when_it_is_full(writer, folder):
    write(writer, range(PER_FILE + 1))
    assert names(folder) == [
        "rollouts_uuid_0000.jsonl",
        "rollouts_uuid_0001.jsonl.part",
    ]
    assert numbers(folder / "rollouts_uuid_0000.jsonl") == list(range(PER_FILE))
    assert (writer.batch_num, len(writer.buffer)) == (1, 1)


def test_finish_completes_the_file_and_begins_the_next(writer, folder):
    write(writer, [0])
    assert writer.finish() == folder / "rollouts_uuid_0000.jsonl"
    write(writer, [1])
    assert writer.finish() == folder / "rollouts_uuid_0001.jsonl"
    assert all_numbers(folder) == [0, 1]


def test_close_completes_the_file_and_may_be_called_twice(writer, folder):
    write(writer, range(2))
    writer.close()
    writer.close()
    assert names(folder) == ["rollouts_uuid_0000.jsonl"]


def test_a_new_folder_holds_the_next_file_and_leaves_this_one_whole(
    writer, folder, tmp_path
):
    write(writer, [0])
    writer.folder = tmp_path / "elsewhere"
    assert writer.finish() == folder / "rollouts_uuid_0000.jsonl"
    write(writer, [1])
    writer.close()
    assert (numbers(folder / "rollouts_uuid_0000.jsonl")) == [0]
    assert all_numbers(tmp_path / "elsewhere") == [1]


@pytest.mark.parametrize("written", [0, 1])
def test_groups_that_a_caller_appends_are_written_by_finish(writer, written):
    write(writer, range(written))
    writer.buffer.extend([group(7), group(8)])
    assert numbers(writer.finish()) == [*range(written), 7, 8]


def test_progress_is_logged_every_ten_groups(folder, caplog):
    caplog.set_level(logging.INFO)
    writer = DumpWriter(folder, "rollouts", "uuid", 100)
    write(writer, range(25))
    writer.close()
    told = [r.getMessage() for r in caplog.records if " of 100 " in r.getMessage()]
    assert told == [f"rollouts_uuid_0000.jsonl: {n} of 100 groups" for n in (10, 20)]


# -- lines -----------------------------------------------------------------------------


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_survives_as_one_line(text):
    line = encode_line({"text": text})
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {"text": text}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON))
def test_a_line_is_the_json_of_its_group(value):
    try:
        whole = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        with pytest.raises(ValueError, match="not JSON compliant"):
            encode_line(value)
    else:
        assert encode_line(value).decode() == whole + "\n"


def test_the_gil_is_released_after_each_rollout():
    releases = []
    encode_line({"rollouts": ["x"] * 16}, lambda: releases.append(1))
    assert len(releases) == 16


def circular():
    itself = {}
    itself["itself"] = itself
    return itself


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {(1, 2): 3}, circular()], ids=repr
)
def test_a_group_that_json_cannot_hold_is_lost_alone_and_counted(
    writer, folder, caplog, value
):
    write(writer, [0])
    writer.write({**group(1), "value": value})
    write(writer, [2])
    assert all_numbers(folder) == [0, 2]
    assert writer.groups_lost == 1
    assert "cannot be dumped" in caplog.text


# -- the end of a process --------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("torn", [b"", b'{"item_id": "gcd", "rol'])
def test_a_killed_writer_loses_nothing_it_accepted(child, folder, torn):
    child.kill()
    child.wait()
    with (folder / "rollouts_child_0002.jsonl.part").open("ab") as file:
        file.write(torn)
    assert recover_unfinished(folder) == [folder / "rollouts_child_0002.jsonl"]
    assert all_numbers(folder) == list(range(7))
    assert not list(folder.glob("*.part"))


@pytest.mark.processes
def test_the_file_of_a_living_process_is_left_alone(child, folder):
    assert recover_unfinished(folder) == []
    assert numbers(folder / "rollouts_child_0002.jsonl.part") == [6]


def test_what_holds_no_whole_line_goes_and_other_files_are_left_alone(folder):
    assert recover_unfinished(folder) == []
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"torn')
    (folder / "b.jsonl.part").write_bytes(b"")
    (folder / "c.jsonl.part").write_bytes(b'{"torn')
    (folder / "notes.part").write_bytes(b"mine")
    assert recover_unfinished(folder) == []
    assert names(folder) == ["a.jsonl", "notes.part"]


def test_what_cannot_be_read_is_named_and_keeps_nothing_else_from_recovery(
    folder, caplog
):
    (folder / "a.jsonl.part").mkdir(parents=True)
    (folder / "b.jsonl.part").write_bytes(b'{"number": 1}\n')
    assert recover_unfinished(folder) == [folder / "b.jsonl"]
    assert "a.jsonl.part" in caplog.text


def test_recovery_overwrites_no_complete_file(folder):
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"number": 1}\n')
    (folder / "a.jsonl.part").write_bytes(b'{"number": 2}\n')
    recover_unfinished(folder)
    assert sorted(all_numbers(folder)) == [1, 2]


@pytest.mark.processes
def test_processes_that_recover_one_folder_together_disturb_nobody(repo_root, folder):
    folder.mkdir()
    for number in range(300):
        line = json.dumps(group(number)) + "\n"
        (folder / f"{number:04}.jsonl.part").write_text(line + '{"torn')
    program = "sys.stdin.read(); recover_unfinished(folder)"
    started = [start_child(repo_root, folder, program) for _ in range(3)]
    for process in started:
        process.stdin.close()
    assert [process.wait() for process in started] == [0, 0, 0]
    for process in started:
        process.stdout.close()
    assert all_numbers(folder) == list(range(300))


def test_a_recovery_at_the_worst_moment_takes_no_file_from_its_writer(
    writer, folder, monkeypatch
):
    lock = fcntl.flock

    def recover_first(file, operation):
        monkeypatch.undo()
        recover_unfinished(folder)  # finds the new file empty and not locked yet
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", recover_first)
    write(writer, [0])
    assert all_numbers(folder) == [0]


def test_a_file_system_without_locks_takes_groups(writer, folder, monkeypatch):
    def no_locks(file, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write(writer, [0])
    assert all_numbers(folder) == [0]
    assert recover_unfinished(folder) == []  # nobody can say whether its writer lives
    assert numbers(writer.finish()) == [0]


# -- a disk that refuses ---------------------------------------------------------------


def test_refused_groups_wait_and_are_written_in_order(writer, folder):
    folder.write_text("a file where the folder should be")
    write(writer, range(2))
    assert (len(writer.buffer), writer.groups_lost) == (2, 0)
    folder.unlink()
    write(writer, [2])
    assert all_numbers(folder) == [0, 1, 2]
    assert writer.groups_total == 3


def test_waiting_groups_have_a_bound_of_bytes_too(writer, folder, monkeypatch):
    folder.write_text("a file where the folder should be")
    monkeypatch.setattr(dump_writer, "MAX_WAITING_BYTES", 1000)
    for number in range(5):
        writer.write({**group(number), "text": "x" * 300})
    assert (writer.groups_waiting, writer.groups_lost) == (2, 3)
    folder.unlink()
    write(writer, ["new"])
    assert all_numbers(folder) == [0, 1, "new"]


def test_waiting_groups_have_a_bound_and_what_it_turns_away_is_counted_and_said(
    writer, folder, caplog
):
    folder.write_text("a file where the folder should be")
    write(writer, range(MAX_WAITING_GROUPS + 5))
    assert len(writer.buffer) == MAX_WAITING_GROUPS
    assert (writer.groups_total, writer.groups_lost) == (MAX_WAITING_GROUPS, 5)
    folder.unlink()
    write(writer, ["new"])
    assert all_numbers(folder) == [*range(MAX_WAITING_GROUPS), "new"]
    assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING"]
    refused, passed = (r.getMessage() for r in caplog.records)
    assert f"{folder} takes no groups" in refused and "the next are lost" in refused
    assert passed.endswith("groups can be written again; 5 were lost")


def test_a_group_that_json_cannot_hold_is_lost_alone_while_others_wait(writer, folder):
    folder.write_text("a file where the folder should be")
    write(writer, [0])
    writer.write({**group(1), "value": circular()})
    write(writer, [2])
    folder.unlink()
    assert numbers(writer.finish()) == [0, 2]
    assert (writer.groups_total, writer.groups_lost) == (2, 1)


class Torn:
    """An open file of which a write, and the cut after it, can be made to fail."""

    def __init__(self, file):
        self.file, self.failures = file, []

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, line):
        if "write" not in self.failures:
            return self.file.write(line)
        self.file.write(line[:5])
        raise OSError(errno.EIO, "Input/output error")

    def truncate(self, size):
        if "truncate" in self.failures:
            raise OSError(errno.EIO, "Input/output error")
        return self.file.truncate(size)


def test_what_a_failed_write_left_is_cut_off_before_the_next(
    writer, folder, monkeypatch
):
    write(writer, [0])
    torn = Torn(writer._file._file)
    monkeypatch.setattr(writer._file, "_file", torn)
    torn.failures = ["write", "truncate"]
    write(writer, [1])
    assert (folder / "rollouts_uuid_0000.jsonl.part").read_bytes().endswith(b'{"ite')
    torn.failures = ["truncate"]
    write(writer, [2])
    assert writer.groups_waiting == 2
    torn.failures = []
    write(writer, [3])
    assert all_numbers(folder) == [0, 1, 2, 3]


def test_what_still_waits_at_the_end_is_counted_lost(writer, folder, caplog):
    folder.write_text("a file where the folder should be")
    write(writer, range(2))
    writer.close()
    writer.close()
    assert writer.groups_lost == 2
    assert caplog.text.count("2 groups were lost") == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    ("written", "limit", "left"), [(1, 60, ["rollouts_child_0000.jsonl"]), (0, 10, [])]
)
def test_the_end_completes_what_is_on_a_full_disk_and_leaves_no_empty_file(
    repo_root, folder, written, limit, left
):
    program = f"""
        for number in range({written}):
            write(number)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        write(9)
        writer.close()
        print(writer.groups_lost, flush=True)
    """
    with start_child(repo_root, folder, program) as process:
        assert process.stdout.read() == "1\n"
    assert names(folder) == left
    assert all_numbers(folder) == list(range(written))


@pytest.mark.processes
def test_a_full_disk_tears_no_line_and_gets_the_rest_later(repo_root, folder):
    program = """
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        write(0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, limit[1]))
        write(1)
        part = next(folder.iterdir())
        print(len(writer.buffer), part.read_bytes().count(b"}"), flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        write(2)
        print(writer.groups_lost, flush=True)
    """
    with start_child(repo_root, folder, program) as process:
        reply = process.stdout.read().split()
    assert reply == ["2", "1", "0"]
    assert all_numbers(folder) == [0, 1, 2]


def test_a_folder_that_vanishes_is_made_again_with_all_of_the_file(writer, folder):
    write(writer, range(2))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    write(writer, [2])
    assert all_numbers(folder) == [0, 1, 2]


def test_a_file_that_cannot_be_completed_keeps_the_memory_bounded(
    writer, folder, caplog
):
    write(writer, [0])
    obstacle = folder / "rollouts_uuid_0000.jsonl"
    obstacle.mkdir()
    write(writer, range(1, PER_FILE + MAX_WAITING_GROUPS + 5))
    assert len(writer.buffer) == PER_FILE + MAX_WAITING_GROUPS
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    obstacle.rmdir()
    assert numbers(writer.finish()) == list(range(PER_FILE + MAX_WAITING_GROUPS + 5))
    assert writer.groups_lost == 0


def test_a_file_of_long_groups_is_complete_before_it_holds_all(
    writer, folder, monkeypatch
):
    monkeypatch.setattr(dump_writer, "MAX_FILE_BYTES", 500)
    writer.write({**group(0), "text": "x" * 600})
    assert names(folder) == ["rollouts_uuid_0000.jsonl"]
    assert writer.buffer == []


# -- state -----------------------------------------------------------------------------


def test_a_resumed_run_continues_the_counters(writer, folder):
    writer.load_state_dict({"batch_num": 4, "groups_total": 12})
    write(writer, [0])
    assert (writer.batch_num, writer.groups_total) == (4, 13)
    assert names(folder) == ["rollouts_uuid_0004.jsonl.part"]


def test_counters_that_go_back_overwrite_no_complete_file(writer, folder):
    write(writer, range(2 * PER_FILE))
    writer.load_state_dict({"batch_num": 0, "groups_total": 0})
    write(writer, [6])
    writer.close()
    assert all_numbers(folder) == list(range(2 * PER_FILE + 1))


def test_new_counters_complete_the_file_being_written(writer, folder):
    write(writer, [0])
    writer.load_state_dict({"batch_num": 4, "groups_total": 12})
    assert names(folder) == ["rollouts_uuid_0000.jsonl"]


COUNTS = """
        import json
        write(0)
        write(1)
        print(json.dumps(writer.state_dict()), flush=True)
"""


@contextlib.contextmanager
def resumed(folder, state):
    """Yield a writer as the next start has it."""
    recover_unfinished(folder)
    writer = DumpWriter(folder, "rollouts", "next", PER_FILE)
    writer.load_state_dict(state)
    yield writer
    writer.close()


@pytest.mark.processes
@pytest.mark.parametrize("later", [1, 5])
def test_after_a_kill_the_counters_are_those_of_the_files(repo_root, folder, later):
    program = f"""{COUNTS}
        for number in range(2, 2 + {later}):
            write(number)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with start_child(repo_root, folder, program) as process:
        state = json.loads(process.stdout.readline())
    with resumed(folder, state) as writer:
        assert writer.groups_total == len(all_numbers(folder)) == 2 + later
        assert writer.batch_num == len(names(folder))
        write(writer, ["new"])
        assert writer.groups_total == len(all_numbers(folder))


@pytest.mark.processes
def test_what_waited_in_a_killed_process_is_not_counted(repo_root, folder):
    program = f"""{COUNTS}
        resource.setrlimit(resource.RLIMIT_FSIZE, (110, 110))
        write(2)
        print(json.dumps(writer.state_dict()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with start_child(repo_root, folder, program) as process:
        _, line = process.stdout.readline(), process.stdout.readline()
    state = json.loads(line)
    assert state["groups_total"] == 3
    with resumed(folder, state) as writer:
        assert writer.groups_total == len(all_numbers(folder)) == 2


def test_the_files_of_other_processes_are_not_counted(writer, folder):
    other = DumpWriter(folder, "rollouts", "other", PER_FILE)
    write(other, range(5))
    write(writer, [5])
    state = writer.state_dict()
    other.close()
    writer.close()
    with resumed(folder, state) as continued:
        assert continued.groups_total == 1


def test_groups_that_wait_are_kept_over_new_counters(writer, folder):
    folder.write_text("a file where the folder should be")
    write(writer, [0])
    writer.load_state_dict({"batch_num": 4, "groups_total": 12})
    folder.unlink()
    write(writer, [1])
    assert all_numbers(folder) == [0, 1]
    assert writer.groups_total == 14


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        None,
        {"batch_num": -1, "groups_total": 0},
        {"batch_num": 1, "groups_total": "2"},
        {"batch_num": 1, "groups_total": 2, "groups_in_file": 3},
    ],
)
def test_counters_that_make_no_sense_are_refused(writer, state):
    with pytest.raises(ValueError, match="at least 0"):
        writer.load_state_dict(state)
