"""Registrations that hold up batches, of which those of dead processes are ended.

An environment stays registered at the API until it reports its end, which a killed
process cannot do. If it had a minimum allocation, the API makes no more batches, and it
tells nobody who is alive. Therefore every environment looks at the API's numbers now
and then (`LOOK_EVERY_S`, P below) while a batch is held up: no step passes although
what waits would fill the part of a batch that is allotted to nobody.

    without a group there, at the second look      it registers again
    sees another one without, at `LOOKS` looks     it ends that registration
    had no look for more than 1.5 P                it registers again

While no step passes, no group leaves the queue. A registration that is ended had no
group for 3 P; a living owner has renewed it meanwhile, or has missed a look and renews
it at its next one. So one that lives is never ended for good, and it loses no group.

The weight of a registration says that it is of this program: the product of weight and
length, which decides shares, ends in a mark. Others do not renew theirs, so they are
named only. The rest of the mark is random, so that a number which a restarted API gave
to somebody else is not taken for ours.

Mends B26 of docs/host_defects.md: what was killed stays registered for ever.
"""

from __future__ import annotations

import collections
import itertools
import logging
import random
import time
from typing import TYPE_CHECKING

from rg_env import patience
from rg_env.atropos.api_client import ApiFaultError

if TYPE_CHECKING:
    from rg_env.atropos.api_session import ApiSession

logger = logging.getLogger(__name__)

UNIT = 1e-3
"""Products are rounded to it, and the mark is a part of it."""
MARK, MARK_WIDTH = 0.37, 0.02
ROUNDING = 1e-5

SMALLEST_WEIGHT = 0.01
"""The API raises smaller shares to this one, which therefore tells nothing."""

SMALLEST_SHARE = 1e-9
"""A share below is the rounding of others."""

_now = time.time
"""Not the monotonic clock, which stands still while a machine is suspended."""


def marked(product: float) -> float:
    """Return nearly the same product of weight and length, with a mark of its own."""
    return (round(product / UNIT) + MARK + MARK_WIDTH * random.random()) * UNIT


def is_marked(product: float) -> bool:
    """Say whether a product is one that `marked` has returned."""
    return -ROUNDING < product / UNIT % 1 - MARK < MARK_WIDTH + ROUNDING


def is_same(product: float, other: float) -> bool:
    """Say whether two products are of one registration."""
    return abs(product - other) < UNIT * ROUNDING


class Registrations:
    """What this environment has seen of registrations while a batch was held up.

    Args:
        session: This environment, as the API knows it.
        events: Counts batches that environments of other programs hold up.
    """

    def __init__(self, session: ApiSession, events: collections.Counter[str]) -> None:
        self._session = session
        self._events = events
        self._said_of = -1
        self._begin()

    def _begin(self) -> None:
        self._env_id, self._step = self._session.env_id, -1
        self._looks: collections.Counter[int] = collections.Counter()
        self._looked_s = _now()

    async def may_be_ended(self, batch_size: int, own_share: float) -> bool:
        """Look, if it is time to; end those of dead processes that hold up a batch.

        Args:
            batch_size: The trainer's, in rollouts.
            own_share: Our own minimum allocation, 0 without.

        Returns:
            Whether others may end our registration, or have: it has to be renewed.

        Raises:
            ApiDownError, ApiRefusedError: The API does not say what it needs.
        """
        session = self._session
        if session.env_id != self._env_id:
            self._begin()
        passed_s = _now() - self._looked_s
        if 0 <= passed_s < patience.LOOK_EVERY_S:
            return False
        status = session.status
        queue = await session.client.request("GET", "/status", needs=("queue_size",))
        allotted = 1.0 - status["unallocated_fraction"]
        # A sole environment may send so much, whatever the minima of others.
        enough = batch_size * status["unallocated_fraction"]
        waiting = queue["queue_size"]
        is_same_step = status["current_step"] == self._step
        is_held_up = (
            allotted > SMALLEST_SHARE
            and waiting > 0
            and (waiting + 1) * status["max_group_size"] >= enough
        )
        if is_same_step and is_held_up and allotted - own_share > SMALLEST_SHARE:
            await self._look_at_others(waiting)
        else:
            self._looks.clear()
        self._step = status["current_step"]
        self._looked_s = _now()
        was_away = not 0 <= passed_s <= 1.5 * patience.LOOK_EVERY_S
        is_without = is_same_step and is_held_up and status["self_queue_size"] == 0
        return was_away or is_without

    async def _look_at_others(self, waiting: int) -> None:
        session, without = self._session, {}
        for env_id in itertools.count():
            try:
                its = await session.status_of(env_id)
            except ApiFaultError:  # as it answers for one that was never there
                break
            if env_id != session.env_id and its["self_queue_size"] == 0:
                without[env_id] = session.product_in(its)
        self._looks = collections.Counter({k: self._looks[k] + 1 for k in without})
        due = [k for k in without if self._looks[k] >= patience.LOOKS]
        ours = [k for k in due if is_marked(without[k] or 0.0)]
        for env_id in ours:
            await session.end(env_id)
        if ours:
            logger.warning(
                "ended the registrations of environments that were killed or hang, and"
                " held up batches: %s",
                ", ".join(map(str, ours)),
            )
        elif due and self._said_of != self._step:
            self._said_of = self._step
            self._events["batches_held_up"] += 1
            self._say(waiting, due)

    def _say(self, waiting: int, due: list[int]) -> None:
        logger.warning(
            "the API makes no batch of the %d groups that are waiting, because at least"
            " one of the environments without a group there (%s) has a minimum"
            " allocation; end the registrations of those that were killed:"
            " for i in %s; do curl -X POST %s/disconnect-env -H"
            ' \'Content-Type: application/json\' -d "{\\"env_id\\": $i}"; done',
            waiting,
            ", ".join(map(str, due)),
            " ".join(map(str, due)),
            self._session.client.name,
        )
