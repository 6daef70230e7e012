"""An outage is said once, its end too, and giving up comes in time."""

import asyncio

import pytest

from rg_env import patience
from rg_env.inference.inference import InferenceFailed
from rg_env.inference.outages import OutageWatch, kind_of
from tests.support.parts import NOWHERE, server_config

pytestmark = pytest.mark.slow


class Server:
    def __init__(self, healthy):
        self.server_healthy = healthy
        self.config = server_config()


async def watched(healthy, give_up_after_s, wait_s):
    watched = OutageWatch([Server(healthy)])
    watched.start(give_up_after_s=give_up_after_s)
    await asyncio.sleep(wait_s)
    await watched.stop()
    await watched.stop()
    return watched


def begun(logged):
    """Return the lines that say that an outage has begun."""
    return [line for line in logged.messages if "does not answer" in line]


def test_unhealthy_servers_are_named_once_and_given_up_in_time(logged):
    found = asyncio.run(watched(False, 0.5, 2.6))
    (line,) = begun(logged)
    assert found.gave_up.is_set() and NOWHERE in line


def test_without_a_bound_it_never_gives_up():
    assert not asyncio.run(watched(False, None, 1.2)).gave_up.is_set()


def test_healthy_servers_are_no_outage(logged):
    asyncio.run(watched(True, 0.1, 1.2))
    assert logged.messages == []


async def failing(watch, *reasons, answers=True):
    """Let requests fail, with or without an answer after each."""
    for reason in reasons:
        await watch.note_failure(reason)
        if answers:
            watch.note_answer()
    return watch


def test_an_answer_ends_an_outage(logged, monkeypatch):
    monkeypatch.setattr(patience, "OUTAGE_AFTER_S", 0.0)
    watch = asyncio.run(failing(OutageWatch([Server(True)]), "500", "500"))
    assert watch.failures == len(begun(logged)) == 2
    first, again = (line for line in logged.messages if "inference answers" in line)
    assert "answers after" in first and "answers again after" in again


def test_an_outage_is_one_line(logged, monkeypatch):
    monkeypatch.setattr(patience, "OUTAGE_AFTER_S", 0.0)
    kinds = ("500", "502", "503")
    asyncio.run(failing(OutageWatch([Server(True)]), *kinds, answers=False))
    assert len(begun(logged)) == 1


def test_a_failed_request_among_answered_ones_is_no_outage(logged):
    watch = asyncio.run(failing(OutageWatch([Server(True)]), *["500"] * 3))
    assert watch.failures == 3 and begun(logged) == []


def test_a_server_that_is_there_has_not_answered_yet(logged):
    watched = OutageWatch([Server(True)])
    watched.note_absence("nothing listens there")
    watched.note_presence()
    watched.note_absence("nothing listens there")
    watched.note_answer()
    assert [line.partition(" after ")[0] for line in logged.messages[1:]] == [
        "inference is there",
        "inference answers",
    ]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("ClientResponseError: 503, message='x', url='http://h:500/v1'", "status_503"),
        ("InternalServerError: Error code: 500 - {}", "status_500"),
        ("status 429: later", "status_429"),
        ("ServerDisconnectedError: Server disconnected", "ServerDisconnectedError"),
        ("KeyError: 'logprobs'", "KeyError"),
        ("1 of 4 usable completions (no token)", "unusable"),
        ("3 of 4 usable completions (finish_reason abort)", "finish_reason_abort"),
        ("BadReplyError: a reply without completions: no quota", "BadReplyError"),
    ],
)
def test_failed_requests_are_counted_by_their_kind(reason, kind):
    assert kind_of(reason) == kind


def test_giving_up_ends_a_request_that_never_returns():
    async def run():
        watched = OutageWatch([Server(True)])
        asking = asyncio.ensure_future(watched.unless_given_up(asyncio.sleep(3600)))
        await asyncio.sleep(0)
        watched.gave_up.set()
        await asking

    with pytest.raises(InferenceFailed):
        asyncio.run(run())
