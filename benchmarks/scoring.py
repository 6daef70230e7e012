"""Completions per second of seven ways to score, and right answers on a bad machine.

    python benchmarks/scoring.py [--parts speed] [--trl PYTHON] [--verifiers PYTHON]

PYTHON is an interpreter that has the package; without it, that row is left out.

    library      `score_answer` of data sets that were made before, in this process
    NeMo Gym     what its resources server does in its process, made again from its
                 source: a new data set for each completion, an exception is a 0
    score        `score_async`, all groups at once
    server, 1/4  `score-server`, a group in a request, clients that wait for a reply
    TRL          the reward function of `GRPOTasks`, all completions in a call
    verifiers    the reward of our task for all traces at once, which are stand-ins

    mixed        all tasks: the right answer to an item, and seven of others of its task
    slowest      the five tasks whose scorers take longest in the library
    large        five tasks, each with a right answer and 511 numbers in one group
    powers       mixed; in 1 % of the answers, the library evaluates a power for ever
    endless      an eighth of mixed, and one answer to a task of one's own, whose scorer
                 never ends: 1 %

A cell is the median of three passes, or of fewer that take 6 s, by second and by second
of CPU time of all processes; a set that takes a minute hangs. The other parts score the
slowest right answers that are known and one of every task at level 1: `busy` beside 16
busy loops, `killed` a few of them while 1,000 workers are killed. The exit status is 1
if our ways differ in a score, or if a right answer scores 0.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import contextlib
import functools
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reasoning_gym import create_dataset, factory, get_score_answer_fn

from rg_env import Item, Tasks, score_async
from rg_env.demo.child_process import ChildProgram
from rg_env.errors import NoScoreError

SIZE = 8
PASSES = 3
LONG_S = 6.0
LIMIT_S = 60
LOOPS = 16
KILLS = 1000
MAX_PAUSE_S = 0.2
OWN = "own"
ENDLESS = "endless"
MODULES = [__file__]
NUMBERS = list(map(str, range(511)))
POWERS = ["9**9**9", "8**9**9", "7**9**9"]
EVALUATED = ["simple_integration", "intermediate_integration"]
EVALUATED += ["polynomial_multiplication"]
LARGE = ["gcd", "word_sorting", "sudoku", "simple_equations", "letter_counting"]
SLOWEST = [*EVALUATED, "rubiks_cube", "countdown"]  # by CPU time, on 2026-11-27
QUEENS = Item("n_queens", {"n": 12, "min_remove": 2, "max_remove": 10}, 1663347094)
ANTIDERIVATIVE = "(-(16*sin(x)**5 - 20*sin(x)**3 + 5*sin(x))*sin(3)"
ANTIDERIVATIVE += " + (16*cos(x)**5 - 20*cos(x)**3 + 5*cos(x))*cos(3))**2"
SLOW = (Item("intermediate_integration", {}, 64).to_json(), [ANTIDERIVATIVE])
"""As QUEENS, it takes 0.5 s of CPU time."""

Groups = Sequence[tuple[str, list[str]]]  # items as JSON, and answers
Scores = list[float | None]


class Own(factory.DATASETS["gcd"][0]):
    """A task of one's own."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        while answer == ENDLESS:
            pass
        return float(super().score_answer(answer, entry))


factory.register_dataset(OWN, Own, factory.DATASETS["gcd"][1])
made = functools.cache(lambda task: create_dataset(task, seed=0, size=1).score_answer)
item_of = functools.cache(lambda line: Item.from_json(line, MODULES))


def tagged(answers: Sequence[str]) -> list[str]:
    return [f"<answer>{answer}</answer>" for answer in answers]


async def in_process(scorer: Callable[[str], Any], groups: Groups) -> Scores:
    def value(item: Item, answer: str) -> float:
        with contextlib.suppress(Exception):  # some raise on wrong answers
            return float(scorer(item.task)(answer=answer, entry=item.entry))
        return 0.0

    return [value(item_of(line), answer) for line, of in groups for answer in of]


