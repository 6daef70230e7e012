"""Levels are probed where the library is another one than that of the table."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from rg_env.items import scale_probe
from rg_env.items.scale_probe import AT_START, ProbeEffort, ProbeTally, resolve_scales
from rg_env.task_rules.rules import TaskRules
from rg_env.tasks import library
from rg_env.tasks.scales import Scale, ShippedScales, Step, load_shipped
from rg_env.workers.worker_pool import WorkerPool

SHIPPED = load_shipped()
STEPS = tuple(Step((n,), {"size_x": n}, 1.0) for n in range(3))


# -- another library -------------------------------------------------------------------


def with_digest(task: str, digest: str, scale: Scale | None = None) -> ShippedScales:
    """Return the shipped table with one row that is of another library."""
    scales = dict(SHIPPED.scales)
    scales[task] = scale or dataclasses.replace(scales[task], steps=STEPS)
    return ShippedScales("0.0.1", scales, {**SHIPPED.digests, task: digest})


def resolve(pool: WorkerPool, table: ShippedScales, *tasks: str) -> dict[str, Scale]:
    return asyncio.run(resolve_scales(pool, tasks or None, shipped=table))


def params_of(scale: Scale) -> list[Mapping[str, Any]]:
    return [step.params for step in scale.steps]


def test_the_shipped_rows_hold_for_the_library_they_were_made_from(
    pool: WorkerPool, logged: pytest.LogCaptureFixture
) -> None:
    assert resolve(pool, SHIPPED) == SHIPPED.scales
    assert logged.text == ""


def test_a_task_that_has_changed_is_tried_and_said(
    pool: WorkerPool, logged: pytest.LogCaptureFixture
) -> None:
    found = resolve(pool, with_digest("chain_sum", "of another version"))
    assert params_of(found["chain_sum"]) == params_of(SHIPPED.scales["chain_sum"])
    assert found["gcd"] is not None
    assert found["gcd"] == SHIPPED.scales["gcd"]
    assert "0.0.1; their levels are tried: chain_sum" in logged.text


def test_a_task_that_the_table_does_not_know_is_tried(pool: WorkerPool) -> None:
    digests = {t: d for t, d in SHIPPED.digests.items() if t != "gcd"}
    scales = {t: s for t, s in SHIPPED.scales.items() if t != "gcd"}
    found = resolve(pool, ShippedScales("0.0.1", scales, digests), "gcd", "acre")
    assert list(found) == ["gcd"]
    assert params_of(found["gcd"]) == params_of(SHIPPED.scales["gcd"])


def test_a_repaired_task_is_tried_with_its_repair(pool: WorkerPool) -> None:
    found = resolve(pool, with_digest("survo", "other"), "survo")
    assert params_of(found["survo"]) == params_of(SHIPPED.scales["survo"])


def test_a_level_that_hangs_is_skipped_and_said(
    pool: WorkerPool, logged: pytest.LogCaptureFixture
) -> None:
    effort = dataclasses.replace(AT_START, deadline_s=0.5, budget_s=2.0)
    table = with_digest("jugs", "other")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scale_probe, "rules_of", TaskRules)
        call = resolve_scales(pool, ["jugs"], shipped=table, effort=effort)
        scale = asyncio.run(call)["jugs"]
    assert 3 in [skip.level for skip in scale.skipped]
    assert "task jugs: level 3 is skipped" in logged.text
    assert "were not ready after" in logged.text


def test_the_digest_of_a_task_changes_with_its_curriculum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = library.curriculum_digest("ab")
    curriculum = library._load_factory().CURRICULA["ab"]

    class Longer(curriculum):
        def __init__(self) -> None:
            super().__init__()
            self.attributes["length"].levels = [10, 20, 30, 40]

    Longer.__module__ = curriculum.__module__
    monkeypatch.setitem(library._load_factory().CURRICULA, "ab", Longer)
    assert library.curriculum_digest("ab") != before


# -- the verdict on a probe ------------------------------------------------------------


TWENTY = ProbeEffort(
    num_items=20, max_items=60, deadline_s=20.0, budget_s=60.0, at_once=1
)


def tally(*, made: int, each_ms: float = 1.0, **lost: Any) -> ProbeTally:
    result = ProbeTally(made_ms=[each_ms] * made)
    result.hung = lost.pop("hung", 0)
    for kind, count in lost.items():
        getattr(result, kind)["said"] = count
    return result


@pytest.mark.parametrize(
    "usable",
    [
        tally(made=20),
        tally(made=19, hung=1),
        tally(made=15, lost=5),
        tally(made=2, refused=18),
        tally(made=20, faults=1),
        tally(made=20, each_ms=7_000.0),
    ],
)
def test_rare_trouble_leaves_a_level_usable(usable: ProbeTally) -> None:
    assert usable.reason_against(TWENTY) is None


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (tally(made=18, hung=2), "2 of 20 items were not ready after 20 s"),
        (tally(made=14, lost=6), "6 of 20 items cannot be made: said"),
        (tally(made=1, refused=19), "19 of 20 items are not asked: said"),
        (tally(made=20, faults=3), "3 of 20 items are wrong: said"),
        (tally(made=20, each_ms=9_000.0), "an item takes 9 s"),
    ],
)
def test_a_level_with_frequent_trouble_is_skipped_in_plain_words(
    trouble: ProbeTally, words: str
) -> None:
    assert trouble.reason_against(TWENTY) == words


@pytest.mark.parametrize(
    ("so_far", "is_enough"),
    [
        (tally(made=19), False),
        (tally(made=20), True),
        (tally(made=19, hung=1), False),
        (tally(made=59, hung=1), True),
        (tally(made=10, hung=4), True),
        (tally(made=0, hung=2), True),
    ],
)
def test_trouble_is_looked_into_with_more_items_unless_it_is_plain(
    so_far: ProbeTally, is_enough: bool
) -> None:
    assert so_far.needs_more(TWENTY) is not is_enough
