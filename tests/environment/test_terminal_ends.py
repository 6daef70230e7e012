"""Commands in a terminal that end too early: Ctrl-C, a closed window, a kill.

All of them run and end at the same time, once for the whole module: most of what they
take is their start.
"""

import asyncio
import re
import signal

import pytest

from rg_env.rollouts.json_encoding import read_groups
from tests.support.faults import always
from tests.support.inference_server import faulty_server
from tests.support.parts import NOWHERE, end_of, options_of
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


def interrupted_twice(terminal):
    terminal.press(CTRL_C)
    terminal.wait_for("SIGINT: shutting down")
    terminal.press(CTRL_C)
    terminal.wait_for_end()


def demo(folder, servers):
    return Terminal(folder, "demo", "--steps", 1000, "--dumps", "dumps")


def serve(folder, servers, api=None):
    settings = {
        "rollout_server_url": api or servers.api,
        "total_steps": 10**6,
        "dump_rollouts": "true",
        "rollout_save_score_threshold": 0.0,
        "data_dumps_dir": "dumps",
        "tasks": "gcd,chain_sum",
    }
    return Terminal(folder, "serve", *options_of(servers.answering, **settings))


def serve_without_api(folder, servers):
    return serve(folder, servers, NOWHERE.removesuffix("/v1"))


def process(folder, servers):
    settings = {"data_path_to_save_groups": "data/rows.jsonl"}
    return Terminal(folder, "process", *options_of(servers.hanging, **settings))


def evaluate(folder, servers):
    settings = {"data_dir_to_save_evals": "data/results"}
    return Terminal(folder, "evaluate", *options_of(servers.hanging, **settings))


def doctor(folder, servers):
    return Terminal(folder, "doctor")


def simulated_server(folder, servers):
    return Terminal(folder, "simulated-server", "--port=0")


def run_api(folder, servers):
    return Terminal(folder, "run-api", "--host=127.0.0.1", "--port=0")


RUNS = {
    "the demo starts": (demo, "Starting", interrupted),
    "the demo runs": (demo, has_dumped, interrupted),
    "the demo is killed": (demo, has_dumped, Terminal.kill),
    "serve waits": (serve_without_api, "does not answer", interrupted),
    "serve is closed": (serve, has_dumped, Terminal.close),
    "serve, twice": (serve, has_dumped, interrupted_twice),
    "process": (process, "process: 0 of", interrupted),
    "evaluate": (evaluate, "evaluation ", interrupted),
    "doctor": (doctor, "doctor: ", interrupted),
    "run-api": (run_api, "ready on", interrupted),
    "simulated-server": (simulated_server, Terminal.has_started_others, interrupted),
}
"""Name to the command, when it is to end, and how."""

INTERRUPTED = [name for name, (*_, end) in RUNS.items() if end is interrupted]
CLOSED_IN_ORDER = ["the demo runs", "serve is closed", "serve, twice"]


class Servers:
    def __init__(self, api, answering, hanging):
        self.api, self.answering, self.hanging = api, answering, hanging


def run_one(folder, servers, command, condition, end):
    terminal = command(folder, servers)
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
        faulty_server(always("")) as answering,
        faulty_server(always("hang")) as hanging,
    ):
        servers = Servers(world.api, answering.url, hanging.url)
        runs = [
            asyncio.to_thread(run_one, folder / name, servers, *how)
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
def test_no_process_is_left(ends, name):
    assert end_of(ends, name).left == []


@pytest.mark.parametrize("name", RUNS)
def test_no_temporary_file_is_left(ends, name):
    left = end_of(ends, name).temporary_files
    # W&B makes them at its import and removes them at an end that is no kill.
    of_wandb = ("wandb-media", "wandb-artifacts")
    assert [path for path in left if not path.endswith(of_wandb)] == []


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_said_that_only_a_developer_understands(ends, name):
    terminal = end_of(ends, name)
    assert terminal.noise == [], terminal.said


@pytest.mark.parametrize("name", INTERRUPTED)
def test_the_status_names_ctrl_c_and_the_cursor_is_there(ends, name):
    terminal = end_of(ends, name)
    assert terminal.status == 128 + signal.SIGINT, terminal.said
    assert terminal.shows_cursor


def test_the_status_names_the_closed_terminal(ends):
    assert end_of(ends, "serve is closed").status == 128 + signal.SIGHUP


@pytest.mark.parametrize("name", CLOSED_IN_ORDER)
def test_every_dump_file_is_complete(ends, name):
    terminal = end_of(ends, name)
    assert [path for path in terminal.files if path.endswith(".part")] == []
    groups = [g for path in terminal.work.glob(DUMPED) for g in read_groups(path)]
    assert groups


@pytest.mark.parametrize("name", [n for n in INTERRUPTED if n != "the demo runs"])
def test_no_file_and_no_empty_folder_is_left_where_nothing_was_written(ends, name):
    assert end_of(ends, name).files == []


def test_a_demo_that_ends_early_says_where_its_dump_files_and_its_report_are(ends):
    terminal = end_of(ends, "the demo runs")
    assert re.search(r"step \d+/1000: ", terminal.text)
    named = [path for path in terminal.files if path.endswith((".jsonl", ".html"))]
    assert {path.rpartition(".")[2] for path in named} == {"jsonl", "html"}
    assert all(path in terminal.text for path in named)
