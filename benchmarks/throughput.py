"""Throughput of `serve` against the real Atropos API, beside the limits of the machine.

    python benchmarks/throughput.py [--against OTHER_ENVIRONMENT.py] [--json FILE]

Each contestant is a file that is run as `python FILE serve --env.x y ...`, in turn and
in fresh processes: A B A B. Contestants are

    ours    reasoning_gym_environment.py
    null    harness/null_environment.py: the same host code, one constant item and
            constant scores: what ours is bounded by
    other   the file given as --against

each with the API of this project's `run-api` and with that of the framework's, which
reply the same.

Simulated are the trainer, which takes batches and trains nothing, and the model: every
request is answered after the same time with completions of the same length. Shown are
what reached the API a second, how long the server waited, CPU (the server's own too)
and memory, and how late the event loop was in the environment's own process (measured
by a probe inside it). JSON holds every run (`runs`), medians and ratios (`summary`).

All the processes share the cores of this machine. So at 0 ms, and with long
completions, the API's own CPU bounds everybody; it is shown beside.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from benchmarks.harness import report
from benchmarks.harness.run import measure
from benchmarks.harness.setting import Contestant, Setting
from rg_env import ending
from rg_env.installation import PROJECT

HARNESS = PROJECT / "benchmarks" / "harness"
Runs = list[dict[str, Any]]
FILES = {
    "ours": PROJECT / "reasoning_gym_environment.py",
    "null": HARNESS / "null_environment.py",
}
APIS = {"quick": "", "stock": ", stock API"}
"""`run-api` of this project or of the framework, and what tables add to a name."""


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=str(__doc__).splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--contestants", default="ours,null", help=f"among {', '.join(FILES)}")
    add("--against", type=Path, help="another file with the same command line")
    add("--apis", default="quick,stock", help=f"among {', '.join(APIS)}")
    add("--rounds", type=int, default=2, help="A B A B is two")
    add("--latencies", type=numbers, default="0,50,500", help="in ms")
    add("--tokens", type=numbers, default="300", help="of a completion")
    add("--workers", type=int, default=8, help="groups in flight, each instance")
    add("--group-size", type=int, default=8)
    add("--batch-size", type=int, default=64, help="rollouts of the trainer's batch")
    add("--groups", type=int, default=400, help="of a run's window, at most")
    add("--seconds", type=float, default=10.0, help="of a run's window, at most")
    add("--instances", type=int, default=1, help="environments on the one API")
    add("--args", default="", help="further options for every contestant")
    add("--own-args", default="", help="further options for ours and null")
    add("--json", type=Path, help="file to write")
    add("--keep", type=Path, help="folder for the logs of all processes")
    return parser


def settings(options: argparse.Namespace) -> list[Setting]:
    """Return what is to be measured under, in order."""
    base = Setting(
        latency_ms=0.0,
        tokens=int(options.tokens[0]),
        workers=options.workers,
        group_size=options.group_size,
        batch_size=options.batch_size,
        instances=options.instances,
        groups=options.groups,
        seconds=options.seconds,
    )
    return [
        dataclasses.replace(base, latency_ms=latency_ms, tokens=int(tokens))
        for tokens in options.tokens
        for latency_ms in options.latencies
    ]


def contestants(options: argparse.Namespace) -> list[Contestant]:
    """Return who is measured, in the order of their turns."""
    found: list[Contestant] = []
    shared, own = shlex.split(options.args), shlex.split(options.own_args)
    for name in options.contestants.split(","):
        if name not in FILES:
            raise SystemExit(f"--contestants: {name!r} is none of {', '.join(FILES)}")
        # A run that is measured leaves no file.
        own = (*own, "--env.dump_metrics", "false")
        found.append(Contestant(name, FILES[name], True, (*shared, *own)))
    if options.against is not None:
        if not options.against.is_file():
            raise SystemExit(f"--against: there is no file {options.against}")
        other = options.against.resolve()
        found.append(Contestant("other", other, False, tuple(shared)))
    apis = options.apis.split(",")
    for api in apis:
        if api not in APIS:
            raise SystemExit(f"--apis: {api!r} is none of {', '.join(APIS)}")
    return [
        dataclasses.replace(one, name=one.name + APIS[api], is_api_quick=api == "quick")
        for api in apis
        for one in found
    ]


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def plan(options: argparse.Namespace) -> list[tuple[int, Setting, Contestant]]:
    """Return all runs in order, each with its round: within a setting, A B A B."""
    return [
        (number, setting, contestant)
        for setting in settings(options)
        for number in range(options.rounds)
        for contestant in contestants(options)
    ]


async def run_all(options: argparse.Namespace, scratch: Path, found: Runs) -> None:
    """Measure everybody under every setting; what is found is appended."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    runs = plan(options)
    for place, (number, setting, contestant) in enumerate(runs, start=1):
        heading = f"{place}/{len(runs)} {contestant.name}, {setting.title}"
        folder = (options.keep or scratch) / f"{place:03d}_{contestant.name}"
        console.print(f"{heading} ...")
        run = await measure(contestant, setting, folder)
        found.append({"round": number, "title": setting.title, **run})
        console.print(f"{heading}: {run['groups_per_s']:.1f} groups/s")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write; when it is interrupted, what there is."""
    options = build_parser().parse_args(argv)
    plan(options)  # refuses wrong names before anything is started
    found: Runs = []
    measured_on = machine()
    with tempfile.TemporaryDirectory() as scratch:
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
        try:
            ending.run(run_all(options, Path(scratch), found))
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            if found:
                Console().print(report.tables(found))
            if found and options.json is not None:
                summary = report.summary(found)
                whole = {"machine": measured_on, "runs": found, "summary": summary}
                options.json.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
