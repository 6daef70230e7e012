"""Roman numerals: a task of one's own, with a curriculum and a rule."""

import dataclasses
import random

from reasoning_gym.coaching import BaseCurriculum, ScalarAttributeDefinition
from reasoning_gym.factory import ProceduralDataset, register_dataset

from rg_env.task_rules.rules import TaskRules

TASK = "roman_numerals"
ONES = "I II III IV V VI VII VIII IX"
TENS = "X XX XXX XL L LX LXX LXXX XC"
HUNDREDS = "C CC CCC CD D DC DCC DCCC CM"
THOUSANDS = "M MM MMM"


def roman(number):
    """Return a number from 1 to 3999 in Roman numerals."""
    places = zip(f"{number:04}", (THOUSANDS, HUNDREDS, TENS, ONES), strict=True)
    return "".join(["", *signs.split()][int(digit)] for digit, signs in places)


@dataclasses.dataclass
class RomanConfig:
    """Numbers from 1 to `highest`; every config has `seed` and `size` as well."""

    highest: int = 100
    seed: int | None = None
    size: int = 500


class RomanDataset(ProceduralDataset):
    """A number in Roman numerals."""

    def __init__(self, config):
        super().__init__(config=config, seed=config.seed, size=config.size)

    def __getitem__(self, idx):
        number = random.Random(self.seed + idx).randint(1, self.config.highest)
        return {
            "question": f"Write the number {number} in Roman numerals.",
            "answer": roman(number),
            "metadata": {"source_dataset": TASK, "number": number},
        }


class RomanCurriculum(BaseCurriculum):
    """Four levels: larger numbers."""

    def __init__(self):
        super().__init__("RomanCurriculum", RomanConfig)
        highest = ScalarAttributeDefinition(
            name="highest", field_name="highest", levels=[10, 100, 1000, 3999]
        )
        self._define_attributes(highest)


register_dataset(TASK, RomanDataset, RomanConfig, RomanCurriculum)
RULES = TaskRules(TASK, notation=lambda answer, entry: answer.upper())
