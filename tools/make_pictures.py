"""Makes the pictures of the documents: `make pictures`.

Real runs of `process` with the simulated server, of one seed, and a browser without a
window that opens their report. The same items, texts and size at every run.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.demo.child_process import running_program
from rg_env.installation import PROJECT
from tools.browser import Browser, find_browser

PICTURES = {
    "report.png": ("a=model_1", 1180),
    "report_reader.png": ("differ=true", 1180),
}
"""File to what of the report it shows, and its height in pixels."""

RUNS = {"model_1": ("--skill=0.8",), "model_2": ("--skill=0.2",)}
"""Name to options of the simulated server."""

WIDTH = 1100
FIRST = "document.querySelector('#found-rows tbody button')"

SERVER_PROGRAM = "rg_env.cli.simulated_server_command"
TASKS = "gcd,knights_knaves,leg_counting,puzzle24,spell_backward,time_intervals"
GROUPS = 72
DEADLINE_S = 120.0


def _process(server: str, rows: Path) -> None:
    """Run `process`, which writes a report as well."""
    settings = {
        "openai.base_url": f"{server}/v1",
        "env.tokenizer_name": TOKENIZER_FOLDER,
        "env.tasks": TASKS,
        "env.total_steps": GROUPS,
        "env.max_num_workers": 1,  # one group after the other keeps their order
        "env.use_wandb": "false",
        "env.data_path_to_save_groups": rows,
        "env.data_dumps_dir": rows.with_suffix(""),
    }
    _run("process", *(f"--{name}={value}" for name, value in settings.items()))


def _run(*words: str, folder: Path = PROJECT) -> None:
    program = str(PROJECT / "reasoning_gym_environment.py")
    command = [sys.executable, program, *words]
    subprocess.run(command, check=True, timeout=DEADLINE_S, cwd=folder)


def _photograph(page: Path, folder: Path) -> None:
    with Browser(folder) as browser:
        for picture, (place, height) in PICTURES.items():
            browser.size(WIDTH, height)
            browser.open(page, place)
            if "differ" in place:  # the first of what they disagree on
                browser.wait(f"!!{FIRST}")
                browser.run(f"{FIRST}.click()")
                browser.wait("document.querySelectorAll('#rollout section').length > 0")
                browser.run("document.getElementById('rollouts').scrollIntoView()")
            browser.wait("document.fonts.status === 'loaded'")
            browser.picture(folder / picture)
            shutil.copyfile(folder / picture, PROJECT / "docs" / picture)


async def _make() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for run, options in RUNS.items():
            given = ("--port=0", f"--tasks={TASKS}", *options)
            async with running_program(SERVER_PROGRAM, *given) as server:
                rows = folder / f"{run}.jsonl"
                await asyncio.to_thread(_process, server, rows)
        both = [f"{run}.jsonl" for run in RUNS]
        _run("report", *both, "--title", "Two models", folder=folder)
        _photograph(folder / "report" / "index.html", folder)


def main() -> int:
    try:
        find_browser()
        asyncio.run(_make())
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.SubprocessError as error:
        print(f"error: the picture could not be made: {error}", file=sys.stderr)
        return 1
    print(f"made {', '.join(f'docs/{name}' for name in PICTURES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
