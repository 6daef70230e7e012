"""The stream of items that the workers make ahead."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import jobs_for_items
import pytest

from rg_env.items import item_source as items_module
from rg_env.items import worker_jobs
from rg_env.items.entry_maker import EntryMaker
from rg_env.items.item_source import ItemSource, NoItemsError
from rg_env.tasks.item_stream import ItemStream
from rg_env.tasks.recent_questions import RecentQuestions, digest
from rg_env.tasks.selection import TaskChoice

pytestmark = pytest.mark.processes

GOOD = TaskChoice("gcd")
BAD = TaskChoice("gcd", params={"min_numbers": -1})
"""The library refuses to build this dataset."""


WithSource = Callable[..., Any]
"""From some work on a source, and the choices of its stream, to the work's result."""


@pytest.fixture
def with_source(pool):
    def run(work, choices, *, at_once=1, lookahead=4):
        async def work_and_stop():
            stream = ItemStream(choices, 7)
            source = ItemSource(
                stream,
                EntryMaker(
                    pool,
                    stream.difficulty.expected_ms,
                    making_at_once=at_once,
                    deadline_s=30.0,
                ),
                lookahead=lookahead,
            )
            result = await work(source)
            source.cancel_ahead()
            return result

        return asyncio.run(work_and_stop())

    return run


async def indices(source, count=8):
    return [(await source.next_item()).handle.index for _ in range(count)]


@pytest.mark.parametrize(("at_once", "lookahead"), [(1, 1), (2, 12)])
def test_how_far_ahead_items_are_made_changes_none(with_source, at_once, lookahead):
    async def questions(source):
        return [(await source.next_item()).entry["question"] for _ in range(8)]

    made = with_source(questions, [GOOD], at_once=at_once, lookahead=lookahead)
    assert made == with_source(questions, [GOOD])


def test_a_draw_that_gives_no_entry_uses_up_its_index_and_is_counted(with_source):
    async def work(source):
        got = await indices(source)
        assert got == sorted(set(got))
        assert source.failures["gcd"] == source.position - len(got) > 0

    with_source(work, [GOOD, BAD])


def test_a_task_that_is_left_out_is_skipped_and_said(with_source, logged):
    async def work(source):
        source.maker.leave_out("lcm", "it is broken")
        tasks = {(await source.next_item()).handle.task for _ in range(8)}
        assert tasks == {"gcd"}

    with_source(work, [GOOD, TaskChoice("lcm")])
    assert "lcm is left out: it is broken" in logged.text


def test_a_source_that_can_make_nothing_says_so(with_source, monkeypatch):
    monkeypatch.setattr(items_module, "MAX_FAILURES_IN_A_ROW", 5)

    async def work(source):
        with pytest.raises(NoItemsError):
            await source.next_item()

    with_source(work, [BAD])


# -- late items ------------------------------------------------------------------------

SLOW = TaskChoice("lcm", params={"sleep_s": 3.0})


@pytest.fixture
def test_entries(monkeypatch):
    """Make the entries of `jobs_for_items` instead of the library's."""
    monkeypatch.setattr(worker_jobs, "make_entry", jobs_for_items.make_entry)


async def tasks_of(source, count):
    return [(await source.next_item()).handle.task for _ in range(count)]


@pytest.mark.usefixtures("test_entries")
def test_a_slow_task_does_not_hold_up_the_others(with_source):
    async def work(source):
        source.patience_s = 0.05
        assert await tasks_of(source, 6) == ["gcd"] * 6
        assert source.events["items_overtaken"] >= 1

    with_source(work, [GOOD, SLOW], at_once=3)


@pytest.mark.usefixtures("test_entries")
def test_an_item_that_was_overtaken_is_handed_out_when_it_is_ready(with_source):
    async def work(source):
        source.patience_s = 0.05
        got: list[str] = []
        while "lcm" not in got:
            got += await tasks_of(source, 1)
            await asyncio.sleep(0.05)
        assert "gcd" in got

    choices = [GOOD, TaskChoice("lcm", params={"sleep_s": 0.5})]
    with_source(work, choices, at_once=3)