async def by_score(groups: Groups) -> Scores:
    calls = (score_async(item_of(line), tagged(answers)) for line, answers in groups)
    return [r.value for results in await asyncio.gather(*calls) for r in results]


@functools.cache
def server_url() -> str:
    options = ["--port=0", "--task_modules", *MODULES]
    server = ChildProgram("reasoning_gym_environment", "score-server", *options)
    atexit.register(server.stop)
    return server.wait_for_url()


async def by_server(clients: int, groups: Groups) -> Scores:
    import aiohttp

    async def post(line: str, answers: list[str]) -> Scores:
        body = {"item": line, "completions": tagged(answers)}
        async with session.post("/score", json=body) as reply:
            return [result["value"] for result in (await reply.json())["results"]]

    links = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(server_url(), connector=links) as session:
        found = await asyncio.gather(*itertools.starmap(post, groups))
    return [*itertools.chain.from_iterable(found)]


def columns_of(groups: Groups) -> Iterator[tuple[str, ...]]:
    """Return the item of each completion, and its text."""
    rows = ((line, text) for line, answers in groups for text in tagged(answers))
    return zip(*rows, strict=True)


@functools.cache
def trl_tasks() -> Any:
    from rg_env.adapters.trl import GRPOTasks

    tasks = GRPOTasks(Tasks(task_modules=MODULES), SimpleNamespace(chat_template=None))
    tasks.eval_dataset(SIZE)  # it keeps the items of its rows
    return tasks


async def by_trl(groups: Groups) -> Scores:
    lines, texts = columns_of(groups)
    columns = {"item": lines, "position": [-1] * len(lines)}  # of evaluation rows
    return await trl_tasks().reasoning_gym(texts, **columns)


async def by_verifiers(groups: Groups) -> Scores:
    from rg_env.adapters import verifiers as ours

    async def reward(line: str, text: str) -> float | None:
        data = ours.ReasoningGymData(prompt="", item=line)
        trace = SimpleNamespace(last_reply=text, assistant_messages=[])
        with contextlib.suppress(NoScoreError):
            return await ours.ReasoningGymTask(data, config).reasoning_gym(trace)
        return None

    config = ours.ReasoningGymTaskConfig(task_modules=MODULES)
    return await asyncio.gather(*map(reward, *columns_of(groups)))


WAYS: dict[str, Callable[[Groups], Coroutine[Any, Any, Scores]]] = {
    "library": functools.partial(in_process, made),
    "NeMo Gym": functools.partial(in_process, get_score_answer_fn),
    "score": by_score,
    "server, 1": functools.partial(by_server, 1),
    "server, 4": functools.partial(by_server, 4),
    "TRL": by_trl,
    "verifiers": by_verifiers,
}
OURS = [*WAYS][2:]


def children(pid: str) -> list[str]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return " ".join(file.read_text() for file in files).split()


