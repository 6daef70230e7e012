"""Dumps: what is accepted is on disk or counted, and which groups are dumped."""

import asyncio
import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import orjson
import pytest

from rg_env.line_file import MAX_QUEUED, LineFile, read_groups
from rg_env.run.dumps import Dumps, DumpWriter, is_worth_keeping, metrics_line
from rg_env.run.group import Rollout
from tests.support.groups import scored
from tests.support.parts import GUARD_S, env_config
from tests.support.processes import files_end_at

PER_FILE = 3


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "dumps"


@pytest.fixture
def writer(folder):
    run = SimpleNamespace(folder=str(folder), run_uuid="uuid")
    writer = DumpWriter(run, "rollouts", PER_FILE)
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


# -- files -----------------------------------------------------------------------------


def test_a_file_is_complete_when_it_is_full(writer, folder):
    write(writer, range(PER_FILE + 1))
    assert names(folder) == [
        "rollouts_uuid_0000.jsonl",
        "rollouts_uuid_0001.jsonl.part",
    ]
    assert all_numbers(folder) == list(range(PER_FILE + 1))
    assert (writer.batch_num, len(writer.buffer)) == (1, 1)


def test_every_ten_groups_the_log_says_how_full_a_file_is(folder, logged):
    writer = DumpWriter(SimpleNamespace(folder=str(folder), run_uuid="u"), "saved", 100)
    write(writer, range(20))
    writer.close()
    assert [r.message for r in logged.records if " of 100 " in r.message] == [
        "saved: 10 of 100 groups",
        "saved: 20 of 100 groups",
    ]


@pytest.mark.parametrize("written", [0, 1])
def test_groups_that_a_caller_appends_are_written_by_finish(writer, written):
    write(writer, range(written))
    writer.buffer.extend([group(7), group(8)])
    assert numbers(writer.finish()) == [*range(written), 7, 8]


def test_a_group_appended_while_a_file_is_completed_is_in_the_next(writer, monkeypatch):
    complete = LineFile.complete

    def appended(file):
        monkeypatch.undo()
        writer.buffer.append(group(9))
        return complete(file)

    write(writer, [1])
    monkeypatch.setattr(LineFile, "complete", appended)
    assert [numbers(writer.finish()) for _ in range(2)] == [[1], [9]]


# -- what is refused -------------------------------------------------------------------


def circular():
    itself = {}
    itself["itself"] = itself
    return itself


@pytest.mark.parametrize("value", [float("nan"), {(1, 2): 3}, circular()], ids=repr)
def test_a_group_that_json_cannot_hold_is_lost_alone_and_counted(
    writer, folder, caplog, value
):
    write(writer, [0])
    writer.write({**group(1), "value": value})
    write(writer, [2])
    assert all_numbers(folder) == [0, 2]
    assert (writer.groups_total, writer.groups_lost) == (2, 1)
    assert "cannot be dumped" in caplog.text


def test_refused_groups_wait_in_order_and_beyond_the_bound_they_are_lost(
    writer, folder
):
    folder.write_text("a file where the folder should be")
    write(writer, range(MAX_QUEUED + 5))
    assert len(writer.buffer) == writer.groups_waiting == MAX_QUEUED
    assert (writer.groups_total, writer.groups_lost) == (MAX_QUEUED, 5)
    folder.unlink()
    write(writer, ["new"])
    assert all_numbers(folder) == [*range(MAX_QUEUED), "new"]


def test_what_still_waits_at_the_end_is_counted_lost(writer, folder, caplog):
    write(writer, [0])
    with files_end_at(60):
        write(writer, [1, 2])
        writer.close()
        writer.close()
    assert (writer.groups_total, writer.groups_lost) == (1, 2)
    assert caplog.text.count("2 groups were lost") == 1
    assert names(folder) == ["rollouts_uuid_0000.jsonl"]
    assert all_numbers(folder) == [0]


# -- counters --------------------------------------------------------------------------


def test_a_resumed_run_continues_the_counters_and_completes_its_file(writer, folder):
    write(writer, [0])
    writer.load_state_dict({"batch_num": 4, "groups_total": 12})
    write(writer, [1])
    assert writer.state_dict() == {"batch_num": 4, "groups_total": 13}
    assert names(folder) == [
        "rollouts_uuid_0000.jsonl",
        "rollouts_uuid_0004.jsonl.part",
    ]


# -- which groups are dumped -----------------------------------------------------------

SAVED = "reasoning_gym_environment_rollouts"
FAILED = "reasoning_gym_environment_FAILED_rollouts"
GOOD = (1.0, 0.0)
ALL_RIGHT = (1.0, 1.0)
FAILED_ONE = (0.0, 0.0)


def scored_group(*scores):
    rollouts = [Rollout(score=n, reward=n) for n in scores]
    return scored("gcd", rollouts)


