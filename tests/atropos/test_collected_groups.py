"""A group of one item: collected, or counted by its outcome."""

import asyncio
from types import SimpleNamespace

import pytest

from rg_env import patience
from rg_env.atropos.group import Group
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.inference.request_failures import RequestFailedError, refusal
from rg_env.inference.servers import Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.reports.metrics import Metrics
from rg_env.rollouts.ledger import Ledger

ITEM = ("messages", "entry", "dataset")
SIZE = 4


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    for name in ("ERROR_PAUSE_S", "OUTAGE_FIRST_PAUSE_S", "OUTAGE_LONGEST_PAUSE_S"):
        monkeypatch.setattr(patience, name, 0.001)


FAILED = RequestFailedError(refusal(500, "overloaded"))


class Requests:
    """Queries nobody."""

    def __init__(self, reply):
        self._reply = reply

    async def query(self, group, on_replies):
        group.rollouts = await self._reply(group.item)
        on_replies()


def groups_in_flight(query, score=None):
    """Return groups in flight without an environment, and their ledger and metrics."""
    env = SimpleNamespace(config=SimpleNamespace(group_size=SIZE), score=score)
    ledger = Ledger()
    metrics, watch = Metrics(ledger), Servers([object()])
    groups = GroupsInFlight(env, ledger, Requests(query), watch, metrics)
    return groups, ledger, metrics


def collected(query, score=None):
    """Return the group and items to sample again, the outcomes and the events."""

    async def run():
        groups, ledger, metrics = groups_in_flight(query, score)
        found = await groups.sample(ITEM)
        return found, dict(ledger.outcomes), metrics.events

    return asyncio.run(run())


async def answered(item):
    return [{"item": item}] * SIZE


def raising(error):
    async def query(item):
        raise error

    return query


def scoring(*results):
    """Return a hook that gives these results in turn; errors are raised."""
    left = list(results)

    async def score(rollouts):
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    return score


def test_a_group_that_has_variance_is_on_its_way_and_has_no_outcome_yet():
    found, outcomes, _ = collected(answered, scoring({"tokens": []}))
    (group, again) = found
    assert (group["tokens"], again, outcomes) == ([], [], {})


def test_a_group_without_variance_ends():
    found, outcomes, _ = collected(answered, scoring(None))
    assert found == (None, []) and outcomes == {"zero_variance": SIZE}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(FAILED, "unanswered"), (KeyError("x"), "failed")],
)
def test_a_group_that_was_not_answered_ends_and_its_item_is_sampled_again(
    error, outcome
):
    found, outcomes, _ = collected(raising(error))
    assert found == (None, [ITEM]) and outcomes == {outcome: SIZE}


def test_an_item_that_was_lost_too_often_is_not_sampled_again():
    async def run():
        groups, ledger, _ = groups_in_flight(raising(FAILED))
        groups._env.collect_trajectories = groups.sample
        groups.backlog.append(ITEM)
        while groups.backlog:
            assert not await groups.collect(await groups.next_group())
        return dict(ledger.outcomes)

    assert asyncio.run(run()) == {"unanswered": patience.ITEM_TRIES * SIZE}


def test_a_broken_pool_gets_another_try():
    broken = ScoringUnavailableError("no worker")
    found, _, events = collected(answered, scoring(broken, {"tokens": []}))
    assert found[0] is not None and events["scoring_retries"] == 1


def test_a_pool_that_stays_broken_gives_no_zeros():
    broken = [ScoringUnavailableError("no worker")] * patience.SCORING_TRIES
    found, outcomes, _ = collected(answered, scoring(*broken))
    assert found == (None, [ITEM]) and outcomes == {"unscored": SIZE}


def test_errors_are_logged_with_their_traceback_ever_more_seldom(logged):
    async def run():
        groups, _, metrics = groups_in_flight(raising(KeyError("x")))
        for _ in range(9):
            await groups.sample(ITEM)
        return metrics.events["errors"]

    assert asyncio.run(run()) == 9
    said = [record for record in logged.records if "a group failed" in record.message]
    assert len(said) == 4  # 1, 2, 4, 8
    assert all(record.exc_info for record in said)


def test_a_group_frees_its_place_with_its_replies_though_a_task_of_a_hook_queries():
    async def run():
        groups, _, _ = groups_in_flight(answered, hangs)

        async def in_a_task(item):
            return await asyncio.create_task(groups.sample(item))

        groups._env.collect_trajectories = in_a_task
        groups.start(Group(ITEM), groups.work_on)
        places = [len(groups.querying)]
        await asyncio.wait_for(groups.freed.wait(), 60)
        places.append(len(groups.querying))
        (worker,) = groups.workers
        worker.cancel()
        await asyncio.wait([worker])
        return places, [group.item for group in groups.backlog]

    assert asyncio.run(run()) == ([1, 0], [ITEM])


@pytest.mark.parametrize(("every_s", "is_said"), [(0.0, True), (3600.0, False)])
def test_a_summary_is_logged_after_a_group_once_in_a_while(
    every_s, is_said, monkeypatch, logged
):
    every = "rg_env.atropos.groups_in_flight.SUMMARY_EVERY_S"
    monkeypatch.setattr(every, every_s)

    async def run():
        groups, _, _ = groups_in_flight(answered, scoring(None))
        env = groups._env
        env.collect_trajectories, env.cleanup = groups.sample, no_cleanup
        for name in ("task_duration", "task_successful", "failed_task_duration"):
            setattr(env, name, [])
        groups.start(Group(ITEM), groups.work_on)
        await asyncio.gather(*groups.workers)

    asyncio.run(run())
    assert (f"{SIZE} rollouts queried" in logged.text) is is_said


async def no_cleanup():
    pass


async def hangs(item):
    await asyncio.Event().wait()


@pytest.mark.parametrize("where", ["querying", "pausing"])
def test_a_cancel_is_counted_and_passes(where, monkeypatch):
    monkeypatch.setattr(patience, "OUTAGE_FIRST_PAUSE_S", 60.0)
    monkeypatch.setattr(patience, "OUTAGE_LONGEST_PAUSE_S", 60.0)
    query = hangs if where == "querying" else raising(FAILED)

    async def run():
        groups, ledger, _ = groups_in_flight(query)
        task = asyncio.ensure_future(groups.sample(ITEM))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return dict(ledger.outcomes)

    assert asyncio.run(run()) == {"cancelled": SIZE}
