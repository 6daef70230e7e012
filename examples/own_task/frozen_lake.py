"""Frozen Lake: an environment of Gymnasium as a task.

Maps and moves are Gymnasium's, which comes with Atropos: an answer is played.
"""

import collections
import dataclasses
import re

from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map
from reasoning_gym.coaching import BaseCurriculum, ScalarAttributeDefinition
from reasoning_gym.factory import ProceduralDataset, register_dataset

from rg_env.task_rules.rules import Guard, TaskRules

TASK = "frozen_lake"
MOVES = "LDRU"  # in the order of Gymnasium's actions
WORDS = {"LEFT": "L", "DOWN": "D", "RIGHT": "R", "UP": "U"}
QUESTION = """\
You stand at S on a frozen lake and walk to G. F is ice that carries you, and in a hole,
H, the walk ends. Which moves lead to G? Write them one after the other, as L for left,
D for down, R for right and U for up. The lake:

"""


def shortest(lake):
    """Return the fewest moves to the goal, which can be reached on every map."""
    ways, seen = collections.deque([(0, "")]), {0}
    while True:
        place, moves = ways.popleft()
        for action, move in enumerate(MOVES):
            [(_, there, reward, ended)] = lake.P[place][action]
            if reward:
                return moves + move
            if not ended and there not in seen:
                seen.add(there)
                ways.append((there, moves + move))


@dataclasses.dataclass
class LakeConfig:
    """Squares on a side, and the share of them that is ice."""

    width: int = 4
    ice: float = 0.8
    seed: int | None = None
    size: int = 500


class LakeDataset(ProceduralDataset):
    """Moves over a frozen lake with holes."""

    def __init__(self, config):
        super().__init__(config=config, seed=config.seed, size=config.size)

    def __getitem__(self, idx):
        rows = generate_random_map(self.config.width, self.config.ice, self.seed + idx)
        return {
            "question": QUESTION + "\n".join(rows),
            "answer": shortest(FrozenLakeEnv(desc=rows, is_slippery=False)),
            "metadata": {"source_dataset": TASK, "rows": rows},
        }

    def score_answer(self, answer, entry):
        """Return 1.0 for any moves that end at the goal."""
        lake = FrozenLakeEnv(desc=entry["metadata"]["rows"], is_slippery=False)
        lake.reset()
        for number, move in enumerate(answer, start=1):
            if move not in MOVES:
                return 0.0
            _, reward, ended, _, _ = lake.step(MOVES.index(move))
            if ended:
                return float(reward) if number == len(answer) else 0.0
        return 0.0


class LakeCurriculum(BaseCurriculum):
    """Six levels: larger lakes."""

    def __init__(self):
        super().__init__("LakeCurriculum", LakeConfig)
        width = ScalarAttributeDefinition(
            name="width", field_name="width", levels=[3, 4, 5, 6, 8, 10]
        )
        self._define_attributes(width)


def as_letters(answer, entry):
    """Return moves as the scorer reads them: `Right, down` and `R-D` are `RD`."""
    words = re.findall("[A-Z]+", answer.upper())
    moves = "".join(WORDS.get(word, word) for word in words)
    return moves if set(moves) <= {*MOVES} else answer


register_dataset(TASK, LakeDataset, LakeConfig, LakeCurriculum)
RULES = TaskRules(
    TASK,
    guard=Guard(lambda answer, gold: "too many moves" if len(answer) > 1000 else None),
    notation=as_letters,
)