def cpu_s(pid: str = "self") -> float:
    """Return the CPU time of a process and of all that it has started."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        own_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own_s + sum(map(cpu_s, children(pid)))
    return 0.0


def measure(way: str, groups: Groups) -> tuple[float, float, Scores]:
    """Return completions per second, per second of CPU time, and the scores."""
    asyncio.run(WAYS[way]([(line, answers[:1]) for line, answers in groups]))  # loads
    took_s = [0.0]
    before_s = cpu_s()
    signal.alarm(LIMIT_S)  # ends the process, also while it runs C
    while len(took_s) <= PASSES and sum(took_s) < LONG_S:
        began = time.perf_counter()
        scores = asyncio.run(WAYS[way](groups))
        took_s.append(time.perf_counter() - began)
    signal.alarm(0)
    by_cpu = len(scores) * (len(took_s) - 1) / (cpu_s() - before_s)
    return len(scores) / statistics.median(took_s[1:]), by_cpu, scores


def groups_of_sets() -> dict[str, Groups]:
    groups: dict[str, tuple[str, list[str]]] = {}
    items = Tasks(task_modules=MODULES).evaluation(SIZE)
    for task, of_task in itertools.groupby(items, lambda item: item.task):
        rows = [(i.to_json(), str(i.gold or i.entry["answer"])) for i in of_task]
        answers = itertools.islice(itertools.cycle(answer for _, answer in rows), SIZE)
        groups[task] = rows[0][0], list(answers)
    line, answers = groups.pop(OWN)
    bad = {t: (groups[t][0], groups[t][1][: -len(POWERS)] + POWERS) for t in EVALUATED}
    return {
        "mixed": [*groups.values()],
        "slowest": [groups[task] for task in SLOWEST],
        "powers": [*(groups | bad).values()],
        "large": [(groups[t][0], [groups[t][1][0], *NUMBERS]) for t in LARGE],
        "endless": [(line, [*answers[1:], ENDLESS]), *[*groups.values()][::8]],
    }


def speed(given: argparse.Namespace) -> bool:
    """Measure each way in a program of its own; return whether ours agree."""
    sets = groups_of_sets()
    ours = []
    print(f"{len(sets['mixed'])} tasks; completions/s (and by second of CPU time)\n")
    print(f"| Way | {' | '.join(sets)} |\n|---|{'--:|' * len(sets)}", flush=True)
    for way in WAYS:
        if python := vars(given).get(way.lower(), sys.executable):
            command = [python, "-W", "ignore", __file__, "--way", way]
            pipes: Any = {"input": json.dumps(sets), "stdout": subprocess.PIPE}
            done = subprocess.run(command, **pipes, text=True, check=False)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            cells = [f"{rate:,.0f} ({by_cpu:,.0f})" for rate, by_cpu, _ in found]
            cells += {0: [], -signal.SIGALRM: ["hangs"]}.get(done.returncode, ["fails"])
            print(f"| {way} | {' | '.join(cells)} |", flush=True)
            ours += [[scores for *_, scores in found]] * (way in OURS)
    return all(scores == ours[0] for scores in ours)


def right_answers() -> Groups:
    items = [QUEENS, *Tasks().evaluation(1, seed=20_250, level=1.0)]
    return [SLOW, *((i.to_json(), [i.gold]) for i in items if i.gold is not None)]


def are_right(when: str, scores: Scores) -> bool:
    """Print how often right answers got each score; return whether none got less."""
    print(f"right answers {when}: {dict(Counter(scores))}", flush=True)
    return {*scores} <= {1.0, None}


def busy(_: argparse.Namespace) -> bool:
    groups = right_answers()
    with contextlib.ExitStack() as running:
        for _ in range(LOOPS):
            loop = [sys.executable, "-c", "while True: pass"]
            running.callback(running.enter_context(subprocess.Popen(loop)).kill)
        scores = asyncio.run(by_score(groups))
    return are_right(f"beside {LOOPS} busy loops", scores)


def killed(_: argparse.Namespace) -> bool:
    async def kill(left: int, chance: random.Random) -> None:
        while left:
            await asyncio.sleep(chance.uniform(0, MAX_PAUSE_S))
            with contextlib.suppress(OSError, IndexError):  # there is none
                workers = [w for server in children("self") for w in children(server)]
                os.kill(int(chance.choice(workers)), signal.SIGKILL)
                left -= 1

    async def all_scores() -> Scores:
        groups = right_answers()
        scores = []
        quick = [g for g in groups if json.loads(g[0])["task"] in ("gcd", "chain_sum")]
        killer = asyncio.create_task(kill(KILLS, random.Random(1)))
        while not killer.done():
            scores += await by_score(4 * [*groups[:3], *quick])
        return scores

    return are_right(f"while {KILLS} workers were killed", asyncio.run(all_scores()))


PARTS = {"speed": speed, "busy": busy, "killed": killed}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    for name in ("--trl", "--verifiers"):
        parser.add_argument(name, metavar="PYTHON")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.way:
        are_good = [PARTS[name](given) for name in given.parts]
        return int(not all(are_good))
    out = sys.stdout
    sys.stdout = sys.stderr  # scorers print
    for groups in json.load(sys.stdin).values():
        print(json.dumps(measure(given.way, groups)), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
