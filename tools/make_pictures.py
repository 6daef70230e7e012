"""Makes the pictures of the documents: `make pictures`.

Real runs of `process` with the simulated model, of one seed, and a browser without a
window that opens their report. The same items, texts and size at every run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rg_env.installation import PROJECT
from tools.browser import Browser, find_browser

RUNS = {"model_1": "0.8", "model_2": "0.2"}
"""Name to the skill of the simulated model."""

SIZE = (1100, 1180)
FIRST = "document.querySelector('#rollouts tbody button')"
PROGRAM = """
import sys
from rg_env.cli.main import run_and_exit
from rg_env.demo.simulated_model import PolicyProfile, SimulatedClient
from reasoning_gym_environment import ReasoningGymEnv
SimulatedClient.profile = PolicyProfile(mean_skill=float(sys.argv[1]))
run_and_exit(ReasoningGymEnv, ["process", *sys.argv[2:]])
"""
TASKS = "gcd,knights_knaves,leg_counting,puzzle24,spell_backward,time_intervals"
SETTINGS = {
    "tasks": TASKS,
    "total_steps": 72,
    "max_num_workers": 1,  # one group after the other keeps their order
    "use_wandb": "false",
}
DEADLINE_S = 120.0


def _run(*words: str, folder: Path = PROJECT) -> None:
    command = [sys.executable, *words]
    subprocess.run(command, check=True, timeout=DEADLINE_S, cwd=folder)


def _photograph(page: Path) -> None:
    with Browser(page.parent) as browser:
        browser.size(*SIZE)
        browser.open(page)
        browser.wait("document.fonts.status === 'loaded'")
        browser.picture(PROJECT / "docs" / "report.png")
        browser.run(f"{FIRST}.click()")
        browser.wait("document.getElementById('opened').children.length > 0")
        browser.run("document.getElementById('rollout').scrollIntoView()")
        browser.picture(PROJECT / "docs" / "report_reader.png")


def _make(folder: Path) -> None:
    for run, skill in RUNS.items():
        written = {"path_to_save_groups": f"{run}.jsonl", "dumps_dir": run}
        settings = SETTINGS | {f"data_{k}": folder / v for k, v in written.items()}
        options = [f"--env.{name}={value}" for name, value in settings.items()]
        _run("-c", PROGRAM, skill, "--openai.base_url=simulated", *options)
    entry = str(PROJECT / "reasoning_gym_environment.py")
    rows = [f"{run}.jsonl" for run in RUNS]
    _run(entry, "report", *rows, "--title=Two models", folder=folder)
    _photograph(folder / "report" / "index.html")


if __name__ == "__main__":
    find_browser()  # before the runs
    with tempfile.TemporaryDirectory() as name:
        _make(Path(name))
