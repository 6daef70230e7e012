"""What a correction of one of the library's scorers is.

A fix is a row: which task, what the scorer does wrong, in which version, and the
corrected score. It is applied where the installed scorer is the one it was written
for (same source). Where the source differs, the fault is looked for again with the
fix's own proof, and the fix is applied only if it is still there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

LIBRARY_VERSION = "0.1.25"
"""The version of reasoning-gym that the faults were found in."""

Entry = Mapping[str, Any]
"""An entry of the library: question, answer and metadata."""

LibraryScore = Callable[[str], float]
"""The library's own score of an answer to the same entry, in [0, 1]; may raise."""

FixedScore = Callable[[str, Entry, LibraryScore], float]
"""(answer, entry, library's score) to the corrected score in [0, 1]."""


@dataclasses.dataclass(frozen=True)
class ScorerFix:
    """One corrected scorer.

    Attributes:
        task: The registered task.
        scorer_sha256: Digest of the source of the faulty `score_answer`.
        fault: What it does wrong, as one sentence.
        proof: Entry to an answer that is wrong and that the faulty scorer overpays.
        proof_pays: What the faulty scorer pays for it at least, in (0, 1].
        score: The corrected score.
        library_version: The version of reasoning-gym that the fault was found in.
    """

    task: str
    scorer_sha256: str
    fault: str
    proof: Callable[[Entry], str]
    proof_pays: float
    score: FixedScore
    library_version: str = LIBRARY_VERSION
