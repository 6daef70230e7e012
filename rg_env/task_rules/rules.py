"""Defines `TaskRules`, the row of a task: its guard, fix, checks and repairs.

If the rules need no functions of their own, the row is in `rg_env.task_rules.rows`.
Otherwise it is a constant `TaskRules(...)` behind these functions, in a module of the
task's category: `task_rules/games/` and `task_rules/algebra.py` have the tasks of
`reasoning_gym/games/` and `reasoning_gym/algebra/`.

These modules know neither workers nor the framework. They use the library only where a
faster function replaces one of its functions.

Example:
    >>> from rg_env.task_rules.reading.numbers import as_number
    >>> rules = TaskRules("chain_sum", notation=as_number)
    >>> rules.notation("8 + 12 = 20", {"question": "8 + 12", "answer": "20"})
    '20'
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Default of `max_answer_chars`. The longest usual answer of the library has 5,648
# characters. An entry that needs more, such as 32,767 moves in tower_of_hanoi, is not
# used.
MAX_ANSWER_CHARS = 20_000

MIXTURE = "composite"
"""The registered name of the mixture of other tasks, which is not a task."""

Entry = Mapping[str, Any]
"""An entry of the library with `question`, `answer` and `metadata`."""

LibraryScore = Callable[[str], float]
"""The library's score of an answer to the same entry, in [0, 1]; may raise."""

FixedScore = Callable[[str, Entry, LibraryScore], float]
"""(answer, entry, the library's scorer) to the corrected score in [0, 1]."""

# Many scorers of the library give this to a wrong answer that they can parse.
READABLE_SCORE = 0.01

# The highest score of a wrong answer.
MAX_FOR_A_WRONG_ANSWER = 0.5


Notation = Callable[[str, Entry], str]
"""(answer without formatting, entry) to the canonical form that the scorer expects.

If a question does not say how to write the answer, people and models write it in
several ways: `Yes` and `yes`, `U-U-L` and `UUL`, `5.0` and `5`. A notation does not
change the meaning, and it returns a text that it cannot parse unchanged. It never
chooses between two interpretations, computes no answer, evaluates nothing, and takes
linear time.
"""


@dataclasses.dataclass(frozen=True)
class Guard:
    """Rejects answers that must not reach the library's scorer.

    Nine scorers execute the text of an answer, and a few characters make several others
    run for hours. A rejected answer scores 0; the library would have to run it, or give
    it at most the score of any wrong answer. The other scorers take about linear time
    for 20,000 characters, so their tasks need no guard. Not covered: the time of
    `sympy.simplify` for an ordinary wrong integral.

    Attributes:
        why_not: (answer, gold answer or None) to the reason of a rejection, None if the
            answer is admitted; pure, never raises, evaluates nothing.
        evaluates: Whether the scorer runs the text of an answer.
    """

    why_not: Callable[[str, str | None], str | None]
    evaluates: bool = False


@dataclasses.dataclass(frozen=True)
class ScorerFix:
    """A corrected scorer; it is used with every version of the library.

    Attributes:
        score: Returns the corrected score.
        fault: The fault of the library's scorer, as one sentence; "" for the rule of
            tasks with one right answer, `rg_env.task_rules.answer_matching`.
        runs_programs: Whether `score` runs the program of an entry on the answer. It
            passes only right answers to the library's scorer and so needs no guard.
    """

    score: FixedScore
    fault: str = ""
    runs_programs: bool = False


@dataclasses.dataclass(frozen=True)
class ItemCheck:
    """Finds faulty entries of a task, which are not sampled.

    The reference answer is wrong, not the only right one or unknowable
    (docs/reward_audits.md counts these entries), or the question gives it away. A check
    takes less time than the generation of an entry, needs only the entry, and reports a
    fault only if it is certain.

    Attributes:
        fault: The fault, as the end of a sentence that begins with "its".
        is_faulty: Returns whether an entry has the fault; may raise LookupError,
            TypeError, ValueError or AttributeError for an entry of another shape.
        always: Whether the check is made even if the library's items are to be used
            unchanged, because the entry varies from process to process or has no
            answer.
        answer_stands: Whether the reference answer is right, and no other one is. Such
            an entry is not sampled because a trivial baseline scores on it; a published
            evaluation uses it.
    """

    fault: str
    is_faulty: Callable[[Entry], bool]
    always: bool = False
    answer_stands: bool = False


