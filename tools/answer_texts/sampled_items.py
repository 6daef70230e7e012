"""Items that the audits sample, many of each task and level, with right answers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import multiprocessing
import os
import re
import signal
import string
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from rg_env.library import datasets, scales
from rg_env.library.datasets import UnusableEntryError
from rg_env.stream.sampler import mix_of_seed
from rg_env.task_rules.table import solution

DEFAULTS = -1.0
"""Stands for the library's own parameters in a list of levels."""

ATTEMPTS = 20
"""Seeds tried for an item; a task whose items are all unusable has none."""


@dataclasses.dataclass(frozen=True)
class SampledItem:
    """An item with a right answer to it."""

    task: str
    level: float
    seed: int
    params: Mapping[str, Any]
    entry: Mapping[str, Any]
    right: str


def read_level(text: str) -> float:
    """Read a level of the command line: a number in [0, 1] or `defaults`."""
    return DEFAULTS if text == "defaults" else float(text)


def sampled_items(
    task: str, levels: Sequence[float], items: int, first_seed: int
) -> list[SampledItem]:
    """Make items of a task, as many of each level.

    A task without a scale has only its defaults.
    """
    scale = scales.load_shipped().scales.get(task)
    found = []
    for place, level in enumerate(levels):
        if scale is None and level != DEFAULTS:
            continue
        seed = first_seed + 1_000_003 * place
        for _ in range(items):
            for _ in range(ATTEMPTS):
                seed += 1
                item = _item(task, level, seed, scale)
                if item is not None:
                    found.append(item)
                    break
    return found


def _item(
    task: str, level: float, seed: int, scale: scales.Scale | None
) -> SampledItem | None:
    params: Mapping[str, Any] = {}
    if scale is not None and level != DEFAULTS:
        params = scale.step_at(level, mix_of_seed(seed)).params
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # codeio prints
            entry = datasets.make_entry(task, params, seed)
        right = right_answer(task, entry)
    except UnusableEntryError:
        return None
    if right is None:
        return None
    return SampledItem(task, level, seed, params, entry, right)


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` after some seconds, in the main thread; print nothing."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        signal.alarm(0)


def for_each_task(job: Callable[[str], Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Do a job for each task, in as many processes as there are cores.

    They work in a folder that goes with them, since programs of codeio write files.
    """
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), context, os.chdir, (folder,)) as executor,
    ):
        return dict(zip(tasks, executor.map(job, tasks), strict=True))


# -- right answers, also where the library gives none ----------------------------------

SIDE = 6
MAX_BOARDS = 60_000
"""Boards that are tried before a puzzle of cars is given up: some three seconds."""

Cell = tuple[int, int]


def _cars(config: str) -> tuple[dict[str, list[Cell]], set[Cell]]:
    """Return the cars by the letter that the question shows, and the walls."""
    by_label: dict[str, list[Cell]] = {}
    for index, label in enumerate(config):
        by_label.setdefault(label, []).append(divmod(index, SIDE))
    by_label.pop("o", None)
    walls = set(by_label.pop("x", []))
    shown = zip(string.ascii_uppercase, sorted(by_label), strict=False)
    return {letter: by_label[label] for letter, label in shown}, walls


def car_moves(config: str) -> str | None:
    """Return the fewest moves that free the red car, None where too many are needed."""
    cars, walls = _cars(config)
    letters = sorted(cars)
    lies = [cars[letter][0][0] == cars[letter][1][0] for letter in letters]
    lengths = [len(cars[letter]) for letter in letters]
    lanes = [
        cars[x][0][0 if flat else 1] for x, flat in zip(letters, lies, strict=True)
    ]
    start = tuple(
        cars[x][0][1 if flat else 0] for x, flat in zip(letters, lies, strict=True)
    )

    def cell(car: int, at: int) -> Cell:
        return (lanes[car], at) if lies[car] else (at, lanes[car])

    waiting: list[tuple[tuple[int, ...], int, str]] = [(start, -1, "")]
    seen = {start}
    for number, (board, _, _) in enumerate(waiting):
        if board[0] + lengths[0] == SIDE:
            return _path(waiting, number)
        if len(waiting) > MAX_BOARDS:
            return None
        taken = set(walls)
        for car, at in enumerate(board):
            taken.update(cell(car, at + i) for i in range(lengths[car]))
        for car, at in enumerate(board):
            for sign, front in ((1, at + lengths[car]), (-1, at - 1)):
                if not 0 <= front < SIDE or cell(car, front) in taken:
                    continue
                after = (*board[:car], at + sign, *board[car + 1 :])
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, number, f"{letters[car]}{sign:+d}"))
    return None


def frees_the_car(config: str, moves: str) -> bool:
    """Say whether moves can be made in full and bring the red car to the exit."""
    cars, walls = _cars(config)
    for move in moves.split():
        match = re.fullmatch(r"([A-Z])([+-])(\d)", move)
        if match is None or match[1] not in cars:
            return False
        cells = cars[match[1]]
        sign = 1 if match[2] == "+" else -1
        down, right = (0, sign) if cells[0][0] == cells[1][0] else (sign, 0)
        for _ in range(int(match[3])):
            moved = [(r + down, c + right) for r, c in cars[match[1]]]
            taken = {x for car in cars if car != match[1] for x in cars[car]} | walls
            inside = all(0 <= i < SIDE for cell in moved for i in cell)
            if not inside or not taken.isdisjoint(moved):
                return False
            cars[match[1]] = moved
    return any(column == SIDE - 1 for _, column in cars["A"])


def _path(waiting: list[tuple[tuple[int, ...], int, str]], number: int) -> str:
    moves: list[str] = []
    while number > 0:
        _, number, move = waiting[number]
        moves.append(move)
    # Steps of one car in a row are one move: A+1 A+1 is A+2.
    steps = itertools.groupby(moves[::-1])
    return " ".join(f"{move[:2]}{len(list(run))}" for move, run in steps)


def box_plan(squares: Mapping[str, list[str]]) -> str:
    """Return a plan that carries one box after the other to a target of its colour."""
    boxes: list[tuple[str, tuple[float, float]]] = []
    targets: dict[str, list[tuple[float, float]]] = {}
    for name, things in squares.items():
        row, column = map(float, name.split("_"))
        for thing in things:
            if thing.startswith("box_"):
                boxes.append((thing, (row, column)))
            else:
                targets.setdefault(thing, []).append((row, column))
    steps = []
    for box, (row, column) in boxes:
        target = f"target_{box[4:]}"
        goal = targets[target].pop()
        while (row, column) != goal:
            agent = f"Agent[{row}, {column}]"
            if row != goal[0]:
                row += 1.0 if goal[0] > row else -1.0
            else:
                column += 1.0 if goal[1] > column else -1.0
            steps.append({agent: f"move({box}, square[{row}, {column}])"})
        steps.append({f"Agent[{row}, {column}]": f"move({box}, {target})"})
    return json.dumps(steps)


def right_answer(task: str, entry: Mapping[str, Any]) -> str | None:
    """Return an answer that is right, None where none is known or found in time."""
    if task == "rush_hour":
        return car_moves(entry["metadata"]["board_config"])
    if task == "boxnet":
        return box_plan(entry["metadata"]["initial_state"])
    return solution(task, entry)
