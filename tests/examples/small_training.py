"""A run of train_small without torch: real API, real `serve`, a policy in numpy.

python -m tests.examples.small_training FOLDER STEPS
"""

import shutil
import sys
from pathlib import Path

from examples.train_small.options import read_options
from examples.train_small.plugin import Plugin
from examples.train_small.recipe import Run
from examples.train_small.servers import start_small
from examples.train_small.task_run import TaskRun, to_the_end
from examples.train_small.work_folder import WorkFolder
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from tests.examples.policies import AnswerPolicy, load_policy

GROUPS, GROUP_SIZE = 8, 8
TASK = "letter_counting"

CHANGES = {
    # The right answer is mostly 1, which the policy can learn.
    "task_params": {TASK: {"min_words": 2, "max_words": 3}},
    # A policy that is sure gives equal scores, and batches have to come still.
    "ensure_scores_are_not_same": False,
}
RUN = Run("grpo", (TASK,), CHANGES)


def run_folder(folder):
    return WorkFolder(folder).run(0, RUN.name)


def train(folder, steps, open_):
    """Do the run, or what is left of it; `open_` ends the inference server."""
    options = read_options(
        [
            *("--groups", str(GROUPS), "--group-size", str(GROUP_SIZE)),
            *("--steps", str(steps), "--held-out", "100"),
            *("--learning-rate", "20"),
        ]
    )
    work = WorkFolder(folder)
    start = folder / "start"
    AnswerPolicy().save_weights(start)
    shutil.copytree(TOKENIZER_FOLDER, work.serving, dirs_exist_ok=True)
    shutil.copytree(start, work.serving, dirs_exist_ok=True)
    server = start_small(
        work.serving, work.logs / "server.log", module="tests.examples.policies"
    )
    open_.callback(server.kill)
    plugin = Plugin(Path(sys.executable))
    TaskRun(RUN, 0, options, work, plugin, server, start, load_policy).do()


if __name__ == "__main__":
    told, steps = Path(sys.argv[1]), int(sys.argv[2])
    sys.exit(to_the_end(lambda open_: train(told, steps, open_)))
