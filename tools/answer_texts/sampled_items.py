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
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import polars as pl

from rg_env.library import datasets, scales
from rg_env.stream.sampler import mix_of_seed
from rg_env.task_rules.games.moves import SIDE, read_board
from rg_env.task_rules.table import solution

LEVELS = (0.0, 0.5, 1.0)

MOST_SEEDS = 400
"""Seeds tried for the items of a task."""

ParamsOf = Callable[[int], Mapping[str, Any]]
"""From the seed of an item to its parameters."""


@dataclasses.dataclass(frozen=True)
class SampledItem:
    """An item with a right answer to it."""

    task: str
    seed: int
    params: Mapping[str, Any]
    entry: Mapping[str, Any]
    right: str


def levels_of(task: str) -> Iterator[tuple[str, ParamsOf]]:
    """Yield the defaults of a task and its levels, by name; some have no levels."""
    yield "defaults", lambda seed: {}
    scale = scales.load_shipped().scales.get(task)
    for level in LEVELS if scale else ():
        yield (
            f"{level:g}",
            lambda seed, at=level: scale.step_at(at, mix_of_seed(seed)).params,
        )


def sampled_items(
    task: str, first_seed: int, params_of: ParamsOf = lambda seed: {}
) -> Iterator[SampledItem]:
    """Yield the items of a task that can be used and have a right answer."""
    for seed in range(first_seed, first_seed + MOST_SEEDS):
        params = params_of(seed)
        with contextlib.redirect_stdout(io.StringIO()):  # codeio prints
            entry = next(datasets.usable_entries(task, params, [seed]), None)
        right = entry and right_answer(task, entry)
        if right is not None:
            yield SampledItem(task, seed, params, entry, right)


def attempted(limit_s: int, job: Callable[..., Any], *args: Any) -> Any:
    """Return what foreign code returns, or its error; it prints nothing.

    In the main thread alone: an alarm ends what takes longer than the limit.
    """

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit_s)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return job(*args)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return error
    finally:
        signal.alarm(0)


def rows_of_tasks(
    job: Callable[[str], Iterable[Mapping[str, Any]]], tasks: Sequence[str]
) -> pl.DataFrame:
    """Return the rows that a job has of each task, done by a process for each core.

    They work in a folder that goes with them, since programs of codeio write files.
    """
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), context, os.chdir, (folder,)) as executor,
    ):
        rows = itertools.chain.from_iterable(executor.map(job, tasks))
        return pl.DataFrame(rows, infer_schema_length=None)


# -- right answers, also where the library gives none ----------------------------------

MAX_BOARDS = 60_000
"""Boards that are tried before a puzzle of cars is given up: some three seconds."""

Car = tuple[tuple[int, int], ...]
"""The cells of a car, from the left or from above."""


def _moved(car: Car, sign: int, taken: Set[tuple[int, int]]) -> Car | None:
    """Return a car one cell on, or back; None where something is in the way."""
    lies = car[0][0] == car[1][0]
    moved = tuple((r + sign * (not lies), c + sign * lies) for r, c in car)
    is_inside = all(0 <= index < SIDE for cell in moved for index in cell)
    return moved if is_inside and taken.isdisjoint(moved) else None


def car_moves(config: str) -> str | None:
    """Return the fewest moves that free the red car, None where too many are needed."""
    cars, walls = read_board(config)
    start = tuple(map(tuple, cars.values()))
    waiting: list[tuple[Car, ...]] = [start]
    ways: dict[tuple[Car, ...], list[str]] = {start: []}
    for board in waiting:
        if board[0][-1][1] == SIDE - 1:
            # Steps of one car in a row are one move: A+1 A+1 is A+2.
            runs = itertools.groupby(ways[board])
            return " ".join(f"{move}{len(list(run))}" for move, run in runs)
        if len(waiting) > MAX_BOARDS:
            return None
        taken = walls.union(*board)
        for place, (letter, car) in enumerate(zip(cars, board, strict=True)):
            for sign, word in ((1, "+"), (-1, "-")):
                moved = _moved(car, sign, taken.difference(car))
                after = (*board[:place], moved, *board[place + 1 :])
                if moved and after not in ways:
                    waiting.append(after)
                    ways[after] = [*ways[board], f"{letter}{word}"]
    return None


def frees_the_car(config: str, moves: str) -> bool:
    """Say whether moves can be made in full and bring the red car to the exit."""
    board, walls = read_board(config)
    cars = {letter: tuple(cells) for letter, cells in board.items()}
    for move in moves.split():
        match = re.fullmatch(r"([A-Z])([+-])(\d)", move)
        if match is None or match[1] not in cars:
            return False
        car = cars.pop(match[1])
        taken = walls.union(*cars.values())
        for _ in range(int(match[3])):
            car = _moved(car, 1 if match[2] == "+" else -1, taken)
            if car is None:
                return False
        cars[match[1]] = car
    return any(column == SIDE - 1 for _, column in cars["A"])


def box_plan(squares: Mapping[str, list[str]]) -> str:
    """Return a plan that carries one box after the other to a target of its colour."""
    places: dict[str, list[tuple[float, ...]]] = {}
    for name, things in squares.items():
        for thing in things:
            place = tuple(map(float, name.split("_")))
            places.setdefault(thing, []).append(place)
    steps = []
    boxes = [(t, place) for t in places if t.startswith("box_") for place in places[t]]
    for box, (row, column) in boxes:
        target = f"target_{box[4:]}"
        goal = places[target].pop()
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
