"""`simulated-server`: an inference server whose model is the simulated policy.

For trying out `serve`, `process` and `evaluate` on a machine without a GPU. It knows
the answers because it draws the same items, so `seed`, `eval_seed`, the choice of tasks
and the difficulty must be those of the environment; to any other question it can only
guess. It cannot follow `task_choice` adaptive or a curriculum, where results decide
what comes next.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from types import SimpleNamespace
from typing import Any, get_args

import click

from rg_env import ending
from rg_env.cli.command import (
    LATENCY_MS,
    MOST_ITEMS,
    Command,
    DifficultyType,
    NamesType,
    Number,
    host_option,
    listen,
    option,
    port_option,
    task_modules_option,
)
from rg_env.cli.main import main
from rg_env.demo.answer_key import (
    AHEAD,
    DEADLINE_S,
    AnswerKey,
    Run,
    eval_entry,
    eval_specs,
    sampled_entries,
)
from rg_env.demo.child_process import end_with_parent
from rg_env.demo.http_app import serve_app
from rg_env.demo.inference_server import InferenceServer, build_app
from rg_env.demo.model import PolicyModel
from rg_env.demo.policy import PolicyProfile
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.installed_library import prepare_difficulty, read_library
from rg_env.items.item_source import ItemSource
from rg_env.reports.progress_bar import WorkProgress
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.curriculum import Curriculum
from rg_env.tasks.evaluation_specs import PresetName
from rg_env.tasks.sampler import MAX_SEED
from rg_env.tasks.selection import build_selection
from rg_env.workers.worker_pool import WorkerPool

READY = "simulated policy server ready on"


async def _run(pool: WorkerPool, options: SimpleNamespace) -> Run:
    library = await read_library(pool)
    try:
        choices = build_selection(library, tasks=options.tasks)
    except SettingError as error:
        raise SettingError(f"--{error}") from error
    difficulty = await prepare_difficulty(
        pool,
        sorted({choice.task for choice in choices}),
        library.tasks,
        options.complexity_mode,
        {},
        Curriculum(0.5),
    )
    return Run(
        library,
        choices,
        difficulty,
        options.seed,
        options.eval_seed,
        options.num_eval_samples_per_task,
        options.eval_level,
        options.eval_preset,
        options.task_choice,
    )


async def _key(pool: WorkerPool, run: Run) -> AnswerKey:
    specs, evaluated = eval_specs(run), []
    with WorkProgress("making evaluation items", len(specs), "items") as progress:
        for spec in specs:
            evaluated += await eval_entry(pool, run, spec)
            progress.advance()
    questions = {entry.question for entry in evaluated}
    stream = run.build_stream()
    maker = EntryMaker(pool, stream, making_at_once=1, deadline_s=DEADLINE_S)
    source = ItemSource(
        stream,
        maker,
        lookahead=AHEAD,
        scoring_deadline_s=DEADLINE_S,
        rules=ScoringRules(),
    )
    source.keep_for_evaluation(questions)
    return AnswerKey(sampled_entries(run, source), known=evaluated)


async def _serve(options: SimpleNamespace, pool: WorkerPool) -> None:
    run = await _run(pool, options)
    key = await _key(pool, run)
    profile = dataclasses.replace(PolicyProfile(), mean_skill=options.skill)
    server = InferenceServer(PolicyModel(key, profile), options.latency_ms)
    async with serve_app(build_app(server), options.host, options.port) as url:
        print(f"{READY} {url}", flush=True)
        await asyncio.Event().wait()


@click.command(
    "simulated-server", cls=Command, example="simulated-server --port 9004 --tasks gcd"
)
@host_option("127.0.0.1")
@port_option(9004)
@option("--seed", click.IntRange(0, MAX_SEED), 1918, "The environment's env.seed")
@option(
    "--eval_seed", click.IntRange(0, MAX_SEED), 123, "The environment's env.eval_seed"
)
@option(
    "--num_eval_samples_per_task",
    click.IntRange(1, MOST_ITEMS),
    5,
    "The environment's env.num_eval_samples_per_task",
)
@option("--eval_level", Number(0.0, 1.0), None, "The environment's env.eval_level")
@option(
    "--eval_preset",
    click.Choice(get_args(PresetName)),
    None,
    "The environment's env.eval_preset",
)
@task_modules_option()
@option("--tasks", NamesType(), None, "The environment's env.tasks; all if not given")
@option(
    "--complexity_mode",
    DifficultyType(),
    "random",
    "The environment's env.complexity_mode: None, random, a level or a range [low,"
    " high]",
)
@option(
    "--task_choice",
    click.Choice(["weighted", "in_turn"]),
    "weighted",
    "The environment's env.task_choice; use in_turn for screen",
)
@option(
    "--skill",
    Number(0.0, 1.0, min_open=True, max_open=True),
    0.55,
    "Skill of the model, as a mean over tasks",
)
@option("--latency_ms", LATENCY_MS, 0.0, "Delay before every reply")
def simulated_server(**given: Any) -> int:
    """Run an inference server with a simulated model.

    The server speaks the protocols of vLLM, SGLang and OpenAI. It loads no model: it
    knows the answers to the items and makes mistakes at a set rate.
    """
    options = SimpleNamespace(**given)
    if options.complexity_mode == "curriculum":
        raise SettingError(
            "--complexity_mode: curriculum is not allowed, because its levels depend on"
            " results that this server does not know; use `demo --complexity_mode"
            " curriculum`"
        )
    listen(options.host, options.port).close()  # tried before the items are made
    pool = WorkerPool(1, preload=worker_jobs.preload_of(options.task_modules))
    try:
        ending.run(_serve(options, pool))
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(None, ["simulated-server", *sys.argv[1:]]))
