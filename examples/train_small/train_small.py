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
from examples.train_small.recipe import Run
from examples.train_small.servers import InferenceServer, make_server
from examples.train_small.starts import Starts
from examples.train_small.task_run import TaskRun, to_the_end
from examples.train_small.torch_policy import TorchPolicy
from examples.train_small.work_folder import OF_FOLDER, OF_RUN, WorkFolder, begin


class Training:
    """All that is asked for on the command line, stage after stage.

    Args:
        options: The command line.
        open_: Ends the inference server.
    """

    def __init__(
        self, options: argparse.Namespace, open_: contextlib.ExitStack
    ) -> None:
        self._options, self._open = options, open_
        self._work = WorkFolder(options.work)
        open_.enter_context(self._work.taken())
        begin(self._work.path, options, OF_FOLDER)
        self._plugin = Plugin(options.plugin_python)
        self._starts = Starts(options, self._work, self._plugin)
        self._server: InferenceServer | None = None

    def do_all(self) -> None:
        """Do what is not done yet, and write results and pictures."""
        for seed in self._options.seeds:
            for kind in self._options.runs:
                for run in recipe.runs_of(kind, self._options.tasks):
                    if not self._is_done(run, seed):
                        self._do(run, seed)
                        curve.write(self._work.path)
        print(curve.table(curve.read(self._work.path)))
        for path in curve.write(self._work.path):
            print(path)

    def _is_done(self, run: Run, seed: int) -> bool:
        folder = self._work.run(seed, run.name)
        folder.mkdir(parents=True, exist_ok=True)
        begin(folder, self._options, OF_RUN)
        return (folder / recipe.RESULT).is_file()

    def _do(self, run: Run, seed: int) -> None:
        start = self._starts.of(seed, run.tasks[0])
        # One core is left to the inference server.
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) - 1))
        TaskRun(
            run,
            seed,
            self._options,
            self._work,
            plugin=self._plugin,
            server=self._served(start),
            start=start,
            policy_at=self._policy_at,
        ).do()

    def _policy_at(self, folder: Path) -> TorchPolicy:
        return TorchPolicy(folder, device=self._options.device)

    def _served(self, start: Path) -> InferenceServer:
        """Return the inference server, which the first call starts."""
        if self._server is None:
            folder, log = self._work.serving, self._work.logs / "server.log"
            shutil.copytree(start, folder, dirs_exist_ok=True)
            self._server = make_server(
                self._options.server, folder, log, self._options.device
            )
            self._open.callback(self._server.kill)
            self._server.start()
            self._server.ready()
        return self._server


def main() -> int:
    """Read the command line and train."""
    options = read_options()
    return to_the_end(lambda open_: Training(options, open_).do_all())


if __name__ == "__main__":
    sys.exit(main())
