"""`export`: its folders, its card and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from tests.support.parts import run_main
from tests.support.reported import write_lines

pytestmark = pytest.mark.processes

SETTINGS = """
env:
  tasks: [gcd, chain_sum]
  task_levels: {gcd: [0.2, 0.4]}
  num_eval_samples_per_task: 2
  group_size: 8
openai: {model_name: m}
"""


def rows_of(folder, split="train"):
    text = (folder / f"{split}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """The folder of an export of the settings of a run."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "run.yaml").write_text(SETTINGS)
    argv = ["--config", folder / "run.yaml", "--number", "20", "--env.seed", "5"]
    argv = ["export", "items", *map(str, argv), "--out", str(folder / "items")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["reasoning_gym_environment.py", *argv])
        assert run_main(argv) == 0
    return folder / "items"


def test_items_are_those_of_the_settings(items):
    assert len(rows_of(items)) == 20
    assert len(rows_of(items, "test")) == 4
    levels = [row["level"] for row in rows_of(items) if row["task"] == "gcd"]
    assert levels and all(0.2 <= level <= 0.4 for level in levels)


def test_the_command_of_the_card_gives_the_same_bytes(items, tmp_path, logged):
    text = (items / "README.md").read_text().split("How it was made:")[1]
    card = yaml.safe_load(text)
    assert card["settings"]["tasks"] == ["gcd", "chain_sum"]
    words = card["command"].split()
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert run_main(words[2:]) == 0
    assert "export: 24 of 24 items" in logged.text
    for split in ("train.jsonl", "test.jsonl"):
        again = tmp_path / "again" / split
        assert again.read_bytes() == (items / split).read_bytes()


def test_the_installed_command_needs_no_framework(tmp_path):
    foreign = "aiohttp atroposlib fastapi isal jinja2 openai orjson tokenizers wandb"
    argv = ["export", "items", "--env.tasks=gcd", "--number=3", f"--out={tmp_path}/x"]
    source = f"""
import sys
sys.modules.update(dict.fromkeys({foreign.split()}))  # as if they were missing
sys.argv = ["rg-env", *{argv}]
from rg_env.cli.console import main
main()
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "x")) == 3


def test_fewer_items_than_requested_are_written_with_status_1(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("rg_env.adapters.dataset_export.MAX_REPEATS_IN_A_ROW", 50)
    few = "{gcd: {min_numbers: 2, max_numbers: 2, min_value: 1, max_value: 3}}"
    argv = ["--env.tasks", "gcd", "--env.complexity_mode", "None"]
    argv += ["--env.task_params", few, "--out", str(tmp_path / "x")]
    assert run_main(["export", "items", *argv]) == 1
    assert "questions that came again" in capsys.readouterr().out
    assert 0 < len(rows_of(tmp_path / "x")) < 9


@pytest.mark.parametrize(
    ("line", "option", "expected"),
    [
        ("seed: 1", "--env.complexity_mode=curriculum", "need the results of training"),
        ("seed: 1", "--env.group_size=4", "No such option"),
        ("seed: 1", "--number=0", "--number"),
        ("num_shards: 2", "--number=1", "env.num_shards"),
        ("eval_preset: rg-easy", "--number=1", "env.eval_preset"),
    ],
)
def test_a_setting_that_an_export_does_not_support_is_refused(
    line, option, expected, tmp_path, capsys
):
    (tmp_path / "run.yaml").write_text(f"env:\n  tasks: [gcd]\n  {line}\n")
    argv = [f"--config={tmp_path / 'run.yaml'}", f"--out={tmp_path / 'x'}", option]
    assert run_main(["export", "items", *argv]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_completions_are_chosen_by_the_options(tmp_path, capsys):
    scores = {"a": 1.0, "b": 0.2, "c": 0.1}
    asked = {"task": "gcd", "seed": 7, "question": "2 + 2?"}
    lines = [{**asked, "text": text, "score": score} for text, score in scores.items()]
    path = write_lines(tmp_path / "lines.jsonl", [*lines, "torn"])
    argv = [str(path), "--out", str(tmp_path / "x")]
    argv += ["--least_score", "0.1", "--most_per_item", "2"]
    assert run_main(["export", "sft", *argv]) == 0
    assert len(rows_of(tmp_path / "x")) == 2
    printed = capsys.readouterr().out
    assert "rows: 2 train" in printed and "damaged lines: 1" in printed
