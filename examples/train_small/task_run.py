"""A run: the held-out score, training on groups of the environment, and it again."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from examples.train_small import evaluation, recipe
from examples.train_small.plugin import Plugin
from examples.train_small.recipe import Run
from examples.train_small.servers import Server
from examples.train_small.work_folder import WorkFolder
from examples.trainer.batches import BatchShape, BatchSource, Group
from examples.trainer.checkpoints import Checkpoints, write_whole
from examples.trainer.policy import Policy, TrainingError
from examples.trainer.training_loop import Plan, train
from examples.vllm_on_cpu import free_port
from rg_env import ending, logs
from rg_env.errors import RunError
from rg_env.results.terminal import WorkProgress

logger = logging.getLogger("rg_env.train_small")

FIRST_SEED = 1000
"""Of the items that seed 0 asks: none of a warm start."""


@dataclass(frozen=True)
class TaskRun:
    """A run, which goes on where it was ended.

    Attributes:
        run: What is trained, and on what.
        seed: Of the model, and of the items.
        options: The command line.
        work: Where everything lies.
        plugin: Starts the environment.
        server: Runs, with any weights of this form.
        start: Folder of the weights to begin with.
        policy_at: From such a folder to a policy.
    """

    run: Run
    seed: int
    options: argparse.Namespace
    work: WorkFolder
    plugin: Plugin
    server: Server
    start: Path
    policy_at: Callable[[Path], Policy]

    @property
    def _title(self) -> str:
        return f"seed {self.seed}, {self.run.name}"

    @property
    def _folder(self) -> Path:
        return self.work.run(self.seed, self.run.name)

    def do(self) -> None:
        """Evaluate, train, evaluate, and write `result.json`.

        Raises:
            RunError: A process failed.
            TrainingError: The training cannot go on.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        policy = self.policy_at(self.start)
        self.server.weights.hand_over(policy)
        self._evaluate("before")
        self._train(policy)
        self._evaluate("after")
        result = self._result()
        write_whole(self._folder / recipe.RESULT, json.dumps(result, default=vars))
        for task, after in result["after"].items():
            logger.info(
                "%s: %s on held-out items %s -> %s",
                *(self._title, task),
                *map(evaluation.shown, (result["before"][task], after)),
            )

    def _train(self, policy: Policy) -> None:
        options, weights = self.options, self.server.weights
        checkpoints = Checkpoints(self._folder / "checkpoints")
        plan = Plan(options.steps, options.learning_rate)
        left = plan.steps - (checkpoints.step or 0)
        with self._batches() as source, WorkProgress(self._title, left, "steps") as bar:
            train(
                policy,
                ShuffledSource(source, self.seed) if self.run.is_shuffled else source,
                weights,
                plan,
                checkpoints,
                tell=lambda step: bar.advance(str(step)),
            )

    @contextlib.contextmanager
    def _batches(self) -> Iterator[BatchSource]:
        """Run the API and `serve` while the context lasts."""
        options, said, port = self.options, self.work.logs, free_port()
        url = f"http://127.0.0.1:{port}"
        serving = recipe.serving_settings(options, url, self._folder)
        settings = self._settings("serve", serving)
        log = said / f"serve-{self.seed}-{self.run.name}.log"
        shape = BatchShape(
            group_size=options.group_size,
            groups=options.groups,
            max_token_len=options.max_tokens,
            checkpoint_dir=str(self._folder / "environment"),
            checkpoint_interval=Plan.checkpoint_every,
        )
        with (
            self.plugin.running(
                said / "api.log", "run-api", "--host=127.0.0.1", "--port", port
            ) as api,
            self.plugin.running(log, "serve", "--config", settings) as serve,
        ):

            def check() -> None:
                for program in (api, serve, self.server):
                    program.check()

            yield BatchSource(url, shape, check=check)

    def _evaluate(self, when: str) -> None:
        """Evaluate what the server has, unless it is done."""
        folder = self._folder / when
        done = folder / "done"
        if not done.is_file():
            shutil.rmtree(folder, ignore_errors=True)  # of a start that was ended
            where = {"data_dir_to_save_evals": str(folder), "dump_metrics": False}
            settings = self._settings(when, where)
            log = self.work.logs / "evaluate.log"
            self.plugin.run(log, "evaluate", "--config", settings)
            evaluation.held_out_scores(folder, ())
            done.touch()

    def _settings(self, name: str, changes: Mapping[str, Any]) -> Path:
        run, path = self.run, self._folder / name
        changes = {
            **run.changes,
            "tokenizer_name": str(self.work.serving),
            **changes,
        }
        seed = FIRST_SEED + self.seed
        env = recipe.settings_of(run.tasks, seed, self.options, changes)
        return recipe.write_settings(path, env, self.server.weights.url)

    def _result(self) -> dict[str, Any]:
        groups = evaluation.sampled_groups(self._folder / "dumps")
        known = {evaluation.key(group.question) for group in groups}
        for gold in filter(Path.is_file, map(self.work.gold, self.run.tasks)):
            known |= evaluation.gold_keys(gold)
        before, after = (self._folder / when for when in ("before", "after"))
        questions = evaluation.held_out_keys(after)
        return {
            "seed": self.seed,
            "run": self.run.kind,
            "tasks": self.run.tasks,
            "server": self.options.server,
            "steps": self.options.steps,
            "before": evaluation.held_out_scores(before, known),
            "after": evaluation.held_out_scores(after, known),
            "held_out_questions": len(questions - known),
            "left_out_questions": len(questions & known),
            "sampled": evaluation.sampled_rows(groups),
        }


class ShuffledSource:
    """Batches whose rewards are permuted, which leaves nothing to learn: the control.

    Args:
        source: Of the batches.
        seed: Decides the permutations.
    """

    def __init__(self, source: BatchSource, seed: int) -> None:
        self._source, self._seed = source, seed

    def next_batch(self, step: int) -> list[Group]:
        """Wait for a batch, and permute its rewards."""
        groups = self._source.next_batch(step)
        rng = np.random.default_rng([self._seed, step])
        scores = rng.permutation(np.concatenate([group.scores for group in groups]))
        ends = np.cumsum([len(group.scores) for group in groups])[:-1]
        return [
            dataclasses.replace(group, scores=part)
            for group, part in zip(groups, np.split(scores, ends), strict=True)
        ]


def to_the_end(work: Callable[[contextlib.ExitStack], None]) -> int:
    """Do some work as a program; return the exit status.

    Args:
        work: Given what ends with it, however it ends.
    """
    logs.start()
    logs.set_levels(debug=False, quiet_framework=True)
    try:
        with ending.undoing(), contextlib.ExitStack() as open_:
            work(open_)
    except SystemExit:
        print("ended; the same command continues", file=sys.stderr)
        raise
    except (RunError, TrainingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
