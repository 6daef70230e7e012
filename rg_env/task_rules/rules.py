"""What is known of one task: its row.

A task whose rules need no function of their own has its row in
`rg_env.task_rules.rows`. The row of any other, a constant `TaskRules(...)`, stands
behind the functions that it names in a module of the task's category:
`task_rules/games/` and `task_rules/algebra.py` are about tasks of
`reasoning_gym/games/` and of `reasoning_gym/algebra/`.

Pure: nothing here knows workers or the framework, and only faster functions touch the
library, when they take the place of one of its functions.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Default of `max_answer_chars`, above the library's longest usual answer (5,648). An
# entry that needs more, such as 32,767 moves of tower_of_hanoi, is not used.
MAX_ANSWER_CHARS = 20_000

MIXTURE = "composite"
"""The one registered name that is no task: it mixes the entries of other tasks."""

Entry = Mapping[str, Any]
"""An entry of the library: question, answer and metadata."""

LibraryScore = Callable[[str], float]
"""The library's own score of an answer to the same entry, in [0, 1]; may raise."""

FixedScore = Callable[[str, Entry, LibraryScore], float]
"""(answer, entry, library's score) to the corrected score in [0, 1]."""

# What many of the library's scorers give for a wrong answer that they can read.
READABLE = 0.01

# What an answer that is not right scores.
MOST_FOR_A_WRONG_ANSWER = 0.5


Notation = Callable[[str, Entry], str]
"""(answer without formatting, entry) to the answer as the task's scorer reads it.

Where a question leaves open how its answer is written, people and models write it in
several ways: `Yes` and `yes`, `U-U-L` and `UUL`, `5.0` and `5`. A notation changes no
meaning: what it returns says the same to everybody who has read the question, and what
it does not know it returns as it stands. It never chooses between two readings, never
computes what the question asks for, takes time linear in the text, and evaluates
nothing.
"""


@dataclasses.dataclass(frozen=True)
class Guard:
    """Which answers must not reach the library's scorer.

    Nine scorers execute the text of an answer, and a few characters make several more
    run for hours. What is rejected scores 0; the library would give it no more than its
    floor, or would have to run it to know. All other scorers are linear or close to it
    in at most 20,000 characters, so their tasks have no guard. Not covered: how long
    `sympy.simplify` takes for an ordinary wrong integral.

    Attributes:
        why_not: (answer, gold answer or None) to the reason of a rejection, None where
            it is admitted; pure, never raises, evaluates nothing.
        evaluates: Whether the scorer runs the text of an answer.
    """

    why_not: Callable[[str, str | None], str | None]
    evaluates: bool = False


@dataclasses.dataclass(frozen=True)
class ScorerFix:
    """One corrected scorer, whichever version of the library is installed.

    Attributes:
        score: The corrected score.
        fault: What the library's scorer does wrong, as one sentence; "" of the rule for
            tasks with one right answer, `rg_env.task_rules.one_rule`.
        runs_programs: Whether it runs an entry's program on what an answer says. It
            gives the library's scorer nothing but right answers, so that it needs no
            guard of it.
    """

    score: FixedScore
    fault: str = ""
    runs_programs: bool = False


@dataclasses.dataclass(frozen=True)
class ItemCheck:
    """Something that is wrong with some entries of a task.

    Their answer is not the right one, not the only one or cannot be known
    (docs/reward_audits.md says how many they are), or the question gives it away. A
    check costs little beside making the entry, needs nothing but the entry, and is
    certain: it says that an entry is faulty only where it can show it.

    Attributes:
        fault: What is wrong with them, in the words of a sentence "its ...".
        is_faulty: Whether an entry is one of them; may raise a LookupError, TypeError,
            ValueError or AttributeError where it is not what the task makes.
        always: Whether it is looked for also where the library's items are wanted as
            they are, because an entry with it is another one each time, or nobody can
            answer it.
        answer_stands: Whether the answer is right and the only one. Such an entry is
            not sampled because a text that solves nothing scores there; one of a
            published evaluation is used.
    """

    fault: str
    is_faulty: Callable[[Entry], bool]
    always: bool = False
    answer_stands: bool = False


# Items whose answer is correct and only too common, as that a grid has no path, are
# sampled one time in so many as leave a text that always says so 0.25 above chance at
# most, in every task at its defaults and at all steps of its scale. They stay among the
# answers, so that nobody learns that these never are the right ones. Which entries are
# kept depends on their question alone.


def _is_kept(entry: Entry, one_in: int) -> bool:
    text = entry["question"].encode(errors="surrogatepass")
    hashed = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(hashed, "big") % one_in == 0


def seldom(fault: str, is_common: Callable[[Entry], bool], one_in: int) -> ItemCheck:
    """Return the check that leaves one in so many of the common entries."""
    return ItemCheck(
        fault,
        lambda entry: is_common(entry) and not _is_kept(entry, one_in),
        answer_stands=True,
    )


def seldom_answered(one_in: Mapping[str, int]) -> ItemCheck:
    """Return the check that leaves one in so many of the entries with an answer."""
    return ItemCheck(
        "answer is one that is right too often, and was sampled often enough",
        lambda entry: not _is_kept(entry, one_in.get(entry["answer"], 1)),
        answer_stands=True,
    )


@dataclasses.dataclass(frozen=True)
class LevelRepair:
    """Parameters that are set instead of those of the library's curriculum.

    Attributes:
        overrides: Level of the library's curriculum to parameters and values.
        reason: What is wrong with the library's, in plain words.
    """

    overrides: Mapping[int, Mapping[str, Any]]
    reason: str


@dataclasses.dataclass(frozen=True)
class FasterFunction:
    """One function of the library and what takes its place: equal, and faster.

    Attributes:
        module: Where the function stands, e.g. "cellpylib".
        name: Its name there, with its class if it has one, as in
            "KnightSwapLogic.solve_swap".
        digest: Of its source, see `rg_env.task_rules.faster_functions.source_digest`.
        make: Returns the faster function, given the library's own.
    """

    module: str
    name: str
    digest: str
    make: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class TaskRules:
    """What is known of one task.

    Attributes:
        task: The registered task.
        guard: Which answers must not reach its scorer.
        notation: How its answers are written as its scorer reads them.
        kept_signs: Signs that are no formatting in its answers: `=` where a letter
            before it is a part of an answer.
        fix: Its corrected score; None where nothing was found that its scorer overpays
            beyond a near miss, and where it has the library's base scorer.
        item_checks: Which of its entries are not used.
        level_repair: Which of its levels are repaired.
        unused_levels: Level of the library's curriculum to why it is not on the scale.
        fixed_level: Why its items do not change with the level, or it has none.
        is_rebuilt: Whether an entry depends on more than `dataset.seed + index`. For
            all others only the seed of a built dataset is set, which is the same entry
            for less where the dataset is kept; a test compares both ways.
        kept_on_class: What its datasets keep on their class, where the one built last
            overwrites that of all others: items of one level would come from the data
            of another.
        faster: Functions of the library that are replaced.
        corrected_metadata: Entry to what takes the place of its metadata of that name,
            where the library's hold an answer that is none.
        solution: Entry to an answer that scores 1.0, where the entry's own answer may
            be none; None where it holds none.
        other_readings: Entry to the entries that the library would have made if it read
            the question in another way that the question admits. Their answers are
            right as well.
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
    other_readings: Callable[[Entry], Iterable[Entry]] | None = None
