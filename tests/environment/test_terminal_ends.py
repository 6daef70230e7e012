"""Commands in a terminal that end too early: Ctrl-C, a closed window, a kill.

All of them run and end at the same time, once for the whole module: most of what they
take is their start.
"""

import asyncio
import re
import signal

import pytest

from rg_env.line_file import read_groups
from tests.support.faults import always
from tests.support.inference_server import inference_server
from tests.support.parts import end_of, options_of
from tests.support.terminals import CTRL_C, Terminal
from tests.support.world import World

pytestmark = pytest.mark.processes

DUMPED = "dumps/reasoning_gym_environment_*rollouts_*.jsonl"


# -- runs and ends --------------------------------------------------------------------


def has_dumped(terminal):
    return any(terminal.work.glob(f"{DUMPED}*"))


def interrupted(terminal):
    terminal.press(CTRL_C)
    terminal.wait_for_end()


def hanging(command, setting, path):
    return lambda world: [command, *options_of(world.hanging, **{setting: path})]


DEMO = ("demo", "--steps", 1000, "--dumps", "dumps")
RUNS = {
    "the demo runs": (DEMO, has_dumped, interrupted),
    "the demo is killed": (DEMO, has_dumped, Terminal.kill),
    "serve is closed": (
        lambda world: world.argv(world.answering),
        has_dumped,
        Terminal.close,
    ),
    "process": (
        hanging("process", "data_path_to_save_groups", "data/rows.jsonl"),
        "━",
        interrupted,
    ),
    "evaluate": (
        hanging("evaluate", "data_dir_to_save_evals", "data/results"),
        "evaluation ",
        interrupted,
    ),
    "doctor": (("doctor",), "doctor: ", interrupted),
    "run-api": (
        ("run-api", "--host=127.0.0.1", "--port=0"),
        "ready on",
        interrupted,
    ),
}
"""Name to the command line, when it is to end, and how."""

INTERRUPTED = [name for name, (*_, end) in RUNS.items() if end is interrupted]
CLOSED_IN_ORDER = ["the demo runs", "serve is closed"]


def run_one(folder, world, command, condition, end):
    argv = command(world) if callable(command) else command
    terminal = Terminal(folder, *argv)
    try:
        terminal.wait_for(condition)
        end(terminal)
        terminal.check_left()
    finally:
        terminal.end_all()
    return terminal


async def run_all(folder):
    async with (
        World(folder) as world,
        world.with_api(save_checkpoint_interval=0),
        inference_server(always("")) as answering,
        inference_server(always("hang")) as never,
    ):
        world.answering, world.hanging = answering.url, never.url
        runs = [
            asyncio.to_thread(run_one, folder / name, world, *how)
            for name, how in RUNS.items()
        ]
        return await asyncio.gather(*runs, return_exceptions=True)


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return the terminal of each run, or its error, by name."""
    folder = tmp_path_factory.mktemp("terminals")
    return dict(zip(RUNS, asyncio.run(run_all(folder)), strict=True))


# -- claims ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_no_process_no_temporary_file_and_no_noise_is_left(ends, name):
    terminal = end_of(ends, name)
    assert terminal.left == []
    assert terminal.noise == [], terminal.said
    # W&B makes them at its import and removes them at an end that is no kill.
    of_wandb = ("wandb-media", "wandb-artifacts")
    left = terminal.temporary_files
    assert [path for path in left if not path.endswith(of_wandb)] == []


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_command_says_so_and_leaves_only_what_was_written(ends, name):
    terminal = end_of(ends, name)
    assert terminal.status == 128 + signal.SIGINT, terminal.said
    assert terminal.shows_cursor
    assert name == "the demo runs" or {*terminal.files} <= {"data"}


def test_the_status_names_the_closed_terminal(ends):
    assert end_of(ends, "serve is closed").status == 128 + signal.SIGHUP


@pytest.mark.parametrize("name", CLOSED_IN_ORDER)
def test_every_dump_file_is_complete(ends, name):
    terminal = end_of(ends, name)
    assert [path for path in terminal.files if path.endswith(".part")] == []
    groups = [g for path in terminal.work.glob(DUMPED) for g in read_groups(path)]
    assert groups


def test_a_demo_that_ends_early_says_where_its_dump_files_are_and_what_reports(ends):
    terminal = end_of(ends, "the demo runs")
    assert re.search(r"step \d+/1000: ", terminal.text)
    named = [path for path in terminal.files if path.endswith((".jsonl", ".html"))]
    assert {path.rpartition(".")[2] for path in named} == {"jsonl"}
    assert all(path in terminal.text for path in named)
    assert re.search(r"report \S+ .*--out ", terminal.text)
