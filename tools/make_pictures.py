"""Makes the pictures of the documents: `make pictures`.

Real runs of `process` with the simulated server, of one seed, and a browser without a
window that opens their report. The same items, texts and size at every run.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.demo.child_process import running_program
from rg_env.installation import PROJECT
from tools.browser import Browser, find_browser

RUNS = {"model_1": "0.8", "model_2": "0.2"}
"""Name to the skill of the simulated model."""

SIZE = (1100, 1180)
FIRST = "document.querySelector('#found-rows tbody button')"
SERVER_PROGRAM = "rg_env.cli.simulated_server_command"
TASKS = "gcd,knights_knaves,leg_counting,puzzle24,spell_backward,time_intervals"
SETTINGS = {
    "tokenizer_name": TOKENIZER_FOLDER,
    "tasks": TASKS,
    "total_steps": 72,
    "max_num_workers": 1,  # one group after the other keeps their order
    "use_wandb": "false",
}
DEADLINE_S = 120.0


def _run(*words: str, folder: Path = PROJECT) -> None:
    program = str(PROJECT / "reasoning_gym_environment.py")
    command = [sys.executable, program, *words]
    subprocess.run(command, check=True, timeout=DEADLINE_S, cwd=folder)


def _photograph(page: Path) -> None:
    with Browser(page.parent) as browser:
        browser.size(*SIZE)
        browser.open(page, f"a={next(iter(RUNS))}")
        browser.wait("document.fonts.status === 'loaded'")
        browser.picture(PROJECT / "docs" / "report.png")
        browser.open(page, "differ=true")
        browser.wait(f"!!{FIRST}")
        browser.run(f"{FIRST}.click()")  # the first of what they disagree on
        browser.wait("document.querySelectorAll('#rollout section').length > 0")
        browser.run("document.getElementById('rollouts').scrollIntoView()")
        browser.wait("document.fonts.status === 'loaded'")
        browser.picture(PROJECT / "docs" / "report_reader.png")


async def _make(folder: Path) -> None:
    for run, skill in RUNS.items():
        given = ("--port=0", f"--tasks={TASKS}", f"--skill={skill}")
        async with running_program(SERVER_PROGRAM, *given) as server:
            written = {"path_to_save_groups": f"{run}.jsonl", "dumps_dir": run}
            settings = SETTINGS | {f"data_{k}": folder / v for k, v in written.items()}
            options = [f"--env.{name}={value}" for name, value in settings.items()]
            where = f"--openai.base_url={server}/v1"
            await asyncio.to_thread(_run, "process", where, *options)
    _run(
        "report", *(f"{run}.jsonl" for run in RUNS), "--title=Two models", folder=folder
    )
    _photograph(folder / "report" / "index.html")


if __name__ == "__main__":
    try:
        find_browser()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(_make(Path(name)))
