"""Writes task_rules/code/codeio.json: `python -m tools.make_codeio_list [--seeds 12]`.

Every program of codeio's data is run on inputs of many seeds, in several processes with
other hash seeds and working folders, and in each with two states of the global random
generators. Nobody can know the output of a program that makes different ones of one
input, so none of its items is used; nor is one that names the clock. An entry with a
program that is on no list is run once more when it is made, which finds what depends on
its input.

A process is a worker's as far as what it may do; a program that ends it, or takes too
long, has no result for that input.
"""

from __future__ import annotations

import argparse
import contextlib
import decimal
import hashlib
import importlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rg_env.task_rules.code import codeio
from rg_env.tasks.datasets import kept_dataset
from rg_env.tasks.library import describe
from rg_env.workers.sandbox import hardening

PROCESSES = 3
LIMIT_S = 3.0
"""For one run of one program."""

SLOW_S = 0.1
"""CPU time of a run from which a program is slow: a group of sixteen answers, each an
input of its own, keeps within the deadline of scoring."""

MEMORY_LIMIT_BYTES = 4 * 2**30
READS_MORE = re.compile(
    r"\btime\.time\(|(?<![.\w])time\(\)|perf_counter\(|\bmonotonic\(\)"
    r"|\b(utc)?now\(\)|\btoday\(\)|urandom\(|\bsecrets\.token|uuid4\("
    r"|os\.(environ|listdir|getcwd)\b"
)
"""The clock, the machine and true chance. A program that reads them is not used, also
where they made no difference to any run."""

Outcome = tuple[str | None, str | None, str | None, float]
"""Digests of an input and of its output with either random state, None without one, and
the CPU time of the longer run."""


def programs() -> list[dict[str, Any]]:
    """Return the library's programs with what makes their inputs."""
    describe()
    return list(kept_dataset("codeio", {})._jsonl_data)


# -- one process -----------------------------------------------------------------------


def _set_random_state(state: int) -> None:
    random.seed(state)
    decimal.setcontext(decimal.Context())
    importlib.import_module("numpy").random.seed(state)


def _digest(value: Any) -> str:
    """Return a digest that does not depend on the order of names and of sets."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            named = {str(name): plain(held) for name, held in part.items()}
            return [[name, named[name]] for name in sorted(named)]
        if isinstance(part, (list, tuple)):
            return [plain(held) for held in part]
        if isinstance(part, (set, frozenset)):
            return sorted(repr(plain(held)) for held in part)
        return repr(part)

    return hashlib.sha256(repr(plain(value)).encode()).hexdigest()[:12]


class _Late(BaseException):
    """A program took too long; it may catch any Exception."""


def _stop(*_: object) -> None:
    raise _Late


def _run(program: dict[str, Any], seed: int) -> Outcome:
    """Run a program on the input of a seed, with two states of the generators."""
    code = f"{program['code_sample']}\n\n{program['input_generator']}"
    found: list[str | None] = [None, None, None]
    longest_s = 0.0
    for state in (1, 2):
        names: dict[str, Any] = {"Random": random.Random}
        began_s = math.inf
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        # Whatever the program raises, it has no result.
        with contextlib.suppress(BaseException):
            _set_random_state(seed)
            exec(code, names)  # noqa: S102 - the library's
            given = names["generate_inputs"](random.Random(seed))
            found[0] = _digest(given)
            _set_random_state(seed + 1_000_003 * state)
            began_s = time.process_time()
            found[state] = _digest([names["main_solution"](**given), given])
        signal.setitimer(signal.ITIMER_REAL, 0)
        longest_s = max(longest_s, time.process_time() - began_s)
    return found[0], found[1], found[2], longest_s


def _outcomes(program: dict[str, Any], seeds: int) -> Iterator[Outcome]:
    """Yield the outcomes of the seeds, up to the first that took too long."""
    for seed in range(seeds):
        outcome = _run(program, seed)
        yield outcome
        if outcome[-1] > SLOW_S:
            break


def run_all(numbers: range, seeds: int) -> None:
    """Print the outcomes of programs by their numbers, a line each."""
    made = programs()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    folder = Path(tempfile.mkdtemp()).resolve()
    os.chdir(folder)
    hardening.harden(folder, hardening.find_readable(), MEMORY_LIMIT_BYTES)
    signal.signal(signal.SIGALRM, _stop)
    for number in numbers:
        out.write(json.dumps([number, list(_outcomes(made[number], seeds))]) + "\n")


# -- all of them -----------------------------------------------------------------------


def outcomes_of(process: int, numbers: range, seeds: int) -> dict[int, list[Outcome]]:
    """Return the outcomes of programs; one that ends the process has none."""
    found: dict[int, list[Outcome]] = {}
    start = numbers.start
    while start < numbers.stop:
        with tempfile.TemporaryDirectory() as folder:
            environment = {"PYTHONHASHSEED": str(process), "TMPDIR": folder}
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "tools.make_codeio_list"),
                    *("--seeds", str(seeds)),
                    *("--numbers", str(start), str(numbers.stop)),
                ],
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        if not rows and start == numbers.start:
            raise RuntimeError("the first of the processes ended without an outcome")
        found |= dict(rows)
        start = (rows[-1][0] if rows else start - 1) + 2
    return found


def kind_of(by_process: list[list[Outcome]]) -> str | None:
    """Return what is wrong with a program, by its outcomes in several processes."""
    for same_seed in zip(*by_process, strict=False):
        for place in (0, 1):
            digests = {outcome[place] for outcome in same_seed} - {None}
            if len(digests) > 1:
                return codeio.CHANGES
    for outcomes in by_process:
        if any(None not in (a, b) and a != b for _, a, b, _ in outcomes):
            return codeio.RANDOM
    is_slow = [any(took_s > SLOW_S for *_, took_s in found) for found in by_process]
    return codeio.SLOW if is_slow and all(is_slow) else None


def _found(seeds: int) -> Iterator[tuple[str, str]]:
    """Yield the digest of each program that is not used, and what is wrong with it."""
    numbers = range(len(programs()))
    by_process = [outcomes_of(each, numbers, seeds) for each in range(PROCESSES)]
    for number, program in enumerate(programs()):
        kind = kind_of([found[number] for found in by_process if number in found])
        if READS_MORE.search(f"{program['code_sample']}\n{program['input_generator']}"):
            kind = codeio.CHANGES
        if kind is not None:
            yield codeio.digest_of(program["code_sample"]), kind


def main() -> int:
    """Run all programs and write the list, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12, help="inputs of a program")
    parser.add_argument("--numbers", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.numbers is not None:
        run_all(range(*options.numbers), options.seeds)
        return 0
    table: dict[str, list[str]] = {kind: [] for kind in codeio.KINDS}
    for digest, kind in _found(options.seeds):
        table[kind].append(digest)
    table = {kind: sorted(set(digests)) for kind, digests in table.items()}
    codeio.UNUSED.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    print({kind: len(digests) for kind, digests in table.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
