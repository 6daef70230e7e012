"""The loop with parts that answer, lose, refuse, hang and are cancelled."""

import asyncio
import dataclasses

import pytest

from rg_env.run import group_loop
from rg_env.run.group import Group, Rollout
from rg_env.run.group_loop import Lost, Refused, Run, RunStoppedError, Window
from rg_env.run.ledger import Ending
from rg_env.stream.group_scorer import ScoringUnavailableError

SIZE = 4
PARTS = ("model", "reward", "sink", "last")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(group_loop, "ERROR_PAUSE_S", 0.001)


@dataclasses.dataclass
class Part:
    """A source of `items`, and a model, a reward and a sink that follow a script.

    `does` lists what happens at each call, the last entry at all further calls: None
    does the work, an error is raised, "hang" waits for ever.
    """

    does: list = dataclasses.field(default_factory=lambda: [None])
    items: list = dataclasses.field(default_factory=list)
    taken: list = dataclasses.field(default_factory=list)

    async def _work(self):
        now = self.does.pop(0) if len(self.does) > 1 else self.does[0]
        if now == "hang":
            await asyncio.Event().wait()
        if now is not None:
            raise now

    async def next(self):
        return self.items.pop(0) if self.items else None

    async def complete(self, group):
        group.query(SIZE)
        await self._work()
        group.completions = [{}] * SIZE

    async def score(self, group):
        await self._work()
        group.rollouts = [Rollout()] * SIZE

    async def take(self, group):
        await self._work()
        self.taken.append(group.item)


class Last(Part):
    """The sink whose groups are sent."""

    async def take(self, group):
        await super().take(group)
        group.end(Ending.SENT)


def run_of(items=("a",), model=None, reward=None, sink=None, last=None, **how):
    """Return a run and its last sink; a part does its work unless it is told otherwise.

    `model` is a list of what the model does at each call, or a single entry.
    """
    last = Last([last])
    does = model if isinstance(model, list) else [model]
    sinks = [Part([sink]).take, last.take]
    next_item = Part(items=list(items)).next
    run = Run(next_item, Part(does).complete, Part([reward]).score, sinks, **how)
    return run, last


async def worked_through(run):
    while (group := await run.next_group()) is not None:
        await run.work_on(group)


def outcomes(run):
    assert run.ledger.in_flight == 0
    return dict(run.ledger.endings)


LOST = Lost(Ending.UNANSWERED, "no server")
REFUSED = Refused(Ending.ZERO_VARIANCE)
BROKEN = ScoringUnavailableError("no worker")


def test_a_group_passes_every_part_in_order_and_its_rollouts_end():
    run, last = run_of("ab")
    asyncio.run(worked_through(run))
    assert last.taken == ["a", "b"]
    assert outcomes(run) == {"sent": 2 * SIZE}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (LOST, "unanswered"),
        (BROKEN, "unscored"),
        (KeyError("x"), "failed"),
        (TimeoutError(), "failed"),
    ],
)
def test_what_a_part_loses_is_counted_and_its_item_is_sampled_again(
    part, error, ending
):
    run, last = run_of("ab", **{part: error})
    asyncio.run(worked_through(run))
    assert last.taken == []
    assert outcomes(run) == {ending: 2 * group_loop.ITEM_TRIES * SIZE}


@pytest.mark.parametrize("part", PARTS)
def test_what_a_part_refuses_is_counted_and_is_not_sampled_again(part):
    run, last = run_of("ab", **{part: REFUSED})
    asyncio.run(worked_through(run))
    assert last.taken == run.backlog == []
    assert outcomes(run) == {"zero_variance": 2 * SIZE}


def test_a_group_that_no_sink_ends_is_discarded():
    run, _ = run_of("a")
    run.sinks = []
    asyncio.run(worked_through(run))
    assert outcomes(run) == {"discarded": SIZE}


def test_an_item_that_is_lost_once_is_sampled_before_new_ones():
    run, last = run_of("ab", model=[LOST, None])
    asyncio.run(worked_through(run))
    assert last.taken == ["a", "b"]
    assert outcomes(run) == {"unanswered": SIZE, "sent": 2 * SIZE}


