"""Tasks of a user's own, good and bad; what a worker imports, and no test."""

import dataclasses
import random
from pathlib import Path

from reasoning_gym.coaching import BaseCurriculum, ScalarAttributeDefinition
from reasoning_gym.factory import ProceduralDataset, register_dataset

from rg_env.task_rules.rules import Guard, ItemCheck, ScorerFix, TaskRules


@dataclasses.dataclass
class DoubleConfig:
    highest: int = 999
    seed: int | None = None
    size: int = 500

    def validate(self):
        assert self.highest < 10_000, "highest must be below 10000"


class DoubleDataset(ProceduralDataset):
    """Twice a number.

    It draws from everybody's generator, and more at the beginning.
    """

    def __init__(self, config):
        super().__init__(config=config, seed=config.seed, size=config.size)
        self.offset = random.randint(0, 9) + self.seed % 10

    def __getitem__(self, idx):
        number = random.randint(1, self.config.highest) + self.offset
        question = f"What is twice {number}?"
        return {"question": question, "answer": str(2 * number), "metadata": {}}


class DoubleCurriculum(BaseCurriculum):
    def __init__(self):
        super().__init__("DoubleCurriculum", DoubleConfig)
        levels = [9, 99, 999, 99_999]
        self._define_attributes(
            ScalarAttributeDefinition(
                name="highest", field_name="highest", levels=levels
            )
        )


def without_zeros(answer, entry):
    if answer == "break the notation":
        raise RuntimeError("the notation is broken")
    return answer.lstrip("0")


register_dataset("double", DoubleDataset, DoubleConfig, DoubleCurriculum)


class BrokenCurriculum(DoubleCurriculum):
    def generate_configuration(self, defaults=None, context=None):
        return defaults["nothing"]


register_dataset("broken_levels", DoubleDataset, DoubleConfig, BrokenCurriculum)


class SteepDataset(DoubleDataset):
    def __getitem__(self, idx):
        return super().__getitem__(idx // (self.config.highest != 99))


register_dataset("steep", SteepDataset, DoubleConfig, DoubleCurriculum)


class AnyEvenDataset(DoubleDataset):
    def __getitem__(self, idx):
        return {"question": f"An even number above {self.offset}?", "answer": None}

    def score_answer(self, answer, entry):
        return float(answer.isdigit() and int(answer) > 9 and int(answer) % 2 == 0)


class OverpaysDataset(DoubleDataset):
    def score_answer(self, answer, entry):
        return float(answer in ("please", entry["answer"]))


register_dataset("any_even", AnyEvenDataset, DoubleConfig)
register_dataset("overpays", OverpaysDataset, DoubleConfig)


def hang(self, idx):
    while True:
        pass


def read_a_file(self, idx):
    return {"question": Path("/etc/passwd").read_text(), "answer": "1"}


def raise_an_error(self, answer, entry):
    raise KeyError("no such thing")


def raise_or_hang(self, answer, entry):
    if answer == "raise":
        raise KeyError("no such thing")
    while answer == "loop":
        pass
    return float(answer == entry["answer"])


NO_SCORES = {"none": None, "nan": float("nan"), "text": "1.0", "percent": 85}
BAD = {
    "raises": {"__getitem__": lambda self, idx: 1 / 0},
    "hangs": {"__getitem__": hang},
    "makes_no_entry": {"__getitem__": lambda self, idx: {"answer": "1"}},
    "reads_a_file": {"__getitem__": read_a_file},
    "scorer_raises": {"score_answer": raise_an_error},
    "scorer_hangs": {"score_answer": raise_or_hang},
    **{
        f"pays_{name}": {"score_answer": lambda self, answer, entry, value=value: value}
        for name, value in NO_SCORES.items()
    },
}
for name, methods in BAD.items():
    register_dataset(name, type(name, (DoubleDataset,), methods), DoubleConfig)

RULES = [
    TaskRules(
        "double",
        notation=without_zeros,
        guard=Guard(lambda answer, gold: "it says so" if answer == "reject" else None),
        item_checks=(
            ItemCheck(
                "number is odd", lambda entry: int(entry["answer"]) // 2 % 2 == 1
            ),
        ),
    ),
    TaskRules("any_even", solution=lambda entry: "100"),
    TaskRules(
        "overpays",
        fix=ScorerFix(
            fault="Pays whoever says please.",
            score=lambda answer, entry, own: own(answer) if answer != "please" else 0.0,
        ),
    ),
]
