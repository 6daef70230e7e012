"""Train a small model from scratch on this environment, without a GPU.

    make train-small
    make train-small ARGS="--tasks spell_backward --seeds 0,1,2 --server vllm"

For each seed and task a model is made, begins with conversations that the environment
wrote (starts.py), and is then trained on groups from the real Atropos API
(task_run.py). Before and after, it answers items that training never asks. What comes
out lies in the folder `--work`: results.json, learning.png, logs, weights. Ctrl-C ends
it in order, and a second start with the same options continues.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rg_env import ending

ending.stop_at_interrupt()  # the imports take seconds

import torch

from examples.train_small import curve, recipe
from examples.train_small.options import read_options
from examples.train_small.plugin import Plugin
from examples.train_small.servers import START, Server
from examples.train_small.starts import Starts
from examples.train_small.task_run import TaskRun, to_the_end
from examples.train_small.work_folder import WorkFolder
from examples.trainer.torch_policy import TorchPolicy

logger = logging.getLogger("rg_env.train_small")


def train(options: argparse.Namespace, open_: contextlib.ExitStack) -> None:
    """Do what is not done yet of all that is asked for, and write results and pictures.

    Args:
        options: The command line.
        open_: Ends what was begun.
    """
    work, plugin = WorkFolder(options.work), Plugin(options.plugin_python)
    open_.enter_context(work.taken(options))
    starts = Starts(options, work, plugin)
    server: Server | None = None
    for seed, kind in itertools.product(options.seeds, options.runs):
        for run in recipe.runs_of(kind, options.tasks):
            if (work.run(seed, run.name) / recipe.RESULT).is_file():
                continue
            start = starts.of(seed, run.tasks[0])
            if server is None:
                shutil.copytree(start, work.serving, dirs_exist_ok=True)
                log = work.logs / "server.log"
                logger.info("starting the inference server: %s", options.server)
                server = START[options.server](work.serving, log)
                open_.callback(server.kill)
            # One core is left to the inference server.
            torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) - 1))
            programs = (plugin, server)
            TaskRun(run, seed, options, work, *programs, start, TorchPolicy).do()
            curve.write(work.path)
    print(curve.table(curve.read(work.path)))
    for path in curve.write(work.path):
        print(path)


def main() -> int:
    """Read the command line and train."""
    options = read_options()
    return to_the_end(lambda open_: train(options, open_))


if __name__ == "__main__":
    sys.exit(main())
