"""The scale of every task, and what is tried where the library is another one."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import scale_probe, worker_jobs
from rg_env.items.scale_probe import AT_START, ProbeEffort, ProbeTally, resolve_scales
from rg_env.items.task_check import gold_fault
from rg_env.pool.pool_errors import JobFailed
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks import library
from rg_env.tasks.cube_unscrambling import unscramble
from rg_env.tasks.scale_repairs import (
    DEAD_KNOBS,
    NO_SCALE,
    REPAIRS,
    no_scale_reason,
)
from rg_env.tasks.scales import (
    TABLE,
    Scale,
    ShippedScales,
    SkippedLevel,
    Step,
    load_shipped,
    table_text,
)
from rg_env.tasks.solutions import solution

GUARD_S = 120.0
FAST_MS = 60.0
SEEDS = range(8)
"""The level shows in the first of them, but for tasks in which it moves a chance."""

SHIPPED = load_shipped()
LEVELS_OF_THE_LIBRARY = 556
STEPS = tuple(Step((n,), {"size_x": n}, 1.0) for n in range(3))
THREE_STEPS = Scale("some_task", STEPS)
FAST_TASKS = [
    task
    for task, scale in SHIPPED.scales.items()
    if not scale.is_dead and scale.steps[0].item_ms + scale.steps[-1].item_ms < FAST_MS
]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2, preload=worker_jobs.PRELOAD)
    yield pool
    pool.close()


def make(
    pool: WorkerPool, task: str, params: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    return pool.call(
        worker_jobs.make_entry, task, dict(params), seed, deadline_s=GUARD_S
    )


def library_levels(task: str) -> list[library.CurriculumLevel]:
    repair = REPAIRS.get(task)
    return library.curriculum_levels(task, repair.overrides if repair else None)


# -- a scale ---------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "number"), [(0.0, 0), (0.5, 1), (1.0, 2)])
@pytest.mark.parametrize("mix", [0.0, 0.999])
def test_a_level_that_is_a_step_gives_that_step(
    level: float, number: int, mix: float
) -> None:
    assert THREE_STEPS.step_at(level, mix) is STEPS[number]


def test_between_two_steps_the_upper_one_comes_as_often_as_the_fraction_says() -> None:
    mixes = [n / 1000 for n in range(1000)]
    uppers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[2] for mix in mixes)
    lowers = sum(THREE_STEPS.step_at(0.625, mix) is STEPS[1] for mix in mixes)
    assert (uppers, lowers) == (250, 750)


@pytest.mark.parametrize("level", [-0.1, 1.1, float("nan")])
def test_a_level_off_the_scale_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        THREE_STEPS.step_at(level, 0.0)


def test_a_scale_of_one_step_gives_it_at_every_level_and_is_dead() -> None:
    scale = Scale("some_task", STEPS[:1])
    assert all(scale.step_at(n / 10, 0.5) is STEPS[0] for n in range(11))
    assert scale.is_dead


def test_a_step_stands_where_its_level_gives_it() -> None:
    for number, step in enumerate(STEPS):
        assert THREE_STEPS.step_at(THREE_STEPS.level_of(number), 0.999) is step


# -- the shipped table -----------------------------------------------------------------


def test_a_table_that_was_written_is_read_as_it_was(tmp_path: Any) -> None:
    scale = Scale("a", STEPS, (SkippedLevel(3, 'it "hangs"'),), "näher", 0.5, True)
    table = ShippedScales("1.2.3", {"a": scale}, {"a": "f00"})
    path = tmp_path / "scales.json"
    path.write_text(table_text(table), encoding="utf-8")
    assert load_shipped(path) == table


def test_the_table_is_as_its_script_writes_it() -> None:
    assert table_text(SHIPPED) == TABLE.read_text(encoding="utf-8")


def test_the_table_is_of_the_installed_library() -> None:
    assert library.describe().version == SHIPPED.library_version


def test_every_task_has_a_scale_or_a_reason_why_not() -> None:
    tasks = {*library.describe().tasks, library.MIXTURE}
    assert SHIPPED.scales.keys() | NO_SCALE.keys() == tasks
    assert not SHIPPED.scales.keys() & NO_SCALE.keys()


def test_a_task_that_nobody_knows_has_no_scale_for_a_reason() -> None:
    assert "no curriculum" in no_scale_reason("of_a_later_version")


def test_every_level_of_the_library_is_a_step_or_is_skipped_for_a_reason() -> None:
    total = 0
    for task, scale in SHIPPED.scales.items():
        used = [level for step in scale.steps for level in step.levels]
        skipped = [skip.level for skip in scale.skipped]
        assert sorted(used + skipped) == list(range(len(library_levels(task)))), task
        assert used == sorted(used)
        assert all(skip.reason for skip in scale.skipped)
        total += len(used) + len(skipped)
    assert total == LEVELS_OF_THE_LIBRARY


@pytest.mark.parametrize("task", SHIPPED.scales)
def test_a_step_sets_what_the_library_says_of_its_levels(task: str) -> None:
    levels = library_levels(task)
    for step in SHIPPED.scales[task].steps:
        assert [levels[number].params for number in step.levels] == [step.params] * len(
            step.levels
        )
        assert {levels[number].refusal for number in step.levels} == {None}


@pytest.mark.parametrize("task", SHIPPED.scales)
def test_neighbouring_steps_differ_and_the_default_lies_where_nothing_is_set(
    task: str,
) -> None:
    scale = SHIPPED.scales[task]
    for lower, upper in zip(scale.steps, scale.steps[1:], strict=False):
        assert lower.params != upper.params
    if scale.default_level is None:
        assert all(step.params for step in scale.steps)
        assert "the default config is no point of the curriculum" in scale.note
    else:
        assert not scale.step_at(scale.default_level, 0.999).params


def test_the_digests_are_those_of_the_installed_library(pool: WorkerPool) -> None:
    digests = pool.call(worker_jobs.curriculum_digests, deadline_s=GUARD_S)
    assert digests == SHIPPED.digests


# -- items over the scale --------------------------------------------------------------


def ends(pool: WorkerPool, task: str, seed: int) -> tuple[str, str]:
    """Return the questions of a seed at both ends of a scale."""
    steps = SHIPPED.scales[task].steps
    low, high = (make(pool, task, steps[end].params, seed) for end in (0, -1))
    return low["question"], high["question"]


@pytest.mark.parametrize("task", FAST_TASKS)
def test_the_hardest_item_is_not_the_easiest(pool: WorkerPool, task: str) -> None:
    assert any(low != high for low, high in (ends(pool, task, s) for s in SEEDS))


def test_most_tasks_are_fast_enough_to_be_compared() -> None:
    assert len(FAST_TASKS) > 80


@pytest.mark.parametrize("task", DEAD_KNOBS)
def test_the_items_of_a_dead_knob_are_the_same_at_both_ends(
    pool: WorkerPool, task: str
) -> None:
    assert SHIPPED.scales[task].is_dead
    assert DEAD_KNOBS[task] in SHIPPED.scales[task].note
    assert all(low == high for low, high in (ends(pool, task, s) for s in SEEDS))


@pytest.mark.processes
@pytest.mark.parametrize("task", ["codeio", "rearc", "spell_backward"])
def test_an_item_does_not_depend_on_the_level_its_worker_made_before(task: str) -> None:
    steps = SHIPPED.scales[task].steps
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    try:
        low, high, low_again = (
            make(pool, task, steps[n].params, 3) for n in (0, -1, 0)
        )
    finally:
        pool.close()
    assert low_again == low
    assert low["question"] != high["question"]


# -- repaired levels -------------------------------------------------------------------


@pytest.mark.parametrize("task", ["caesar_cipher", "knight_swap", "survo"])
def test_the_library_refuses_the_levels_that_are_repaired(task: str) -> None:
    plain = library.curriculum_levels(task)
    refused = {n for n, level in enumerate(plain) if level.refusal is not None}
    assert refused == set(REPAIRS[task].overrides)


@pytest.mark.parametrize("task", REPAIRS)
def test_a_repaired_level_is_on_the_scale_and_its_gold_answers_are_right(
    pool: WorkerPool, task: str
) -> None:
    scale = SHIPPED.scales[task]
    assert REPAIRS[task].reason in scale.note
    assert not scale.skipped
    for step in scale.steps:
        if set(step.levels) & set(REPAIRS[task].overrides):
            entry = make(pool, task, step.params, 5)
            if solution(task, entry):
                judged = gold_fault(pool, task, step.params, entry, ScoringRules())
                assert asyncio.run(judged) is None


def test_a_grid_that_is_filled_with_the_commoner_sign_is_seldom_right(
    pool: WorkerPool,
) -> None:
    for step in SHIPPED.scales["modulo_grid"].steps:
        paid = 0
        for seed in range(30):
            entry = make(pool, "modulo_grid", step.params, seed)
            grid = entry["question"].partition("\n\n")[2]
            common = max("✅❌", key=grid.count)
            paid += grid.replace("❔", common) == entry["answer"]
        assert paid <= 8


@pytest.mark.parametrize("number", range(4))
def test_a_scrambled_cube_of_every_size_is_solved_by_its_way_back(
    pool: WorkerPool, number: int
) -> None:
    step = SHIPPED.scales["rubiks_cube"].steps[number]
    for seed in range(5):
        entry = make(pool, "rubiks_cube", step.params, seed)
        answer = unscramble(entry["metadata"]["scramble_moves"])
        assert answer
        call = (
            worker_jobs.score_answers,
            "rubiks_cube",
            dict(step.params),
            entry,
            [answer],
        )
        assert pool.call(*call, deadline_s=GUARD_S)[0].value == 1.0


def test_a_way_back_needs_no_move_that_begins_with_a_number() -> None:
    assert unscramble("R 2U' Lw 1Fw'") == "F Lw' Uw U' R'"
    assert unscramble("R 3U") is None
    assert unscramble("R X") is None


# -- entries that cannot be asked ------------------------------------------------------


def test_an_entry_whose_answer_is_wrong_is_refused_by_name(pool: WorkerPool) -> None:
    with pytest.raises(JobFailed, match="jugs: the library's answer") as caught:
        make(pool, "jugs", {"num_jugs": 4}, 31)
    assert caught.value.kind == "UnusableEntry"


def test_an_entry_that_holds_an_address_is_refused_since_each_process_has_another(
    pool: WorkerPool,
) -> None:
    with pytest.raises(JobFailed, match="codeio: the library's answer") as caught:
        make(pool, "codeio", {"difficulty": 7}, 2101905293)
    assert caught.value.kind == "UnusableEntry"


def test_an_entry_whose_answer_is_longer_than_an_answer_may_be_is_refused() -> None:
    assert ScoringRules().max_answer_chars == library.MAX_GOLD_CHARS
    hanoi = {"min_disks": 12, "max_disks": 12, "min_pegs": 3, "max_pegs": 3}
    with pytest.raises(library.UnusableEntry, match="20000 characters"):
        library.make_entry("tower_of_hanoi", hanoi, 1)


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
    unrepaired = {"jugs": dataclasses.replace(REPAIRS["jugs"], overrides={})}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scale_probe, "REPAIRS", unrepaired)
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
