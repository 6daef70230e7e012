"""What training begins with: conversations, a tokenizer, a model, its warm start."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
from pathlib import Path

import torch
from transformers import AutoTokenizer

from examples.train_small import recipe, warm_start
from examples.train_small.model import make_model
from examples.train_small.plugin import Plugin
from examples.train_small.tokenizer import make_tokenizer
from examples.train_small.torch_sampler import TorchSampler
from examples.train_small.work_folder import WorkFolder
from examples.trainer.checkpoints import write_whole
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.errors import RunError

logger = logging.getLogger("rg_env.train_small")

GOLD = Path(__file__).with_name("gold_conversations.py")
GOLD_SEED = 7
"""Of the items of a warm start."""

TEXTS_OF_TASK = 300
"""Conversations of each task that a tokenizer is made from."""


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
        folder, options = self._work.start(seed, task), self._options
        if not folder.is_dir():
            self._make(folder, seed)
        gold = self._work.gold(task)
        self._write_gold(gold, (task,), options.conversations)
        torch.set_num_threads(len(os.sched_getaffinity(0)))  # nobody else needs them

        def tell(state: warm_start.StartState) -> None:
            logger.info(
                "seed %d, warm start on %s: step %d, %.0f %% right",
                *(seed, task, state.step, 100 * state.right),
            )

        warm_start.warm_start(
            TorchSampler(folder),
            warm_start.read_conversations(gold, AutoTokenizer.from_pretrained(folder)),
            warm_start.WarmStartPlan(options.warm_steps, options.warm_target),
            folder,
            seed=seed,
            tell=tell,
        )
        return folder

    def _make(self, folder: Path, seed: int) -> None:
        unfinished = self._work.path / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        width, layers = self._options.width, self._options.layers
        tokenizer = self._tokenizer()
        count = make_model(unfinished, tokenizer, seed, width=width, layers=layers)
        folder.parent.mkdir(exist_ok=True)
        unfinished.replace(folder)
        logger.info("seed %d: a model of %s parameters", seed, f"{count:,}")

    def _write_gold(self, path: Path, tasks: tuple[str, ...], count: int) -> None:
        if path.is_file():
            return
        logger.info("writing %d conversations", count)
        changes = {"tokenizer_name": str(TOKENIZER_FOLDER)}
        env = recipe.settings_of(tasks, GOLD_SEED, self._options, changes)
        settings = recipe.write_settings(path, env)
        log, unfinished = self._work.logs / "gold.log", path.with_suffix(".part")
        self._plugin.run(log, settings, count, unfinished, program=GOLD)
        unfinished.replace(path)

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
            raise RunError(
                f"--tasks: the tokenizer of {folder} was made without"
                f" {', '.join(sorted(unknown))}; give another --work"
            )
        return folder
