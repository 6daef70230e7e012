"""Throughput of `serve` against the real Atropos API, beside another version of it.

    python benchmarks/throughput.py [--against OTHER_ENVIRONMENT.py]

Each contestant is a file that is run as `python FILE serve --env.x y ...`, in turn and
in fresh processes (A B A B): `ours` is reasoning_gym_environment.py, `other` the file
given as --against. Each runs with the API of this project's `run-api` and with that of
the framework's.

Simulated are the trainer, which takes batches and trains nothing, and the model: every
request is answered after the same time with completions of the same length, which are
made once and half of which have an answer. Shown are
the groups that the trainer has taken a second, CPU and memory of `serve` and of its
workers, how late its event loop was, and when the first batch came. All processes share
the cores of this machine: at a latency of 0, the API's own CPU bounds everybody.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import itertools
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from rg_env.demo.child_process import RUN_API, running_program
from rg_env.demo.stand_in_trainer import ENDLESS, StandInTrainer, TrainerConfig
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.results.samples import grouped
from tests.support import inference_server
from tests.support.commands import read_log_end
from tests.support.stock_api import trained_api
from tests.support.text_models import ChatTokenizer, Generation

FOLDER = Path(__file__).resolve().parent
OURS = FOLDER.parent / "reasoning_gym_environment.py"
APIS = {"quick": "run-api", "stock": "stock API"}
GROUP_SIZE = 8
BATCH_SIZE = 64
PROMPT_ROOM_TOKENS = 4096
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 20.0
SAMPLE_EVERY_S = 0.5
MIB = 1024**2

MEASURES = {
    "groups/s": ".1f",
    "CPU main ms/group": ".1f",
    "CPU workers ms/group": ".1f",
    "loop p99 ms": ".1f",
    "peak memory MiB": ".0f",
    "first batch s": ".2f",
}

Run = dict[str, Any]

# Completions have so many tokens; the process of the model inherits the number.
TOKENS = int(os.environ.get("BENCHMARK_TOKENS", "300"))
VARIANTS = 16
WORDS = "so we look at each number in turn and count again because a slip 3 7 12 plus"


@functools.cache
def fixed_generation(variant: int, limit_tokens: int) -> Generation:
    """Return a completion of `TOKENS` tokens; every other one has an answer."""
    rng = random.Random(variant)
    tokenizer = ChatTokenizer()
    words = " ".join(rng.choices(WORDS.split(), k=TOKENS))
    answer = f"\n</think>\n<answer>{variant}</answer>" if variant % 2 else ""
    end = [*tokenizer.encode(answer), tokenizer.end_id]
    ids = [*tokenizer.encode(f"<think>\n{words}")[: TOKENS - len(end)], *end]
    ids = ids[:limit_tokens]
    is_whole = limit_tokens == TOKENS
    logprobs = [-rng.expovariate(2.0) for _ in ids]
    reason = "stop" if is_whole else "length"
    return Generation(tokenizer.decode(ids), ids, logprobs, reason)


def serve_model(latency_ms: float) -> None:
    """Serve completions that cost less than what is measured: each is made once."""

    async def generate(prompt: str, n: int, max_tokens: int) -> list[Generation]:
        limit = min(TOKENS, max_tokens)
        first = len(prompt)
        return [fixed_generation((first + i) % VARIANTS, limit) for i in range(n)]

    model = SimpleNamespace(generate=generate)
    # The framework's class queries `/generate`.
    inference_server.run(model=model, latency_ms=latency_ms, generates=True)


class Processes:
    """CPU and memory of a process and of its descendants; PSS counts shared pages once.

    A descendant that has ended keeps counting with what it used when last seen.
    """

    def __init__(self, pid: int) -> None:
        self._main = psutil.Process(pid)
        self._cpu_s = dict[int, float]()
        self.seen: set[psutil.Process] = set()
        self.main_s = 0.0
        self.peak_mib = 0.0

    def sample(self) -> tuple[float, float]:
        """Return the CPU seconds of the process, and of its descendants together."""
        memory = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            self.seen.update(self._main.children(recursive=True))
            self.main_s = sum(self._main.cpu_times()[:2])
            memory += self._main.memory_full_info().pss / MIB
        for process in self.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._cpu_s[process.pid] = sum(process.cpu_times()[:2])
                memory += process.memory_full_info().pss / MIB
        self.peak_mib = max(self.peak_mib, memory)
        return self.main_s, sum(self._cpu_s.values())


@contextlib.contextmanager
def serving(file: Path, api: str, server: str, folder: Path) -> Iterator[Processes]:
    """Run `serve` of a file while the context lasts, and end all that it has begun."""
    options = {
        "env.tokenizer_name": TOKENIZER_FOLDER,
        "env.rollout_server_url": api,
        "env.use_wandb": "false",
        "env.group_size": GROUP_SIZE,
        "env.batch_size": BATCH_SIZE,
        "env.total_steps": ENDLESS,
        "env.steps_per_eval": ENDLESS,
        "env.max_token_length": TOKENS + PROMPT_ROOM_TOKENS,
        "env.max_num_workers": 8,
        "env.ensure_scores_are_not_same": "false",
        "openai.base_url": f"{server}/v1",
        "openai.server_type": "vllm",
        "openai.model_name": "fixed",
        "openai.tokenizer_name": TOKENIZER_FOLDER,
        "openai.num_max_requests_at_once": 4096,
    }
    if file == OURS:
        options["env.data_dumps_dir"] = folder
    argv = [text for k, v in options.items() for text in (f"--{k}", str(v))]
    probe = [str(FOLDER / "loop_probe.py"), str(folder / "loop"), str(file)]
    offline = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *probe, "serve", *argv],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **offline, "TOKENIZERS_PARALLELISM": "false"},
        )
    found = Processes(process.pid)
    try:
        yield found
        if process.poll() is not None:
            raise RuntimeError(f"{file} ended:\n{read_log_end(folder / 'log')}")
    finally:
        found.sample()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for left_behind in found.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                left_behind.kill()


async def until_batches(trainer: StandInTrainer, count: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while trainer.counts.steps < count and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def measure(file: Path, api: str, latency_ms: float, seconds: float) -> Run:
    """Run one contestant with one API.

    Raises:
        RuntimeError: The environment ended, or no batch came.
    """
    config = TrainerConfig(
        api_url="",
        batch_size=BATCH_SIZE,
        group_size=GROUP_SIZE,
        max_token_len=TOKENS + PROMPT_ROOM_TOKENS + 1,
        num_steps=ENDLESS,
        max_wait_s=0.05,
        checked_groups=1,  # to check all of them would take CPU from what is measured
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = RUN_API if api == "quick" else ("tests.support.stock_api",)
        running_api = running_program(*program, "--port=0")
        async with (
            trained_api(config, api=running_api) as (api_url, trainer),
            running_program("benchmarks.throughput", f"--serve={latency_ms}") as server,
        ):
            began = time.monotonic()
            with serving(file, api_url, server, folder) as used:
                await until_batches(trainer, 1)
                first_s = time.monotonic() - began
                await until_batches(trainer, 3)
                start = time.monotonic()
                groups = trainer.counts.groups
                before = used.sample()
                while time.monotonic() < start + seconds:
                    await asyncio.sleep(SAMPLE_EVERY_S)
                    await asyncio.to_thread(used.sample)
                await until_batches(trainer, 4)  # none may come in a short time
                after = await asyncio.to_thread(used.sample)
                end = time.monotonic()
                groups = trainer.counts.groups - groups
            faults = dict(trainer.counts.faults)
        if not groups or faults:
            log = read_log_end(folder / "log")
            raise RuntimeError(f"{file}: {groups} groups, faults {faults}:\n{log}")
        lines = (folder / "loop").read_text().splitlines()
        late = [ms for line in lines for t, ms in json.loads(line) if start < t < end]
    main, workers = (1e3 * (b - a) / groups for a, b in zip(before, after, strict=True))
    return {
        "groups/s": groups / (end - start),
        "CPU main ms/group": main,
        "CPU workers ms/group": workers,
        "loop p99 ms": statistics.quantiles(late, n=100)[98],
        "peak memory MiB": used.peak_mib,
        "first batch s": first_s,
    }


async def run_all(options: argparse.Namespace, runs: list[Run]) -> None:
    """Measure everybody in turn; what is found is appended."""
    files = {"ours": OURS} | ({"other": options.against} if options.against else {})
    turns = itertools.product(
        options.latencies, options.apis, range(options.rounds), files
    )
    for latency_ms, api, number, name in turns:
        which = {"name": name, "api": api, "latency_ms": latency_ms, "round": number}
        run = await measure(files[name], api, latency_ms, options.seconds)
        runs.append(which | run)
        print(f"{which}: {run['groups/s']:.1f} groups/s", file=sys.stderr)


def table(runs: Sequence[Run]) -> Table:
    """Return the medians of the rounds, and the medians of their ratios."""
    shown = Table("", *MEASURES, title="medians of the rounds")
    shown.columns[0].no_wrap = True

    def add(head: str, rounds: Sequence[Run], form: str = "") -> None:
        cells = []
        for measure, own_form in MEASURES.items():
            median = statistics.median(run[measure] for run in rounds)
            cells.append(format(median, form or own_form))
        shown.add_row(head, *cells)

    places = grouped(runs, lambda run: (run["latency_ms"], run["api"]))
    for (latency_ms, api), here in places.items():
        by_name = grouped(here, lambda run: run["name"])
        for name, rounds in by_name.items():
            add(f"{name}, {APIS[api]}, {latency_ms:g} ms", rounds)
        if len(by_name) == 2:  # a machine's speed varies from round to round
            pairs = zip(*by_name.values(), strict=False)
            # The original has no workers, and no CPU of theirs.
            ratios = [
                {m: a[m] / (b[m] or math.nan) for m in MEASURES} for a, b in pairs
            ]
            add("  ours / other", ratios, ".2f")
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; when it is interrupted, what there is."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--against", type=Path, help="another file with the same command line")
    add("--apis", nargs="+", choices=APIS, default=list(APIS))
    add("--rounds", type=int, default=2, help="A B A B is two")
    add("--latencies", type=float, nargs="+", default=[0, 50, 500], help="in ms")
    add("--seconds", type=float, default=10.0, help="of a run, after its warm-up")
    add("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve is not None:
        serve_model(options.serve)
        return 0
    runs: list[Run] = []
    try:
        asyncio.run(run_all(options, runs))
    finally:
        if runs:
            Console().print(table(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