@pytest.mark.usefixtures("test_entries")
def test_an_item_that_was_overtaken_waits_for_no_older_one_when_it_is_ready(
    with_source,
):
    seconds = {"quick": 0.3, "slow": 4.0, "other": 0.8}
    quick, slow = (
        TaskChoice("lcm", params={"sleep_s": seconds[name]})
        for name in ("quick", "slow")
    )
    other = TaskChoice("gcd", params={"sleep_s": seconds["other"]})

    async def work(source):
        source.load_state_dict(
            {
                "drawn": 3,
                "outstanding": [[place, place, None] for place in range(3)],
                "asked": RecentQuestions().state_dict(),
            }
        )
        source.patience_s = 0.05
        assert (await source.next_item()).handle.params == quick.params
        await asyncio.sleep(1.0)
        assert (await source.next_item()).handle.params == other.params

    with_source(work, [quick, slow, other], at_once=8, lookahead=3)


@pytest.mark.usefixtures("test_entries")
def test_without_a_run_the_order_is_kept_whatever_it_costs(with_source):
    choices = [GOOD, TaskChoice("lcm", params={"sleep_s": 0.2})]
    assert with_source(indices, choices, at_once=3) == list(range(8))


@pytest.mark.usefixtures("test_entries")
def test_no_item_is_overtaken_by_one_that_is_not_needed(with_source):
    async def work(source):
        source.patience_s = 0.05
        got = []
        for needed in range(8, 0, -1):
            source.needed = needed
            got.append((await source.next_item()).handle.index)
        assert sorted(got) == list(range(8))
        assert source.events["items_overtaken"] >= 1

    choices = [GOOD, TaskChoice("lcm", params={"sleep_s": 0.5})]
    with_source(work, choices, at_once=3)


# -- questions -------------------------------------------------------------------------


async def questions_of(source, count):
    return [(await source.next_item()).entry["question"] for _ in range(count)]


@pytest.mark.usefixtures("test_entries")
def test_a_question_of_the_evaluation_is_never_sampled(with_source):
    kept = {f"gcd {number}" for number in range(4)}

    async def work(source):
        source.keep_for_evaluation(kept)
        assert not kept & set(await questions_of(source, 20))
        assert source.events["evaluations_avoided"] > 0

    with_source(work, [TaskChoice("gcd", params={"space": 8})])


@pytest.mark.usefixtures("test_entries")
def test_a_question_is_not_repeated_while_the_task_has_others(with_source):
    async def work(source):
        assert len(set(await questions_of(source, 60))) >= 59
        assert source.events["repeats_avoided"] > 0

    with_source(work, [TaskChoice("gcd", params={"space": 500})])


@pytest.mark.usefixtures("test_entries")
def test_a_task_with_few_questions_repeats_them_and_it_is_counted(with_source):
    async def work(source):
        assert set(await questions_of(source, 20)) == {"gcd 0", "gcd 1"}
        assert source.events["repeats_sampled"] >= 18

    with_source(work, [TaskChoice("gcd", params={"space": 2})])


@pytest.mark.usefixtures("test_entries")
def test_an_entry_that_nobody_can_solve_is_replaced_at_the_same_index(with_source):
    async def work(source):
        made = [await source.next_item() for _ in range(12)]
        assert [item.handle.index for item in made] == list(range(12))
        assert all(item.handle.seed >= 2**29 for item in made)
        counted = source.events["items_unusable"]
        assert counted > 0
        assert source.unused == {("gcd", "its seed is too low"): counted}

    with_source(work, [TaskChoice("gcd", params={"unusable_below": 2**29})])


@pytest.mark.usefixtures("test_entries")
def test_a_task_all_of_whose_entries_are_faulty_is_passed_over_without_a_warning(
    with_source, logged
):
    async def work(source):
        assert await tasks_of(source, 12) == ["gcd"] * 12
        assert source.unused["lcm", "its seed is too low"] > 0
        assert not source.failures

    all_faulty = TaskChoice("lcm", params={"unusable_below": 2**32})
    with_source(work, [GOOD, all_faulty])
    assert "WARNING" not in {record.levelname for record in logged.records}


