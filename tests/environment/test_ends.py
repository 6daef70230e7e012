"""Commands in a terminal that end too early: Ctrl-C, a closed window, a kill.

All of them run and end at the same time, once for the whole module: most of what they
take is their start.
"""

import asyncio
import re
import signal
import time

import pytest

from rg_env.demo.stand_in_trainer import ENDLESS
from rg_env.line_file import read_groups
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.faults import MAX_HANG_S
from tests.support.inference_server import inference_server
from tests.support.parts import options_of
from tests.support.real_api import RealApi
from tests.support.runs import trainer_config
from tests.support.stock_api import running_api, trained_api
from tests.support.terminals import CTRL_C, Terminal

pytestmark = pytest.mark.processes

DUMPED = "dumps/reasoning_gym_environment_*rollouts_*.jsonl"
ANSWERED = 40
"""Requests until a server hangs."""
END_WITHIN_S = MAX_HANG_S
"""A server that hangs is not waited for; a busy machine may take its time."""
LIBRARY_OF_THE_HOST = "multidict"
"""It is loaded early in an import of the host, which takes another second then."""

CLOSED = "serve is closed"
KILLED = "serve is killed"
SERVES = {
    "total_steps": 10**6,
    "dump_rollouts": True,
    "rollout_save_score_threshold": 0.0,
    "tasks": ["gcd", "chain_sum"],
    "seed": 7,
    "inference_weight": 1.0,
    "min_batch_allocation": None,
    "max_batches_offpolicy": 0,
}


# -- runs and ends ---------------------------------------------------------------------


def has_dumped(terminal):
    return any(terminal.work.glob(f"{DUMPED}*"))


def is_importing(terminal):
    return LIBRARY_OF_THE_HOST in terminal.maps


INTERRUPTED = {
    "the demo runs": (("demo", "--steps", 1000, "--dumps", "dumps"), has_dumped),
    "doctor": (("doctor",), "doctor: "),
    "run-api": (("run-api", "--host=127.0.0.1", "--port=0"), "ready on"),
    "it imports": (("serve", *options_of()), is_importing),
}
"""Name to the command line, and when Ctrl-C is pressed."""


def interrupted(folder, argv, condition):
    with Terminal(folder, *argv) as terminal:
        terminal.wait_for(condition)
        terminal.press(CTRL_C)
        terminal.wait_for_end()
    return terminal


def serving(folder, model, api):
    """Start `serve` in a terminal, with the name of its folder."""
    options = options_of(
        model,
        rollout_server_url=api.url,
        data_dumps_dir="dumps",
        wandb_name=folder.name,
        **SERVES,
    )
    return Terminal(folder, "serve", *options)


def closed(folder, server, api):
    """Close the terminal of one of two that are registered, while its server hangs."""

    def is_hanging(terminal):
        return len(server.arrivals) > ANSWERED and api.connected() == 2

    with serving(folder, server.url, api) as terminal:
        terminal.wait_for(is_hanging)
        began = time.monotonic()
        terminal.close()
        terminal.took_s = time.monotonic() - began
        terminal.still_registered = api.connected()
    return terminal


def killed(folder, api):
    """Kill one that has dumped a group."""
    with serving(folder, SIMULATED, api) as terminal:
        terminal.wait_for(has_dumped)
        terminal.kill()
    return terminal


async def run_all(folder):
    """Return the terminals by name."""
    trainer = trainer_config(steps=ENDLESS)
    async with (
        inference_server(lambda n: "hang" * (n >= ANSWERED)) as hanging,
        trained_api(trainer, api=running_api()) as (url, _),
    ):
        api = RealApi(url)
        terminals = await asyncio.gather(
            *(
                asyncio.to_thread(interrupted, folder / name, *how)
                for name, how in INTERRUPTED.items()
            ),
            asyncio.to_thread(closed, folder / CLOSED, hanging, api),
            asyncio.to_thread(killed, folder / KILLED, api),
        )
    return dict(zip([*INTERRUPTED, CLOSED, KILLED], terminals, strict=True))


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    return asyncio.run(run_all(tmp_path_factory.mktemp("ends")))


@pytest.fixture
def terminal(ends, name):
    return ends[name]


def dumped(terminal):
    return [g for path in terminal.work.glob(DUMPED) for g in read_groups(path)]


# -- claims ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*INTERRUPTED, CLOSED, KILLED])
def test_no_process_no_temporary_file_and_no_noise_is_left(terminal):
    assert terminal.left == []
    assert terminal.noise == [], terminal.said
    # W&B makes them at its import and removes them at an end that is no kill.
    of_wandb = ("wandb-media", "wandb-artifacts")
    left = terminal.temporary_files
    assert [path for path in left if not path.endswith(of_wandb)] == []


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_command_says_so_and_leaves_only_what_was_written(
    terminal, name
):
    # Where nothing has to be undone the signal itself ends it: 128 + n for a shell.
    expected = -signal.SIGINT if name == "it imports" else 128 + signal.SIGINT
    assert terminal.status == expected, terminal.said
    assert terminal.shows_cursor
    assert name == "the demo runs" or terminal.files == []


@pytest.mark.parametrize("name", ["the demo runs", CLOSED])
def test_every_dump_file_is_complete(terminal):
    assert [path for path in terminal.files if path.endswith(".part")] == []
    assert dumped(terminal)


@pytest.mark.parametrize("name", ["the demo runs"])
def test_a_demo_that_ends_early_says_where_its_dump_files_are_and_what_reports(
    terminal,
):
    assert re.search(r"step \d+/1000: ", terminal.text)
    named = [path for path in terminal.files if path.endswith((".jsonl", ".html"))]
    assert {path.rpartition(".")[2] for path in named} == {"jsonl"}
    assert all(path in terminal.text for path in named)
    assert re.search(r"report \S+ .*--out ", terminal.text)


@pytest.mark.parametrize("name", [CLOSED])
def test_a_closed_terminal_ends_serve_in_time_and_the_api_is_told(terminal):
    assert terminal.status == 128 + signal.SIGHUP
    assert terminal.took_s < END_WITHIN_S
    assert terminal.still_registered == 1
