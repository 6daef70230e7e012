"""The items of a run, which workers make ahead."""

import asyncio
import json

import pytest

from rg_env.reward.score import ScoringRules
from rg_env.stream.draws import Stream
from rg_env.stream.prefetch import RunItems
from rg_env.stream.task_selection import StreamSettings, TaskChoice

pytestmark = pytest.mark.processes

GOOD = TaskChoice("gcd")
LCM = TaskChoice("lcm")
BAD = TaskChoice("gcd", params={"min_numbers": -1})
"""The library refuses to build this dataset."""


class Evaluation:
    """An evaluation without items, in which all tasks pass their checks."""

    def __init__(self):
        self.left_out = {}
        self.questions = set()

    async def ensure_checked(self, task):
        pass

    def stop(self):
        pass


@pytest.fixture
def with_items(pool):
    """Return a function that runs `work` on the items of a stream."""

    def run(work, choices, *, at_once=1, lookahead=4, checked=True):
        async def work_and_stop():
            settings = StreamSettings(
                seed=7,
                worker_count=at_once + 1,
                scoring_rules=ScoringRules(scorer_fixes=checked),
            )
            stream = Stream(choices, settings)
            items = RunItems(pool, None, stream, Evaluation(), lookahead)
            result = await work(items)
            items.stop()
            return result

        return asyncio.run(work_and_stop())

    return run


async def taken(items, count, attribute=None):
    """Return the next items, or an attribute of each."""
    got = [await items.next() for _ in range(count)]
    return [getattr(item, attribute) for item in got] if attribute else got


def test_a_draw_that_gives_no_entry_uses_up_its_index_and_is_counted(with_items):
    async def work(items):
        got = await taken(items, 8, "index")
        assert got == sorted(set(got))
        assert items._maker.failures["gcd"] == items.position - len(got) > 0

    with_items(work, [GOOD, BAD])


def test_an_entry_waits_for_the_check_of_its_task_which_may_leave_it_out(with_items):
    async def work(items):
        tried = asyncio.Event()

        async def until_checked(task):
            await tried.wait()
            if task == "lcm":
                items.evaluation.left_out[task] = "it is broken"

        items.evaluation.ensure_checked = until_checked
        first = asyncio.ensure_future(items.next())
        await asyncio.sleep(0.2)
        assert not first.done()
        tried.set()
        assert {(await first).task, *await taken(items, 8, "task")} == {"gcd"}

    with_items(work, [GOOD, LCM])


# -- late items ------------------------------------------------------------------------


def sleeping(task, seconds):
    return TaskChoice(task, params={"sleep_s": seconds})


@pytest.mark.usefixtures("odd_jobs")
def test_a_slow_task_does_not_hold_up_the_others_and_comes_when_it_is_ready(with_items):
    async def work(items):
        items.patience_s = 0.05
        assert await taken(items, 6, "task") == ["gcd"] * 6
        assert items.events["items_overtaken"] >= 1
        await asyncio.sleep(1.0)
        assert "lcm" in await taken(items, 2, "task")

    with_items(work, [GOOD, sleeping("lcm", 1.0)], at_once=3)


@pytest.mark.usefixtures("odd_jobs")
def test_no_item_is_overtaken_by_one_that_is_not_needed(with_items):
    async def work(items):
        items.patience_s = 0.05
        got = []
        for needed in range(8, 0, -1):
            items.needed = needed
            got += await taken(items, 1, "index")
        assert sorted(got) == list(range(8))
        assert items.events["items_overtaken"] >= 1

    with_items(work, [GOOD, sleeping("lcm", 0.5)], at_once=3)


# -- questions -------------------------------------------------------------------------


def few_questions(space):
    return TaskChoice("gcd", params={"space": space})


@pytest.mark.usefixtures("odd_jobs")
@pytest.mark.parametrize(("space", "event"), [(8, "avoided"), (4, "skipped")])
def test_a_question_of_the_evaluation_is_never_sampled(with_items, space, event):
    kept = {f"gcd {number}" for number in range(4)}

    async def work(items):
        items.evaluation.questions.update(kept)
        assert not kept & set(await taken(items, 20, "question"))
        assert items.events[f"evaluations_{event}"] > 0

    with_items(work, [few_questions(space), LCM])


@pytest.mark.usefixtures("odd_jobs")
def test_an_entry_that_nobody_can_solve_is_replaced_at_the_same_index(with_items):
    async def work(items):
        made = await taken(items, 12)
        assert [item.index for item in made] == list(range(12))
        assert all(item.seed >= 2**29 for item in made)
        assert items.events["items_unusable"] > 0

    faulty = TaskChoice("gcd", params={"unusable_below": 2**29})
    with_items(work, [faulty])
    unchecked = with_items(lambda items: taken(items, 12), [faulty], checked=False)
    assert min(item.seed for item in unchecked) < 2**29


# -- resuming --------------------------------------------------------------------------


@pytest.mark.usefixtures("odd_jobs")
@pytest.mark.parametrize("lookaheads", [(1, 12), (12, 1)])
def test_a_resumed_stream_samples_what_would_have_come(with_items, lookaheads):
    choices = [few_questions(40), LCM]
    first, second = lookaheads
    whole = with_items(lambda items: taken(items, 40, "question"), choices)

    async def begin(items):
        sampled = await taken(items, 20, "question")
        return sampled, json.dumps(items.state_dict())

    sampled, state = with_items(begin, choices, lookahead=first)

    async def resume(items):
        items.load_state_dict(json.loads(state))
        assert items.position == 20
        assert json.dumps(items.state_dict()) == state
        return await taken(items, 20, "question")

    assert sampled + with_items(resume, choices, lookahead=second) == whole


@pytest.mark.usefixtures("odd_jobs")
@pytest.mark.parametrize(("lookahead", "space"), [(1, 3), (12, 40)])
def test_what_an_earlier_run_has_sampled_is_passed_over_and_the_rest_stays_the_same(
    with_items, lookahead, space
):
    async def made(items, count):
        return {item.index: item for item in await taken(items, count)}

    choices = [few_questions(space), LCM]
    whole = with_items(lambda items: made(items, 60), choices)
    missing = {3, 4, 20, 41, *range(50, 60)}

    async def rest(items):
        items.sampled = whole.keys() - missing
        return await made(items, len(missing))

    again = with_items(rest, choices, lookahead=lookahead)
    assert again == {index: whole[index] for index in missing}


@pytest.mark.parametrize(
    "changes",
    [
        {"drawn": -1},
        {"outstanding": [[0, 5, None]]},
        {"outstanding": [[0, 0, 1.5]]},
        {"outstanding": [[0, 0]]},
    ],
)
def test_a_state_of_another_form_is_refused_and_nothing_changes(with_items, changes):
    async def work(items):
        await taken(items, 2, "index")
        before = items.state_dict()
        with pytest.raises(ValueError, match="not a state of items"):
            items.load_state_dict(before | changes)
        assert items.state_dict() == before

    with_items(work, [GOOD])