# -- resuming --------------------------------------------------------------------------


@pytest.mark.usefixtures("test_entries")
@pytest.mark.parametrize("lookaheads", [(1, 12), (12, 1)])
def test_a_resumed_stream_samples_what_would_have_come_repeats_avoided(
    with_source, lookaheads
):
    choices = [TaskChoice("gcd", params={"space": 40}), TaskChoice("lcm")]
    first, second = lookaheads
    whole = with_source(lambda s: questions_of(s, 40), choices)

    async def begin(source):
        sampled = await questions_of(source, 20)
        return sampled, json.dumps(source.state_dict())

    sampled, state = with_source(begin, choices, lookahead=first)

    async def resume(source):
        source.load_state_dict(json.loads(state))
        return await questions_of(source, 20)

    assert sampled + with_source(resume, choices, lookahead=second) == whole


@pytest.mark.usefixtures("test_entries")
@pytest.mark.parametrize(("lookahead", "space"), [(1, 3), (12, 40)])
def test_what_an_earlier_run_has_sampled_is_passed_over_and_the_rest_stays_the_same(
    with_source, lookahead, space
):
    async def made_of(source, count):
        made = [await source.next_item() for _ in range(count)]
        return {i.handle.index: (i.handle.seed, i.entry["question"]) for i in made}

    choices = [TaskChoice("gcd", params={"space": space}), TaskChoice("lcm")]
    whole = with_source(lambda s: made_of(s, 60), choices)
    missing = {3, 4, 20, 41, *range(50, 60)}

    async def rest(source):
        source._stream.sampled = {
            index: (question.split()[0], digest(question))
            for index, (_, question) in whole.items()
            if index not in missing
        }
        return await made_of(source, len(missing))

    again = with_source(rest, choices, lookahead=lookahead)
    assert again == {index: whole[index] for index in missing}


def test_failures_that_rows_stood_between_are_not_in_a_row(with_source, monkeypatch):
    monkeypatch.setattr(items_module, "MAX_FAILURES_IN_A_ROW", 2)

    async def work(source):
        source._stream.sampled = {i: ("lcm", i) for i in range(1, 40, 2)}
        assert source.is_catching_up
        with pytest.raises(NoItemsError):
            await source.next_item()
        assert source.position > 40 and not source.is_catching_up

    with_source(work, [BAD])


@pytest.mark.parametrize(
    "changes",
    [
        {"drawn": -1},
        {"drawn": "3"},
        {"outstanding": [[99, 0, None]]},
        {"outstanding": [[0, 5, None]]},
        {"outstanding": [[0, 0, 1.5]]},
        {"outstanding": [[0]]},
        {"asked": {"gcd": "?"}},
    ],
)
def test_a_state_of_another_form_is_refused_and_nothing_changes(with_source, changes):
    async def work(source):
        await indices(source, 2)
        before = source.state_dict()
        with pytest.raises(ValueError, match="items need"):
            source.load_state_dict(before | changes)
        assert source.state_dict() == before

    with_source(work, [GOOD])


@pytest.mark.usefixtures("test_entries")
def test_two_callers_at_once_get_different_items(with_source):
    async def work(source):
        made = await asyncio.gather(*(source.next_item() for _ in range(8)))
        assert sorted(item.handle.index for item in made) == list(range(8))

    with_source(work, [GOOD])


def test_one_line_sums_up_what_was_not_sampled_and_the_table_has_all(
    with_source, logged
):
    async def work(source):
        for _ in range(5):
            source._count_unused("aiw", "its answer is wrong")
        source._count_unused("aiw", "its answer depends")
        assert source.unused_table() == (
            ["task", "fault", "items"],
            [["aiw", "its answer depends", 1], ["aiw", "its answer is wrong", 5]],
        )

        assert source.unused_said() == (
            "6 items not sampled: aiw 5 (its answer is wrong), aiw 1 (its answer"
            " depends)"
        )

    with_source(work, [GOOD])
    assert "INFO" not in {record.levelname for record in logged.records}
