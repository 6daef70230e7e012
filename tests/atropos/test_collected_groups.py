"""A group of one item: collected, or why there is none, as a returned value."""

import asyncio

import pytest

from rg_env import patience
from rg_env.atropos.groups_in_flight import Collected, GroupsInFlight
from rg_env.inference.inference import InferenceFailed
from rg_env.inference.outages import OutageWatch
from rg_env.items.group_scorer import ScoringUnavailable
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ending, Ledger

ITEM = ("messages", "entry", "dataset")
SIZE = 4


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    for name in ("ERROR_PAUSE_S", "OUTAGE_FIRST_PAUSE_S", "OUTAGE_LONGEST_PAUSE_S"):
        monkeypatch.setattr(patience, name, 0.001)


class Requests:
    """Asks nobody."""

    def __init__(self, ask):
        self.ask = ask

    async def for_training(self, item, note_answered):
        return await self.ask(item)


def groups_in_flight(ask, metrics=None):
    ledger = Ledger()
    watch = OutageWatch([object()])
    counted = metrics or Metrics(ledger)
    return GroupsInFlight(None, ledger, Requests(ask), watch, counted)


def collected(ask, score=None, again=lambda item: [item]):
    """Return what is collected, and the metrics."""
    metrics = Metrics(Ledger())

    async def run():
        groups = groups_in_flight(ask, metrics)
        groups.again = again
        return await groups.collect(ITEM, SIZE, score)

    return asyncio.run(run()), metrics


async def answered(item):
    return [{"item": item}] * SIZE


def raising(error):
    async def ask(item):
        raise error

    return ask


def scoring(*results):
    """Return a hook that gives these results in turn; errors are raised."""
    left = list(results)

    async def score(rollouts):
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    return score


def test_a_group_with_a_signal_is_on_its_way_and_has_no_ending():
    found, _ = collected(answered, scoring({"tokens": []}))
    assert found == Collected({"tokens": []})


def test_a_group_without_a_signal_ends():
    found, _ = collected(answered, scoring(None))
    assert found == Collected(endings=[Ending("zero_variance", SIZE)])


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(InferenceFailed("500"), "unanswered"), (KeyError("x"), "failed")],
)
def test_a_group_that_was_not_answered_ends_and_its_item_is_asked_again(error, outcome):
    found, _ = collected(raising(error))
    assert found == Collected(endings=[Ending(outcome, SIZE)], again=[ITEM])


def test_an_item_that_was_lost_too_often_is_not_asked_again():
    found, _ = collected(raising(InferenceFailed("500")), again=lambda item: [])
    assert found.again == []


def test_a_broken_pool_gets_another_try():
    broken = ScoringUnavailable("no worker")
    found, metrics = collected(answered, scoring(broken, {"tokens": []}))
    assert found.group == {"tokens": []} and metrics.events["scoring_retries"] == 1


def test_a_pool_that_stays_broken_gives_no_zeros():
    broken = [ScoringUnavailable("no worker")] * patience.SCORING_TRIES
    found, _ = collected(answered, scoring(*broken))
    assert found.group is None and found.endings == [Ending("unscored", SIZE)]


def test_errors_are_logged_with_their_traceback_ever_more_seldom(logged):
    metrics = Metrics(Ledger())

    async def run():
        groups = groups_in_flight(raising(KeyError("x")), metrics)
        for _ in range(9):
            await groups.collect(ITEM, SIZE, None)

    asyncio.run(run())
    said = [record for record in logged.records if "a group failed" in record.message]
    assert metrics.events["errors"] == 9 and len(said) == 4  # 1, 2, 4, 8
    assert all(record.exc_info for record in said)


async def hangs(item):
    await asyncio.Event().wait()


@pytest.mark.parametrize("where", ["asking", "pausing"])
def test_a_cancel_is_returned_with_the_ending_so_that_it_can_be_counted(
    where, monkeypatch
):
    monkeypatch.setattr(patience, "OUTAGE_FIRST_PAUSE_S", 60.0)
    monkeypatch.setattr(patience, "OUTAGE_LONGEST_PAUSE_S", 60.0)
    ask = hangs if where == "asking" else raising(InferenceFailed("500"))

    async def run():
        groups = groups_in_flight(ask)
        task = asyncio.ensure_future(groups.collect(ITEM, SIZE, None))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    found = asyncio.run(run())
    assert found.endings == [Ending("cancelled", SIZE)]
    assert isinstance(found.cancelled, asyncio.CancelledError)