def test_what_is_not_the_fault_of_an_item_costs_it_no_try():
    outage = Lost(Ending.UNANSWERED, is_items_fault=False)
    run, last = run_of("a", model=[outage] * 9 + [None], max_tries=1)
    asyncio.run(worked_through(run))
    assert last.taken == ["a"]


def test_who_is_told_of_a_group_that_is_given_up_gets_it_with_the_reason():
    given_up = []

    async def told(group, why):
        given_up.append((group.item, str(why)))

    run, _ = run_of("ab", model=LOST, max_tries=2, on_given_up=told)
    asyncio.run(worked_through(run))
    assert given_up == [("a", "no server"), ("b", "no server")]


@pytest.mark.parametrize("part", ["model", "reward"])
def test_a_group_without_scores_in_time_is_lost(part):
    run, _ = run_of("a", **{part: "hang"}, max_tries=1, score_within_s=0.01)
    asyncio.run(worked_through(run))
    assert outcomes(run) == {"failed": SIZE}


def test_an_error_behind_the_last_ending_loses_nothing():
    run, last = run_of("a")
    run.sinks = [last.take, Part([KeyError("x")]).take]
    asyncio.run(worked_through(run))
    assert outcomes(run) == {"sent": SIZE} and run.backlog == []
    assert run.events["errors"] == 1


def test_a_part_that_cannot_go_on_ends_the_run():
    run, _ = run_of("a", last=RunStoppedError("disk full"))
    with pytest.raises(RunStoppedError):
        asyncio.run(worked_through(run))
    assert outcomes(run) == {"failed": SIZE}


def test_errors_are_logged_now_and_then_with_their_traceback(logged):
    run, _ = run_of("a", model=KeyError("x"))
    asyncio.run(worked_through(run))
    said = [record for record in logged.records if "a group failed" in record.message]
    assert len(said) == 3 and all(record.exc_info for record in said)  # 1, 2, 4
    assert "is given up after 5 tries" in logged.text


@pytest.mark.parametrize(
    ("part", "does", "ending"),
    [
        *((part, "hang", "cancelled") for part in PARTS),
        ("model", KeyError("x"), "failed"),  # the cancel comes in the pause
    ],
)
def test_a_group_that_is_cancelled_ends_and_its_item_is_sampled_again(
    part, does, ending, monkeypatch
):
    monkeypatch.setattr(group_loop, "ERROR_PAUSE_S", 60.0)
    run, _ = run_of("a", **{part: does})

    async def cancelled():
        work = asyncio.create_task(run.work_on(await run.next_group()))
        await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()

    asyncio.run(cancelled())
    assert outcomes(run) == {ending: SIZE}
    assert [group.item for group in run.backlog] == ["a"]


def test_a_group_keeps_what_its_source_knows_of_it_when_it_is_tried_again():
    group = Group("a", first_index=3, source_info="index")
    group.rollouts = [Rollout()]
    group.data = {}
    again = group.next_try()
    assert (again.item, again.first_index, again.source_info) == ("a", 3, "index")
    assert (again.rollouts, again.data) == ((), None)


# -- the in-flight window --------------------------------------------------------------


def test_the_window_is_full_and_never_more_than_full():
    run, last = run_of("abcdefg")
    window = Window()
    most = 0

    async def work(group):
        nonlocal most
        most = max(most, len(window.workers))
        await asyncio.sleep(0.005)
        await run.work_on(group)

    asyncio.run(window.run(run, work, lambda: len(window.workers) < 3))
    assert most == 3 and sorted(last.taken) == list("abcdefg")


def test_an_error_of_some_work_ends_the_rest_and_is_raised():
    run, _ = run_of("ab")
    window = Window()

    async def work(group):
        if group.item == "a":
            raise ZeroDivisionError
        await asyncio.Event().wait()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(window.run(run, work, lambda: True))
    assert window.workers == set()
