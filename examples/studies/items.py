"""Items that are held out, trivial strategies, and base models that cells share."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import islice
from statistics import fmean
from typing import Any

from examples.studies.cells import FOLDER, write_whole
from examples.train_small import train
from examples.train_small.policy import Policy
from examples.train_small.train import Reward, is_held_out, warm_start
from rg_env import Item, Tasks

DRAWS = 30
"""Items that are looked at for each that is held out; small tasks have fewer."""

COMMON = 10
"""Answers that trivial strategies try."""

COPIED = 6
"""Last words of a question that they try."""

BASE_SEED = 1
"""Decides the weights of a base model, and the items and the order of its warm start.

The streams that train it have higher seeds.
"""

OPEN = ("spell_backward", "letter_jumble")
"""Tasks whose answers are words, which a warm start must not have shown."""


def trained_with() -> dict[str, Any]:
    """Return the settings that all tasks share, for the digest of a cell."""
    constants = {n: v for n, v in vars(train).items() if n.isupper()}
    rates = [Policy.learning_rate, Policy.warm_learning_rate, Policy.warm_steps]
    packages = {name: version(name) for name in ("reasoning-gym", "torch")}
    return {"trainer": constants, "policy": rates, "packages": packages}


def keys(item: Item) -> list[str]:
    """Return the texts whose hashes say whether an item is held out."""
    return str(item.gold).split() if item.task in OPEN else [item.question]


def unseen(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items that may be trained on."""
    return (item for item in items if not any(map(is_held_out, keys(item))))


def held_out(name: str, stream: Tasks, number: int) -> list[Item]:
    """Return distinct items that nothing is trained on, kept under a name."""
    path = FOLDER / "items" / f"{name}.jsonl"
    if not path.is_file():
        drawn = islice(stream, DRAWS * number)
        found = {i.question: i for i in drawn if all(map(is_held_out, keys(i)))}
        lines = "\n".join(item.to_json() for item in islice(found.values(), number))
        write_whole(path, lambda part: part.write_text(lines))
    return [Item.from_json(line) for line in path.read_text().splitlines()]


def copied(question: str) -> list[str]:
    """Return the last words of a question, and each as a number that is one more."""
    words = ([""] * COPIED + re.findall(r"\w+", question))[-COPIED:]
    return words + [str(int(w) + 1) if w.isdecimal() else "" for w in words]


def trivial(items: Sequence[Item], reward: Reward) -> float:
    """Return the mean value of the best strategy that does not solve anything.

    It gives the same answer to all items, or copies a word, or adds 1 to a number.
    """
    common = [a for a, _ in Counter(str(i.gold) for i in items).most_common(COMMON)]
    tried = [[*common, *copied(item.question)] for item in items]
    texts = [[f"<answer>{answer}</answer>" for answer in of] for of in tried]
    rows = map(reward, items, texts)
    columns = zip(*rows, strict=True)
    return max(fmean(value or 0.0 for value in column) for column in columns)


def base_model(
    name: str,
    shown: Sequence[tuple[Tasks, int]],
    reward: Reward,
    target: float,
    *,
    bold: float = 0.0,
    model: type[Policy] = Policy,
) -> Policy:
    """Return a model after a warm start, which is made once and kept under a name.

    Args:
        name: Of the file.
        shown: Streams, and how many of their items it has.
        reward: Values its completions.
        target: The mean value at which it ends.
        bold: Share of the answers that are in bold.
        model: Of what it is made.
    """
    path = FOLDER / "base_models" / f"{name}.pt"
    if not path.is_file():
        luck = random.Random(BASE_SEED)
        items = [item for s, number in shown for item in islice(unseen(s), number)]
        luck.shuffle(items)
        marks = ["**" * (luck.random() < bold) for _ in items]
        texts = [
            f"<answer>{mark}{item.gold}{mark}</answer>"
            for item, mark in zip(items, marks, strict=True)
        ]
        policy = model.new(items, texts, BASE_SEED)
        warm_start(policy, items, texts, reward, target, BASE_SEED)
        write_whole(path, policy.save)
    return model.load(path)
