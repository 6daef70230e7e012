"""What a run's programs have written, in two lines and on a screen."""

import io
import json
import time
from types import SimpleNamespace

from rich.console import Console

from rg_env.evaluation.sources import HISTORY
from rg_env.launch.program import Program
from rg_env.launch.run_progress import RunProgress, last_rows


def rows(path, *written, torn=""):
    path.write_text("".join(json.dumps(row) + "\n" for row in written) + torn)


def metrics(step, second, scored, **others):
    return {
        "step": step,
        "time": f"2026-11-25T16:00:{second:02d}+00:00",
        "train/mean_score": 0.25,
        "train/groups_with_variance": 0.5,
        "train/completion_tokens": 100.0,
        "train/rollouts_scored": scored,
        **others,
    }


def progress(folder):
    (folder / "checkpoints").mkdir(exist_ok=True)
    config = SimpleNamespace(total_steps=10)
    settings = SimpleNamespace(model="a run")
    plan = SimpleNamespace(
        folder=folder, dumps=folder, config=config, settings=settings
    )
    return RunProgress(plan)


def test_a_run_without_a_new_step_says_what_its_trainer_says(tmp_path, monkeypatch):
    one, now_s = progress(tmp_path), time.monotonic()
    assert "step 0 of 10" in one.place()
    assert one.numbers() == "no step yet"
    (tmp_path / "trainer.log").write_text("started\nno batch for 60 s\n\n")
    assert one.numbers() == "no step yet, trainer: no batch for 60 s"
    rows(tmp_path / HISTORY, {"number": 3, "reward": 0.5})
    assert "no step" not in one.numbers()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 3600)
    assert one.numbers().endswith("no new step, trainer: no batch for 60 s")


def test_the_time_left_is_that_of_the_steps_without_the_start(tmp_path, monkeypatch):
    now_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    one, places = progress(tmp_path), []
    for at_s, step in ((0, 0), (600, 1), (630, 2), (660, 3), (670, 3)):
        now_s[0] = 1000.0 + at_s
        rows(tmp_path / HISTORY, {"number": step})
        places.append(one.place())
    assert [place.partition(", ")[2] for place in places] == [
        "0:00:00",
        "0:10:00",
        "0:10:30, 0:04:00 left",
        "0:11:00, 0:03:30 left",
        "0:11:10, 0:03:30 left",
    ]


def test_numbers_are_those_of_the_newest_lines(tmp_path):
    path = tmp_path / "metrics" / "x_metrics.jsonl"
    path.parent.mkdir()
    rows(path, metrics(1, 0, 50), metrics(2, 10, 80, **{"alarms/answers": 0}))
    places = progress(tmp_path).numbers()
    assert "score 0.250, groups with variance 50%" in places
    assert "300 tokens/s" in places
    assert places.endswith("alarms: none")


def test_the_trainer_has_the_step_and_the_reward(tmp_path):
    rows(tmp_path / "x_metrics.jsonl", metrics(5, 0, 50, **{"alarms/answers": 2}))
    one = progress(tmp_path)
    one.place()
    history = tmp_path / HISTORY
    rows(history, {"number": 3, "reward": 0.5}, torn='{"number": 4')
    assert "step 3 of 10" in one.place()
    assert "reward 0.500" in one.numbers()
    assert "alarms: answers 2" in one.numbers()


def test_only_the_end_of_a_long_file_is_read(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * 2**20 + b"\n" + b'{"a": 1}\n{"a": 2}\n')
    assert last_rows(path) == [{"a": 1}, {"a": 2}]
    assert last_rows(tmp_path / "none.jsonl") == []


def test_a_narrow_terminal_cuts_no_name(tmp_path):
    program = Program("inference", ["x"], tmp_path / "x.log")
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(progress(tmp_path).view([program]))
    text = console.export_text().replace("\n", "").replace(" ", "")
    assert "inference" in text and "restarts" in text
    assert f"logs:{tmp_path}" in text