# Some correct answers are too common, such as "no path". Their items are downsampled
# until a constant answer scores at most 0.25 above chance, at the defaults of a task
# and at every step of its scale. Some stay, because a model would learn that a missing
# answer is never right. Only the question decides whether an entry is kept.


def _is_kept(entry: Entry, one_in: int) -> bool:
    text = entry["question"].encode(errors="surrogatepass")
    hashed = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(hashed, "big") % one_in == 0


def downsample(
    fault: str, is_common: Callable[[Entry], bool], one_in: int
) -> ItemCheck:
    """Return the check that keeps one in `one_in` of the common entries."""
    return ItemCheck(
        fault,
        lambda entry: is_common(entry) and not _is_kept(entry, one_in),
        answer_stands=True,
    )


def downsample_answer(answer: str, one_in: int) -> ItemCheck:
    """Return the check that keeps one in `one_in` of the entries with an answer.

    Example:
        `downsample_answer("No", one_in=2)` drops half of the entries with that answer.
    """
    return downsample(
        "answer is too common, and was sampled often enough",
        lambda entry: bool(entry["answer"] == answer),
        one_in,
    )


@dataclasses.dataclass(frozen=True)
class LevelRepair:
    """Parameters that replace those of the library's curriculum.

    Attributes:
        overrides: Level of the library's curriculum to parameters and values.
        reason: The fault of the library's parameters.
    """

    overrides: Mapping[int, Mapping[str, Any]]
    reason: str


@dataclasses.dataclass(frozen=True)
class FasterFunction:
    """A function of the library and its faster replacement with equal results.

    Attributes:
        module: The module of the function, e.g. "cellpylib".
        name: The name of the function, with its class if it has one, e.g.
            "KnightSwapLogic.solve_swap".
        digest: The `source_digest` of the replaced function.
        make: From the library's function to the faster one.
    """

    module: str
    name: str
    digest: str
    make: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class TaskRules:
    """The rules of one task.

    Attributes:
        task: The registered name.
        guard: Rejects answers that must not reach the scorer.
        notation: Writes an answer in the canonical form that the scorer expects.
        kept_signs: Signs that are a part of answers and no formatting, e.g. `=`.
        fix: The corrected scorer; None if the library's is good enough, and if the task
            has the library's base scorer.
        item_checks: The checks for faulty entries.
        level_repair: The repaired levels.
        unused_levels: Level of the library's curriculum to the reason why the scale
            leaves it out.
        fixed_level: The reason why the level does not change the items.
        is_rebuilt: Whether an entry depends on more than `dataset.seed + index`. The
            datasets of all other tasks are kept, and only their seed is set, which
            takes less time; a test compares both ways.
        kept_on_class: An attribute that the datasets keep on their class, so that a new
            dataset of another level overwrites the data of all others.
        faster: The functions of the library that are replaced.
        corrected_metadata: Entry to corrected values of its metadata, if an answer in
            the library's metadata is wrong.
        solution: Entry to an answer that scores 1.0 (None if there is none), if the
            reference answer may score less.
        other_interpretations: Entry to the entries that the library would have made
            from other interpretations of the question. Their answers are right, too.
    """

    task: str
    guard: Guard | None = None
    notation: Notation | None = None
    kept_signs: str = ""
    fix: ScorerFix | None = None
    item_checks: tuple[ItemCheck, ...] = ()
    level_repair: LevelRepair | None = None
    unused_levels: Mapping[int, str] = dataclasses.field(default_factory=dict)
    fixed_level: str = ""
    is_rebuilt: bool = False
    kept_on_class: str = ""
    faster: tuple[FasterFunction, ...] = ()
    corrected_metadata: Callable[[Entry], Mapping[str, Any]] | None = None
    solution: Callable[[Entry], str | None] | None = None
    other_interpretations: Callable[[Entry], Iterable[Entry]] | None = None
