"""Sends groups to the trainer, by its API.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop. A
long group is encoded, compressed and written off it; the API gets the same fields in
the same order.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env.atropos.api_client import ApiError, ApiSession
from rg_env.executor import in_thread
from rg_env.line_file import encode_groups
from rg_env.run.dumps import Dumps
from rg_env.run.group import Ending, Group, listed, rollouts_in

logger = logging.getLogger(__name__)

# So many are encoded and compressed in a millisecond, in place.
FEW_TOKENS = 8192

# A group that was spoiled on its way, or met a proxy, is accepted the next time.
SEND_TRIES_IF_REFUSED = 3

# Two minutes for a group at which an API fails that answers everything else.
SEND_TRIES_IF_FAULTY = 15

API_KEYS = frozenset(
    {
        *("tokens", "masks", "scores", "advantages", "ref_logprobs", "messages"),
        *("generation_params", "inference_logprobs", "overrides", "group_overrides"),
        *("images", "distill_token_ids", "distill_logprobs"),
    }
)
"""The fields of a group that the API keeps; rows for people carry more."""


def tokens_in(groups: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of tokens of groups."""
    return sum(len(row) for group in groups for row in group.get("tokens", ()))


class GroupSender:
    """The sink of groups for the trainer; dumps keep one that the API did not take."""

    def __init__(self, env: BaseEnv, session: ApiSession, dumps: Dumps) -> None:
        self._env = env
        self._session = session
        self._dumps = dumps
        # One request at a time, so that the status tells whether it has arrived.
        self._sending = asyncio.Lock()

    async def take(self, group: Group) -> None:
        """Have the hook send the group, which is for the trainer."""
        try:
            await self._env._send_scored_data_to_api(group.data)
        except asyncio.CancelledError:
            await self._keep_unsent(group, "the run ended")
            raise
        except ApiError as error:
            await self._keep_unsent(group, str(error))
            logger.error("a group was not sent: %s", error)
        else:
            group.end(Ending.SENT, rollouts_in(group.data))
        self._env.items_sent_this_step += len(listed(group.data))

    async def _keep_unsent(self, group: Group, reason: str) -> None:
        for part in listed(group.data):
            await self._dumps.keep_unsent(part, reason)
        group.end(Ending.UNSENT, rollouts_in(group.data))

    async def send(self, groups: Any) -> None:
        """Send a group, or several, as the API takes them.

        If the API is down or waits for its trainer, this waits. If the API works but
        fails for this group, the group is given up.

        Raises:
            ApiError: The API refused the group, or failed at it, again and again.
        """
        refusals = faults = 0

        def may_repeat(error: ApiError) -> bool:
            nonlocal refusals, faults
            refusals += error.is_refusal
            # Without a reply, it says nothing of the group.
            faults = faults + error.is_fault if error.has_reply else 0
            return refusals < SEND_TRIES_IF_REFUSED and faults < SEND_TRIES_IF_FAULTY

        await self._session.patiently(lambda: self._send_once(groups), may_repeat)

    async def _send_once(self, groups: Any) -> None:
        async with self._sending:
            await self._request(listed(groups))

    async def _request(self, groups: list[Any]) -> None:
        """Send groups.

        If the reply is lost, the API's queue tells whether they have arrived, unless
        the trainer has taken a batch meanwhile.

        If a restarted API gets a group before its trainer has registered, it ignores
        the trainer from then on.
        """
        session = self._session
        env_id = session.env_id
        payload: list[Mapping[str, Any]] = [
            {key: value for key, value in group.items() if key in API_KEYS}
            | {"env_id": env_id}
            for group in groups
        ]
        is_list = len(payload) > 1
        encode = functools.partial(
            encode_groups, payload if is_list else payload[0], is_far=session.is_far
        )
        if tokens_in(payload) <= FEW_TOKENS:
            body, headers = encode()
        else:
            body, headers = await in_thread(encode)
        try:
            # After the encoding: the API may restart meanwhile.
            await session.read_status()
        except ApiError as error:
            raise ApiError(f"the status: {error}") from error
        # The payload has the old number; the next try encodes it with the new one.
        if env_id != session.env_id:
            raise ApiError("registered anew while a group was on its way")
        arrived = session.queue(len(payload))
        status = session.status
        path = "/scored_data_list" if is_list else "/scored_data"
        try:
            await session.request("POST", path, body, headers)
            if session.status is status:
                session.note_sent(len(payload))
        except ApiError as error:
            # Its reply may be lost alone.
            is_known = not error.is_refusal and await session.renew_status()
            if not is_known or session.queue() != arrived:
                raise
