"""A run: the held-out score, training on groups of the environment, and it again."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import shutil
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from examples.train_small import evaluation, recipe, training
from examples.train_small.batches import BatchShape, BatchSource, NoBatches
from examples.train_small.evaluation import AskedGroup, Scores
from examples.train_small.grpo import Objective
from examples.train_small.plugin import Plugin
from examples.train_small.policy import Policy
from examples.train_small.recipe import Run
from examples.train_small.servers import InferenceServer
from examples.train_small.whole_files import as_line, read_rows, write_whole
from examples.train_small.work_folder import WorkFolder
from examples.vllm_on_cpu import free_port
from rg_env import ending, logs
from rg_env.errors import RunFailed
from rg_env.reports.progress_bar import WorkProgress

logger = logging.getLogger("rg_env.train_small")

FIRST_SEED = 1000
"""Of the items that seed 0 asks: none of a warm start."""


FIRST_APART, LATER_APART = 0.05, 0.5
"""Nats a token, in a batch of these weights and in one of the step before: more than
bfloat16 and a step make of it, less than what other weights come to."""


class TaskRun:
    """A run, which goes on where it was ended.

    Args:
        run: What is trained, and on what.
        seed: Of the model, and of the items.
        options: The command line.
        work: Where everything lies.
        plugin: Starts the environment.
        server: Runs, with any weights of this form.
        start: Folder of the weights to begin with.
        policy_at: From such a folder to a policy.
    """

    def __init__(
        self,
        run: Run,
        seed: int,
        options: argparse.Namespace,
        work: WorkFolder,
        *,
        plugin: Plugin,
        server: InferenceServer,
        start: Path,
        policy_at: Callable[[Path], Policy],
    ) -> None:
        self._run, self._seed, self._options, self._work = run, seed, options, work
        self._plugin, self._server = plugin, server
        self._start, self._policy_at = start, policy_at
        self._title = f"seed {seed}, {run.name}"
        self._folder = work.run(seed, run.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._shown: set[str] = set()
        for gold in filter(Path.is_file, map(work.gold, run.tasks)):
            self._shown |= evaluation.gold_questions(gold)
        # What a curriculum holds out is not what was kept from the warm start.
        self._known = self._shown if run.kind == "curriculum" else set()

    def do(self) -> None:
        """Evaluate, train, evaluate, and write `result.json`.

        Raises:
            RunFailed: A process failed, or an item that is held out was asked.
            NoBatches: None came.
        """
        policy = self._policy_at(self._start)
        self._server.hand_over(policy)
        before = self._evaluated("before")
        progress = RunProgress(self._title, self._folder, before, self._known)
        self._train(policy, progress)
        after = self._evaluated("after")
        result = self._result(before, after, progress.groups())
        if asked := result["held_out_that_were_asked"]:
            raise RunFailed(f"{self._title}: {asked} held-out items were asked")
        write_whole(self._folder / recipe.RESULT, json.dumps(result))
        for task, score in after.items():
            logger.info(
                "%s: %s on held-out items %s -> %s",
                *(self._title, task),
                *(evaluation.shown(before[task]), evaluation.shown(score)),
            )

    def _train(self, policy: Policy, progress: RunProgress) -> None:
        options = self._options
        checkpoints = training.Checkpoints(self._folder / "checkpoints")
        done = checkpoints.load(policy)
        self._server.hand_over(policy)
        progress.go_on_at(done)
        if done == options.steps:
            return
        plan = training.Plan(
            steps=options.steps,
            learning_rate=options.learning_rate,
            objective=Objective(kl_weight=options.kl),
            is_shuffled=self._run.is_shuffled,
            seed=self._seed,
        )

        def tell(step: training.Step) -> None:
            check_weights(step, is_first=step.number == done + 1)
            progress.tell(step)

        with self._batches(plan, done) as source, progress.shown(plan.steps - done):
            try:
                training.train(
                    policy,
                    source,
                    self._server,
                    plan,
                    checkpoints,
                    reference=self._policy_at(self._start) if options.kl else None,
                    tell=tell,
                )
            except ValueError as error:
                raise RunFailed(f"a batch cannot be trained on: {error}") from error

    @contextlib.contextmanager
    def _batches(self, plan: training.Plan, done: int) -> Iterator[BatchSource]:
        """Run the API and `serve` while the context lasts."""
        options, said = self._options, self._work.logs
        with contextlib.ExitStack() as running:
            api = running.enter_context(
                self._plugin.running_api(said / "api.log", free_port())
            )
            source = BatchSource(api)
            source.register(
                BatchShape(
                    group_size=options.group_size,
                    groups=options.groups,
                    max_token_len=options.max_tokens,
                    steps=plan.steps - done,
                    first_step=done,
                    checkpoint_dir=str(self._folder / "environment"),
                    checkpoint_interval=plan.checkpoint_every,
                )
            )
            serving = recipe.serving_settings(options, api, self._folder)
            settings = self._settings("serve", serving)
            log = said / f"serve-{self._seed}-{self._run.name}.log"
            serve = running.enter_context(
                self._plugin.running(log, "serve", "--config", settings)
            )

            def check() -> None:
                serve.check()
                self._server.check()

            source.check = check
            yield source

    def _evaluated(self, when: str) -> Scores:
        """Evaluate what the server has, unless it is done."""
        folder = self._folder / when
        done = folder / "done"
        if not done.is_file():
            shutil.rmtree(folder, ignore_errors=True)  # of a start that was ended
            settings = self._settings(when, {"data_dir_to_save_evals": str(folder)})
            log = self._work.logs / "evaluate.log"
            self._plugin.run(log, "evaluate", "--config", settings)
        scores = evaluation.held_out_scores(folder, self._known)
        done.touch()
        return scores

    def _settings(self, name: str, changes: Mapping[str, Any]) -> Path:
        run, path = self._run, self._folder / name
        changes = {
            **run.changes,
            "tokenizer_name": str(self._work.serving),
            **changes,
        }
        seed = FIRST_SEED + self._seed
        env = recipe.settings_of(run.tasks, seed, self._options, changes)
        return recipe.write_settings(path, env, self._server)

    def _result(
        self, before: Scores, after: Scores, groups: list[AskedGroup]
    ) -> dict[str, Any]:
        questions = evaluation.held_out_questions(self._folder / "after") - self._known
        in_training = {group.question for group in groups} | self._shown
        return {
            "seed": self._seed,
            "run": self._run.kind,
            "tasks": self._run.tasks,
            "server": self._options.server,
            "steps": self._options.steps,
            "before": {t: dataclasses.asdict(e) for t, e in before.items()},
            "after": {t: dataclasses.asdict(e) for t, e in after.items()},
            "held_out_questions": len(questions),
            "held_out_that_were_asked": len(questions & in_training),
            "asked": evaluation.asked_rows(groups),
        }


def check_weights(step: training.Step, *, is_first: bool) -> None:
    """Refuse a batch that the weights, or those of a step ago, have not sampled.

    Raises:
        RunFailed: Its log-probabilities are too far from the trainer's.
    """
    if step.ratios.apart > (FIRST_APART if is_first else LATER_APART):
        raise RunFailed(
            f"step {step.number}: the log-probabilities are {step.ratios.apart:.2f} off"
            " on average: the inference server has other weights than the trainer, or"
            " its token ids and log-probabilities do not belong together"
        )


class RunProgress:
    """Says how a run goes, and notes its held-out score meanwhile.

    Args:
        title: Of the run.
        folder: Of the run.
        before: The held-out scores that it began with.
        known: Questions that do not count in them.
    """

    def __init__(
        self, title: str, folder: Path, before: Scores, known: Container[str]
    ) -> None:
        self._title, self._noted = title, folder / recipe.DURING
        self._asked = evaluation.AskedGroups(folder / "dumps")
        self._groups = self._asked.new()
        self._scores = evaluation.RunningScores(folder / "during", known)
        self._held_out = _mean(before)
        self._bar: WorkProgress | None = None

    def go_on_at(self, done: int) -> None:
        """Forget the held-out scores of steps that are done again."""
        kept = [row for row in read_rows(self._noted) if row["step"] <= done]
        write_whole(self._noted, "".join(map(as_line, kept)))

    @contextlib.contextmanager
    def shown(self, steps: int) -> Iterator[None]:
        """Show it while the context lasts."""
        with WorkProgress(self._title, steps, "steps") as self._bar:
            yield

    def tell(self, step: training.Step) -> None:
        """Say what a step was."""
        if scores := self._scores.new():
            self._held_out = _mean(scores)
            with self._noted.open("a", encoding="utf-8") as lines:
                for task, score in scores.items():
                    row = {"step": step.number, "task": task}
                    row |= dataclasses.asdict(score)
                    lines.write(as_line(row))
        levels = evaluation.latest_levels(self.groups())
        took = step.waited_s + step.trained_s + step.handed_over_s
        says = [
            f"reward {step.reward:.3f}",
            f"held out {self._held_out:.3f}",
            f"loss {step.loss:+.4f}",
            f"ratio {step.ratios.mean:.4f} ({step.ratios.apart:.2g} apart)",
            *(f"{task} at level {level:.2f}" for task, level in levels.items()),
            f"{step.tokens / took:.0f} tokens/s",
        ]
        if self._bar:
            self._bar.advance(", ".join(says))

    def groups(self) -> list[AskedGroup]:
        """Return all groups that were asked."""
        self._groups.extend(self._asked.new())
        return self._groups


def _mean(scores: Scores) -> float:
    return sum(score.mean for score in scores.values()) / len(scores)


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
    except ending.Stopped as stopped:
        print("ended; the same command continues", file=sys.stderr)
        return stopped.status
    except (RunFailed, NoBatches) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
