"""What training begins with: conversations, a tokenizer, a model, its warm start."""

from __future__ import annotations

import argparse
import json
import logging
import os
from pathlib import Path

import torch
from transformers import AutoTokenizer

from examples.train_small import recipe, warm_start
from examples.train_small.model import make_model, take_model
from examples.train_small.plugin import Plugin
from examples.train_small.tokenizer import make_tokenizer
from examples.train_small.torch_policy import TorchPolicy
from examples.train_small.whole_files import write_whole
from examples.train_small.work_folder import WorkFolder
from rg_env.errors import RunFailed
from rg_env.reports.progress_bar import WorkProgress
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER

logger = logging.getLogger("rg_env.train_small")

GOLD_SEED = 7
"""Of the items of a warm start."""

TEXTS_OF_TASK = 300
"""Conversations of each task that a tokenizer is made from."""

DONE = "done"
"""A file in a folder that is whole."""


class Starts:
    """Makes them where they are not there yet.

    Args:
        options: The command line.
        work: Where they lie.
        plugin: Writes the conversations.
    """

    def __init__(
        self, options: argparse.Namespace, work: WorkFolder, plugin: Plugin
    ) -> None:
        self._options, self._work, self._plugin = options, work, plugin

    def of(self, seed: int, task: str) -> Path:
        """Return the folder of the weights that training on a task begins with."""
        if self._options.model:
            return self._taken(self._options.model)
        folder = self._work.start(seed, task)
        if not (folder / DONE).is_file():
            if not folder.is_dir():
                self._make(folder, seed)
            self._warm(folder, seed, task)
            (folder / DONE).touch()
        return folder

    def _taken(self, name: str) -> Path:
        """Return a folder with a model of the hub, or of another folder."""
        folder = self._work.path / "model"
        if not (folder / DONE).is_file():
            take_model(name, folder)
            (folder / DONE).touch()
        return folder

    def _make(self, folder: Path, seed: int) -> None:
        unfinished = self._work.path / "unfinished"
        width, layers = self._options.width, self._options.layers
        tokenizer = self._tokenizer()
        count = make_model(unfinished, tokenizer, seed, width=width, layers=layers)
        folder.parent.mkdir(exist_ok=True)
        unfinished.replace(folder)
        logger.info("seed %d: a model of %s parameters", seed, f"{count:,}")

    def _warm(self, folder: Path, seed: int, task: str) -> None:
        gold = self._work.gold(task)
        options = self._options
        self._write_gold(gold, (task,), options.conversations)
        torch.set_num_threads(len(os.sched_getaffinity(0)))  # nobody else needs them
        plan = warm_start.WarmStartPlan(options.warm_seconds, options.warm_target)
        title = f"seed {seed}, warm start on {task}"
        with WorkProgress(title, round(plan.seconds), "s") as progress:
            shown = 0

            def tell(state: warm_start.StartState) -> None:
                nonlocal shown
                while shown < min(state.seconds, plan.seconds - 1):
                    shown += 1
                    progress.advance(f"step {state.step}; right: {state.right:.0%}")

            state = warm_start.warm_start(
                TorchPolicy(folder, device=options.device),
                warm_start.read_conversations(
                    gold, AutoTokenizer.from_pretrained(folder)
                ),
                plan,
                folder,
                seed=seed,
                tell=tell,
            )
        logger.info(
            "%s: %d steps in %.0f s, %.0f %% right",
            *(title, state.step, state.seconds, 100 * state.right),
        )

    def _write_gold(self, path: Path, tasks: tuple[str, ...], count: int) -> None:
        if path.is_file():
            return
        logger.info("writing %d conversations", count)
        changes = {"tokenizer_name": str(TOKENIZER_FOLDER)}
        env = recipe.settings_of(tasks, GOLD_SEED, self._options, changes)
        settings = recipe.write_settings(path, env)
        log = self._work.logs / "gold.log"
        self._plugin.write_gold(log, settings, count, path)

    def _tokenizer(self) -> Path:
        folder = self._work.tokenizer
        tasks, noted = recipe.tasks_of(self._options.tasks), folder / "tasks.json"
        if not noted.is_file():
            texts = self._work.path / "tokenizer.jsonl"
            self._write_gold(texts, tasks, TEXTS_OF_TASK * len(tasks))
            count = make_tokenizer(texts, TOKENIZER_FOLDER, folder)
            logger.info("a tokenizer of %d tokens", count)
            write_whole(noted, json.dumps(tasks))
        if unknown := set(tasks).difference(json.loads(noted.read_text("utf-8"))):
            raise RunFailed(
                f"--tasks: the tokenizer of {folder} was made without"
                f" {', '.join(sorted(unknown))}; give another --work"
            )
        return folder
