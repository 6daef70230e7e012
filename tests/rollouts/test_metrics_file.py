"""The numbers of a run on this machine: a line a log, whatever the disk does."""

import asyncio
import json
import shutil
import threading

import numpy as np

from rg_env.rollouts import run_dumps
from rg_env.rollouts.run_dumps import Dumps, MetricsFile, line_of
from tests.support.parts import GUARD_S


def dumps_in(folder, **changes):
    settings = {"keep_good": False, "keep_failed": False, "keep_numbers": True}
    return Dumps(folder, threshold=0.0, **settings | changes)


def lines(folder):
    (path,) = folder.glob("metrics/*_metrics.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_the_finite_numbers_and_nothing_else():
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
    line = json.loads(line_of(3, "serve", values))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "step": 3,
        "kind": "serve",
        "train/mean_score": 0.5,
        "train/completion_lengths_max": 7,
        "ledger/sent": 8,
    }


def test_a_line_has_the_alarms_where_there_are_any():
    alarm = ("no_variance", "gcd", 1, "32 groups", ["'4': 1.0"])
    assert json.loads(line_of(3, "serve", {}, [alarm]))["alarms"] == [list(alarm)]
    assert "alarms" not in json.loads(line_of(3, "serve", {}))


def test_every_log_is_a_line_of_the_file_of_the_run(tmp_path):
    async def run():
        dumps = dumps_in(tmp_path)
        for step in range(3):
            dumps.note_numbers(step, "serve", {"train/mean_score": 0.5})
        await dumps.close()
        dumps.note_numbers(3, "serve", {})
        return dumps.saved.run_uuid

    name = f"{asyncio.run(run())}_metrics.jsonl"
    assert [path.name for path in (tmp_path / "metrics").iterdir()] == [name]
    assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2]


def test_nothing_is_written_unless_it_is_wanted(tmp_path):
    async def run():
        dumps = dumps_in(tmp_path / "dumps", keep_numbers=False)
        dumps.note_numbers(0, "serve", {})
        await dumps.close()

    asyncio.run(run())
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_said_once_and_taken_again(tmp_path, caplog):
    folder = tmp_path / "dumps"
    folder.write_text("no folder")
    file = MetricsFile(folder / "metrics_x.jsonl")
    file.write(b"1\n")
    file.write(b"2\n")
    folder.unlink()
    file.write(b"3\n")
    shutil.rmtree(folder)
    file.write(b"4\n")
    file.close()
    assert file.path.read_text() == "4\n"
    (said,) = [record.message for record in caplog.records]
    assert said.startswith(f"{file.path} takes no metrics (")


def test_a_disk_that_hangs_holds_nobody_up_and_the_memory_is_bounded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(run_dumps, "MAX_WAITING_NUMBERS", 5)
    hangs, write = threading.Event(), MetricsFile.write

    def hanging(file, line):
        assert hangs.wait(GUARD_S)
        write(file, line)

    monkeypatch.setattr(MetricsFile, "write", hanging)

    async def run():
        dumps = dumps_in(tmp_path)
        for step in range(100):
            dumps.note_numbers(step, "serve", {})
        hangs.set()
        await dumps.close()

    asyncio.run(run())
    assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2, 3, 4]
