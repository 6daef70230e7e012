"""Entries and scores whose making a test can slow down, and questions it can choose."""

import builtins
import os
import signal
import time

from rg_env.reward.score import as_row, score_answer

SLOW = "an answer that takes for ever to score"
EXIT = "an answer that ends its worker"
KILLED = "an answer whose worker is killed by others each time"
TAKEOVER = "an answer that has all later ones scored as right"


class UnusableEntryError(Exception):
    """Named as the library room's own."""


def make_entry(task, params, seed, checked=True, *how):
    """Make an entry as its parameters say.

    `sleep_s` is how long it takes, `space` how many different questions there are, and
    entries of seeds below `unusable_below` are unusable.
    """
    time.sleep(params.get("sleep_s", 0.0))
    if checked and seed < params.get("unusable_below", 0):
        raise UnusableEntryError("its seed is too low")
    number = seed % params.get("space", 2**32)
    return {"question": f"{task} {number}", "answer": str(number), "metadata": {}}


def prepare_scores(*how):
    """Load nothing."""


def score_answers(
    task,
    params,
    entry,
    answers,
    rules,
):
    """Score answers by comparing them with the entry's; some do more than that."""

    def own(answer, entry):
        while answer == SLOW:
            pass
        if answer == EXIT:
            os._exit(1)
        if answer == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if answer == TAKEOVER:
            vars(builtins)["taken over"] = True
        return float(answer == entry["answer"] or "taken over" in vars(builtins))

    return [as_row(score_answer(answer, entry, own)) for answer in answers]
