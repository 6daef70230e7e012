"""time_intervals: the time between two times or dates."""

from __future__ import annotations

import re

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.rules import Entry, ItemCheck, LibraryScore, ScorerFix, TaskRules

TIME_CREDIT_FROM = 0.9
"""Up to this a time interval scores 0.

The library's score is 1 - error / largest possible difference, so that 50 of 100 days
score 0.75 on average. From here on a constant is near one answer in five at most.
"""

_DAYS = re.compile(r"(?:-(?=[1-9]))?\d+(?:\s+days?)?\.?")
_CLOCK = re.compile(r"\d+:\d+(?::\d+(?:\.\d+)?)?")
_DAYS_AND_CLOCK = re.compile(rf"(?:-(?=[1-9]))?\d+ days,\s*{_CLOCK.pattern}")
_SPAN = re.compile(
    r"\+?(?P<days>-?\d{1,9})"
    r"(?:\s*(?:days?|d(?:\s+days?)?)\s*(?:,|and|,\s*and)?\s*|\s+(?=\d+:))"
    r"(?P<clock>[\d:.]{4,20})?\s*,?",
    re.IGNORECASE,
)
_WRITTEN_CLOCK = re.compile(
    r"\+?(?P<clock>\d{1,9}(?::\d{1,2}){1,2}(?:\.\d{1,9})?)\s*(?:hours|hrs|h)?"
)


def _interval(answer: str, entry: Entry, library: LibraryScore) -> float:
    kind = entry["metadata"]["task_type"]
    form = _DAYS_AND_CLOCK
    if kind == "date":
        form = _DAYS
    elif kind.startswith("time"):
        form = _CLOCK
    if not form.fullmatch(answer.strip()):
        return 0.0
    value = library(answer)
    return value if value == 1.0 else partial_credit(value, TIME_CREDIT_FROM)


def _as_days_and_clock(answer: str, entry: Entry) -> str:
    """Write a span as `D days` and a clock, whichever of the two it has."""
    kind = str(entry.get("metadata", {}).get("task_type", ""))
    if kind.startswith("time"):
        clock = _WRITTEN_CLOCK.fullmatch(answer)
        return clock["clock"] if clock else answer
    span = _SPAN.fullmatch(answer)
    if span is None:
        return answer
    days = f"{int(span['days'])} days"
    if kind == "date":
        return days if span["clock"] is None else answer
    return answer if span["clock"] is None else f"{days}, {span['clock']}"


RULES = TaskRules(
    "time_intervals",
    notation=of_short_text(_as_days_and_clock),
    fix=ScorerFix(
        scorer_sha256="1ae24e969375fd66478c6046c7d4c7353da9c7955273617a594f925d149bb361",
        fault="The middle of the range scores 0.75 on average, an hour off 0.96;"
        " what follows the first interval is ignored.",
        score=_interval,
    ),
    item_checks=(
        ItemCheck(
            "answer leaves out the time of day, which stands behind a weekday",
            # The library cuts what it compares at the first " (".
            lambda entry: "(%A) %H" in entry["metadata"]["format"],
        ),
        ItemCheck(
            "answer is below zero, because its second time is the earlier one",
            lambda entry: entry["answer"].startswith("-"),
        ),
    ),
)
