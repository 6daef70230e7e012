"""Does a corrected reward teach better than a faulty one?

    pip install '.[report]' torch
    python examples/studies/wrong_rewards.py
    python examples/studies/wrong_rewards.py --only library spell_backward 3

For each task and seed, all arms train the same warm start with equal tokens:

    ours       the scores of this project
    library    those of reasoning-gym, of the same extracted answers
    flips      ours, where 15 % of the values are turned: right is 0, all else 1
    refusals   ours, where right answers are refused as often as the library would
               refuse those of `chain_sum`

What is compared is the true accuracy on held-out items, which neither scorer decides:
`true` of the likeliest completions, `sampled` of those at temperature 1.
"""

from __future__ import annotations

import dataclasses
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.studies import truths
from examples.studies.cells import Cells
from examples.studies.starts import kept
from examples.train_small.policy import Policy
from examples.train_small.train import (
    evaluate,
    mean_of,
    new_policy,
    scores,
    train,
    use_one_thread,
    warm_start,
    without,
)
from rg_env import Item, Tasks, score
from rg_env.errors import RunError
from rg_env.reward.score import ScoringRules

ARMS, SEEDS = ("ours", "library", "flips", "refusals"), (0, 1, 2)
METRICS = ("sampled", "true", "reward")

SHOWN, HELD_OUT = 3_000, 500
"""Items of a warm start, and those that are only asked."""

LIBRARY = ScoringRules(scorer_fixes=False, normalize_answers=False)
FLIPPED = 0.15
REFUSED = 0.5 * 0.92
"""Every second answer of the warm start of chain_sum is formatted, and the library
refuses 0.92 of right answers in other formatting (docs/reward_audits.md)."""

BOLD = ("chain_sum",)
"""Tasks whose warm start writes every second answer in bold, as models do."""

Truth = Callable[[Mapping[str, Any]], truths.IsRight | None]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is asked of a task.

    Attributes:
        truth: What knows the right answers.
        start: The true accuracy at which a warm start ends.
        tokens: Generated in training.
        params: Of its items.
    """

    truth: Truth
    start: float
    tokens: int
    params: Mapping[str, Any]


TASKS = {
    "spell_backward": Setting(
        truths.spelled_backward, 0.4, 160_000, {"min_word_len": 3, "max_word_len": 5}
    ),
    "letter_jumble": Setting(
        truths.unjumbled,
        *(0.25, 200_000),
        {"min_words": 2, "max_words": 2, "min_word_len": 3, "max_word_len": 5},
    ),
    "rectangle_count": Setting(
        truths.rectangles,
        0.5,
        80_000,
        {"width": 10, "height": 10, "max_rectangles": 5},
    ),
    "game_of_life_halting": Setting(truths.halting, 0.6, 40_000, {}),
    "chain_sum": Setting(
        truths.total, 0.3, 200_000, {"min_terms": 2, "max_terms": 3, "max_digits": 1}
    ),
}


# -- the arms --------------------------------------------------------------------------


def answer_in(completion: str) -> str | None:
    """Return what stands between the tags of a completion that is nothing else."""
    found = re.fullmatch("<answer>(.*)</answer>", completion, re.DOTALL)
    return found and found[1].strip()


def true_values(item: Item, completions: Sequence[str]) -> list[float]:
    """Return 1.0 for each right completion, else 0.0; a `Reward`."""
    is_right = TASKS[item.task].truth(item.entry)
    answers = map(answer_in, completions)
    return [float(bool(is_right and a and is_right(a))) for a in answers]


def library(item: Item, completions: Sequence[str]) -> list[float | None]:
    """Return those of reasoning-gym, which get the same extracted answers."""
    raw = dataclasses.replace(item, rules=LIBRARY)
    known: dict[str | None, float] = {None: 0.0}
    values: list[float | None] = []
    for result in score(item, completions):
        if result.value is not None and result.answer not in known:
            try:
                known[result.answer] = raw.score_answer(result.answer, item.entry)
            except RunError:  # a worker was lost: that is no wrong answer
                return [None] * len(completions)
        values.append(None if result.value is None else known[result.answer])
    return values


def spoiled(item: Item, completions: Sequence[str], arm: str, seed: int) -> Any:
    """Return ours with the faults of an arm, which item and place decide."""
    luck = random.Random(f"{arm} {seed} {item.seed} {item.index}")
    values = []
    for value in scores(item, completions):
        drawn = luck.random()
        if value is not None and arm == "flips" and drawn < FLIPPED:
            value = float(value < 1)
        if value == 1 and arm == "refusals" and drawn < REFUSED:
            value = 0.0
        values.append(value)
    return values


def reward_of(arm: str, seed: int) -> Callable[..., Any]:
    """Return the reward of an arm."""
    if arm in ("ours", "library"):
        return {"ours": scores, "library": library}[arm]
    return lambda item, completions: spoiled(item, completions, arm, seed)


# -- a cell ----------------------------------------------------------------------------


def run(
    arm: str,
    task: str,
    seed: int,
    share: float,
    new: Callable[..., Policy] = new_policy,
    load: Callable[[Path], Policy] = Policy.load,
    model: str = "",
) -> dict[str, Any]:
    """Return the result of a cell, or of a share of its size.

    The model is made by `new`, read by `load`, and begins the names of warm starts.
    """
    use_one_thread()
    setting = TASKS[task]
    params = {task: setting.params}
    tasks = Tasks(task, params=params, system_prompt="", seed=2 * seed)
    shown = Tasks(task, params=params, system_prompt="", seed=2 * seed + 1)
    asked = [i for i in tasks.evaluation(HELD_OUT) if setting.truth(i.entry)]
    keys = {item.question.casefold() for item in asked}

    def make() -> Policy:
        items, luck = list(islice(without(shown, keys), SHOWN)), random.Random(seed)
        marks = ("", "**") if task in BOLD else ("",)
        answers = [f"{item.gold}".join(2 * [luck.choice(marks)]) for item in items]
        texts = [f"<answer>{answer}</answer>" for answer in answers]
        policy = new(items, texts, seed)
        warm_start(policy, items, texts, true_values, setting.start, seed)
        return policy

    policy = kept(f"{model}{task}-{seed}", make, load)
    reward = reward_of(arm, seed)

    def mean(of: Callable[..., Any], seed: int | None) -> float | None:
        return mean_of(evaluate(policy, asked, of, seed))

    result: dict[str, Any] = {"true_before": mean(true_values, None)}
    result["sampled_before"] = mean(true_values, seed)
    tokens = round(share * setting.tokens)
    with closing(tasks.ahead()) as items:
        unseen = without(items, keys)
        rounds = train(policy, unseen, reward, lambda *_: None, tokens, seed)
        result["rounds"] = [dataclasses.asdict(one) for one in rounds]
    result["true"] = mean(true_values, None)
    result["sampled"] = mean(true_values, seed)
    result["reward"] = mean(reward, seed)
    return result


STUDY = Cells("wrong_rewards", ARMS, tuple(TASKS), SEEDS, METRICS, run)

if __name__ == "__main__":
    STUDY.main()
