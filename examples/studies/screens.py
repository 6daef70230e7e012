"""Do a few groups say what share of a run's groups has variance, as `screen` assumes?

    pip install torch
    python examples/studies/screens.py screens

The base model of a study of choices.py is asked some groups of one place, and then
trained for up to a minute on other items of it. Each seed has another place, in turn.
"""

from __future__ import annotations

import math
import sys
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from examples.studies.cells import Study, main
from examples.studies.choices import SETTINGS, settings_of, start
from examples.studies.items import unseen
from examples.studies.rewards import right_only
from examples.train_small.train import (
    GROUP_SIZE,
    MAX_NEW_TOKENS,
    train,
    use_one_thread,
)

GROUPS = (5, 10, 20, 40)
"""Groups that a prediction may be of."""

TOKENS = 60_000
"""Generated in a run, which takes 20 to 60 s."""


def run(arm: str, name: str, seed: int) -> dict[str, Any]:
    """Return which predictions held of a place, and how far they were off."""
    use_one_thread()
    setting = SETTINGS[name]
    place = setting.places[seed % len(setting.places)]
    policy, _ = start(name)
    items = unseen(setting.stream(place, seed))
    asked = list(islice(items, GROUPS[-1]))
    rng = torch.Generator().manual_seed(seed)
    questions = [item.question for item in asked]
    texts = policy.sample(questions, GROUP_SIZE, MAX_NEW_TOKENS, rng).texts
    values = map(right_only, asked, texts)
    varied = [len({*of}) > 1 for of in values]
    played = train(policy, items, right_only, lambda *_: None, TOKENS, seed)
    seen = fmean(one.with_variance for one in played)
    result: dict[str, Any] = {"seen": seen, "place": place, "varied": varied}
    for groups in GROUPS:
        away = abs(fmean(varied[:groups]) - seen)
        # Equal to: Wilson's interval of these groups has the share of the run.
        is_held = away <= 1.96 * math.sqrt(seen * (1 - seen) / groups)
        result |= {f"held_{groups}": float(is_held), f"away_{groups}": away}
    return result


STUDY = Study(
    "screens",
    ["screen"],
    list(SETTINGS),
    [*(f"{word}_{groups}" for word in ("held", "away") for groups in GROUPS), "seen"],
    run,
    lambda name: {**settings_of(name), "groups": GROUPS, "run": TOKENS},
)

if __name__ == "__main__":
    main(STUDY)
