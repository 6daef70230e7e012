"""Makes the pictures of the documents: `make pictures`.

A real run of `process` with the simulated server, of one seed, and a browser without a
window that opens its page. The same items, texts and size at every run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.simulation.child_process import PROJECT, running_program

PICTURE = PROJECT / "docs" / "process_page.png"
WIDTH, HEIGHT = 1100, 1180
"""Pixels."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SERVER_PROGRAM = "rg_env.cli.simulated_server_command"
TASKS = "gcd,knights_knaves,leg_counting,puzzle24,spell_backward,time_intervals"
GROUPS = 6
DEADLINE_S = 120.0


def find_browser() -> str:
    """Return the path of a browser.

    Raises:
        FileNotFoundError: There is none; the text says what to install.
    """
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise FileNotFoundError(
        f"no browser is on PATH: looked for {', '.join(BROWSERS)}; install chromium"
    )


def _page(server: str, folder: Path) -> Path:
    """Run `process`; return the page that it wrote."""
    settings = {
        "openai.base_url": f"{server}/v1",
        "env.tokenizer_name": TOKENIZER_FOLDER,
        "env.tasks": TASKS,
        "env.total_steps": GROUPS,
        "env.max_num_workers": 1,  # one group after the other keeps their order
        "env.use_wandb": "false",
        "env.data_path_to_save_groups": folder / "reasoning_gym.jsonl",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    program = PROJECT / "reasoning_gym_environment.py"
    subprocess.run(
        [sys.executable, program, "process", *options], check=True, timeout=DEADLINE_S
    )
    return folder / "reasoning_gym.html"


def _photograph(browser: str, page: Path, picture: Path) -> None:
    options = [
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--force-color-profile=srgb",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--screenshot={picture}",
    ]
    if os.geteuid() == 0:  # as root it does not start with its sandbox
        options.append("--no-sandbox")
    subprocess.run(
        [browser, *options, page.as_uri()],
        check=True,
        timeout=DEADLINE_S,
        stderr=subprocess.DEVNULL,
    )


async def _make(browser: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ("--port=0", f"--tasks={TASKS}")
        async with running_program(SERVER_PROGRAM, *options) as server:
            page = await asyncio.to_thread(_page, server, folder)
        taken = folder / "taken.png"
        _photograph(browser, page, taken)
        shutil.copyfile(taken, PICTURE)


def main() -> int:
    """Make them; return the exit status."""
    try:
        asyncio.run(_make(find_browser()))
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.SubprocessError as error:
        print(f"error: the picture could not be made: {error}", file=sys.stderr)
        return 1
    print(f"made {PICTURE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