def dumped(folder, *records, cancel=False, **changes):
    async def run():
        dumps = Dumps(env_config(data_dumps_dir=str(folder), **changes))
        for record in records:
            writing = asyncio.ensure_future(dumps.take(record))
            await asyncio.sleep(0)
            if cancel:
                writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await dumps.close()
        await dumps.close()

    asyncio.run(run())
    return {p.name.rsplit("_", 2)[0]: list(read_groups(p)) for p in folder.iterdir()}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("groups", "changes", "counts"),
    [
        (
            [GOOD, ALL_RIGHT, FAILED_ONE],
            {"dump_rollouts": True, "dump_failed_rollouts": True},
            {SAVED: 2, FAILED: 1},
        ),
        ([GOOD, FAILED_ONE], {}, {}),
        (
            [GOOD, FAILED_ONE],
            {"dump_rollouts": True, "rollout_save_score_threshold": 1.0},
            {SAVED: 1},
        ),
    ],
    ids=["good and failed ones", "none", "perfect ones"],
)
def test_groups_go_to_the_files_that_the_settings_want(
    tmp_path, groups, changes, counts
):
    found = dumped(tmp_path, *(scored_group(*scores) for scores in groups), **changes)
    assert {name: len(lines) for name, lines in found.items()} == counts


def test_a_group_whose_caller_is_cancelled_is_written_all_the_same(tmp_path):
    found = dumped(tmp_path, scored_group(1.0, 0.0), cancel=True, dump_rollouts=True)
    assert len(found[SAVED]) == 1


def test_groups_of_one_moment_are_dumped_in_their_order(tmp_path, monkeypatch):
    put = LineFile.append_or_queue
    numbers = [number / 8 for number in range(8)]

    def slow(file, line):  # the earlier, the slower
        time.sleep(0.01 * (1 - orjson.loads(line)["rollouts"][0]["score"]))
        return put(file, line)

    async def run():
        config = env_config(data_dumps_dir=str(tmp_path), dump_rollouts=True)
        dumps = Dumps(config)
        await asyncio.gather(*(dumps.take(scored_group(n, 1.0)) for n in numbers))
        await dumps.close()

    monkeypatch.setattr(LineFile, "append_or_queue", slow)
    asyncio.run(run())
    (file,) = tmp_path.glob("*.jsonl")
    assert [each["rollouts"][0]["score"] for each in read_groups(file)] == numbers


# -- the numbers of every log ----------------------------------------------------------


def test_a_line_has_the_finite_numbers_and_the_alarms_and_nothing_else():
    values = {
        "train/mean_score": np.float64(0.5),
        "train/completion_lengths_max": np.int64(7),
        "ledger/sent": 8,
        "train/rollouts": object(),
        "curriculum/name": "text",
        "none": None,
        "nan": float("nan"),
        "infinite": float("inf"),
        "step": 99,
    }
    alarm = ["no_variance", "gcd", 1, "32 groups", ["'4': 1.0"]]
    head = {"step": 3, "time": "now", "kind": "serve", "model": "m"}
    assert json.loads(metrics_line(head, values, [alarm])) == {
        **head,
        "train/mean_score": 0.5,
        "train/completion_lengths_max": 7,
        "ledger/sent": 8,
        "alarms": [alarm],
    }


@pytest.mark.parametrize("is_kept", [True, False])
def test_every_log_is_a_line_of_the_file_of_the_run_and_waits_for_no_disk(
    tmp_path, monkeypatch, is_kept
):
    hangs = threading.Event()
    put = LineFile.append_or_queue

    def hanging(file, line):
        assert hangs.wait(GUARD_S)
        return put(file, line)

    monkeypatch.setattr(LineFile, "append_or_queue", hanging)

    async def run():
        dumps = Dumps(env_config(data_dumps_dir=str(tmp_path), dump_metrics=is_kept))
        for step in range(3):
            dumps.write_metrics(step, "serve", {"train/mean_score": 0.5}, [])
        hangs.set()
        await dumps.close()
        dumps.write_metrics(3, "serve", {}, [])
        return dumps.run_uuid

    expected = {f"{asyncio.run(run())}_metrics.jsonl": [0, 1, 2]} if is_kept else {}
    paths = tmp_path.glob("metrics/*")
    assert {p.name: [g["step"] for g in read_groups(p)] for p in paths} == expected


@pytest.mark.parametrize(
    ("scores", "threshold", "kept"),
    [
        ([0.0, 0.8], 0.7, True),
        ([0.0, 0.7], 0.7, False),
        ([1.0, 1.0], 0.7, True),
        ([0.0, 1.0], 1.0, True),
        ([0.99, 0.99], 1.0, False),
        ([0.0, 0.0], 0.0, False),
    ],
)
def test_a_group_is_kept_for_one_rollout_above_the_threshold(scores, threshold, kept):
    assert is_worth_keeping(scores, threshold) is kept
