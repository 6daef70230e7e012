"""The delivery of groups: checks, rows for W&B and files, and sending to the API.

Mends B7, B8 and B9 of docs/host_defects.md: `group_overrides: None` loses the group, an
error in the rows for W&B does too, and JSON and gzip at level 9 hold up the event loop.
Counting, encoding, compressing and writing a long group is done off it; the API gets
the same fields in the same order.

Source: atroposlib 0.4.0, BaseEnv.handle_send_to_api(); differs: the above, rows for W&B
are made after the send, a limit of length that the trainer does not set is said once,
not for every group.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env.atropos.api import ApiError, ApiSession
from rg_env.atropos.pipeline import RowRefusedError
from rg_env.atropos.result_files import RowWriter
from rg_env.atropos.rollout_requests import PROMPT_MASK
from rg_env.logs import is_worth_a_line
from rg_env.off_loop import off_loop, release_gil
from rg_env.rollouts.dumps import Dumps
from rg_env.rollouts.group import Ending, Group, listed, rollouts_in
from rg_env.rollouts.json_encoding import encode_groups

logger = logging.getLogger(__name__)

FEW_TOKENS = 8192
"""So many are counted, encoded and compressed in a millisecond, in place."""

SEND_TRIES_IF_REFUSED = 3
"""A group that was spoiled on its way, or met a proxy, is accepted the next time."""

SEND_GIVE_UP_AFTER_S = 120.0
"""For a group at which an API fails that answers everything else."""

API_KEYS = frozenset(
    {
        *("tokens", "masks", "scores", "advantages", "ref_logprobs", "messages"),
        *("generation_params", "inference_logprobs", "overrides", "group_overrides"),
        *("images", "distill_token_ids", "distill_logprobs"),
    }
)
"""What the API keeps of a group; rows for people carry more."""

SET_IF_ABSENT = (
    *("ref_logprobs", "overrides", "group_overrides"),
    *("distill_token_ids", "distill_logprobs"),
)


def is_short(groups: Any) -> bool:
    """Say whether one group, or several, can be encoded in place."""
    rows = (row for group in listed(groups) for row in group.get("tokens", ()))
    return sum(map(len, rows)) <= FEW_TOKENS


def count_trained(masks: Sequence[Sequence[int]]) -> list[int]:
    """Return how many tokens of each rollout are trained on."""
    # A subclass may send arrays, which have no `count`.
    return [len(mask) - list(mask).count(PROMPT_MASK) for mask in masks]


class GroupDelivery:
    """Delivers groups to the API, to a file of rows, or to both.

    Args:
        env: Its hooks send a group and take it into the table for W&B.
        session: This environment, as the API knows it.
        rows: Writes the rows for people; None where nobody asked for any.
        dumps: Keeps a group that the API did not take, with the reason.
    """

    def __init__(
        self, env: BaseEnv, session: ApiSession, rows: RowWriter | None, dumps: Dumps
    ) -> None:
        self._env = env
        self._session = session
        self._rows = rows
        self._dumps = dumps

    async def deliver(
        self, group: Group, data: Any, *, is_for_trainer: bool, limit_tokens: int
    ) -> None:
        """Check the data of a group, write their rows, and send those that pass.

        Args:
            group: Gets the ending of each rollout, but of those lost to an error.
            data: That of one group, or a list of several of which some may be None.
            is_for_trainer: Whether it is sent, or only written.
            limit_tokens: Every sequence must stay below it; 0 or less for no limit.
        """
        passed = []
        for part in listed(data):
            fault = await self._fault_of(part, is_for_trainer, limit_tokens)
            if fault is not None:
                logger.warning("a group is not sent: %s", fault)
                group.end(Ending.DISCARDED, rollouts_in(part))
                continue
            if self._env.config.include_messages and part.get("messages") is None:
                part["messages"] = await off_loop(self._decoded_messages, part)
            await self._write_row(part, is_only_copy=not is_for_trainer)
            if not is_for_trainer:
                group.end(Ending.WRITTEN, rollouts_in(part))
            passed.append(part)
        if passed and is_for_trainer:
            await self._send(group, passed, as_list=isinstance(data, list))
        for part in passed:
            await self._env.add_rollouts_for_wandb(part, group.item)

    async def _fault_of(
        self, part: dict[str, Any], is_for_trainer: bool, limit_tokens: int
    ) -> str | None:
        """Return why a group cannot be delivered; set what the API expects in it."""
        config, rows = self._env.config, part.get("tokens", [])
        overrides = part.get("group_overrides") or {}
        size = overrides.get("group_size", config.group_size)
        if len(rows) != size:
            return f"it has {len(rows)} rollouts instead of {size}"
        if config.ensure_scores_are_not_same and len(set(part["scores"])) == 1:
            return "its scores are all the same"
        for key in SET_IF_ABSENT:
            part.setdefault(key, None)
        masks = part["masks"]
        lengths = (
            count_trained(masks)
            if is_short(part)
            else await off_loop(count_trained, masks)
        )
        self._env.completion_lengths += lengths
        if is_for_trainer and 0 in lengths:
            return "a completion has no token that could be trained on"
        longest = max(map(len, rows), default=0)
        if 0 < limit_tokens <= longest:
            return f"{longest} tokens reach the trainer's limit, {limit_tokens}"
        return None

    def _decoded_messages(self, group: Mapping[str, Any]) -> list[Any]:
        texts = map(self._env.tokenizer.decode, group["tokens"])
        return [[{"role": "user", "content": text}] for text in texts]

    async def _write_row(self, part: dict[str, Any], *, is_only_copy: bool) -> None:
        """Write a group's row.

        Raises:
            RowRefusedError: The disk does not take it, and nobody else has the group.
        """
        if self._rows is None:
            return
        try:
            await off_loop(self._rows.write, part)
        except OSError as error:
            if is_only_copy:
                raise RowRefusedError(
                    f"env.data_path_to_save_groups: {self._rows.path}: {error}"
                ) from error
            # The trainer's group is worth more than the copy of it.
            if is_worth_a_line(lost := self._rows.rows_lost):
                logger.error(
                    "env.data_path_to_save_groups: row %d is lost: %s", lost, error
                )

    async def _send(
        self, group: Group, parts: list[dict[str, Any]], *, as_list: bool
    ) -> None:
        """Have the hook send; what the API does not take is kept on disk."""
        try:
            whole = parts if as_list or len(parts) > 1 else parts[0]
            await self._env._send_scored_data_to_api(whole)
        except asyncio.CancelledError:
            await self._keep_unsent(group, parts, "the run ended")
            raise
        except ApiError as error:
            await self._keep_unsent(group, parts, str(error))
            logger.error("a group was not sent: %s", error)
        else:
            group.end(Ending.SENT, rollouts_in(parts))
        self._env.items_sent_this_step += len(parts)

    async def _keep_unsent(
        self, group: Group, parts: list[dict[str, Any]], reason: str
    ) -> None:
        for part in parts:
            await self._dumps.keep_unsent(part, reason)
        group.end(Ending.UNSENT, rollouts_in(parts))

    async def close_rows(self) -> None:
        """Close the file of rows, after the row that is perhaps being written there."""
        if self._rows is not None:
            await off_loop(self._rows.close)

    # -- the send ----------------------------------------------------------------------

    async def send(self, groups: Any) -> None:
        """Send a group, or several, as the API takes them.

        If the API is down or waits for its trainer, this waits. If the API works but
        fails for this group, the group is given up.

        Raises:
            ApiError: The API refused the group `SEND_TRIES_IF_REFUSED` times, or failed
                at it for `SEND_GIVE_UP_AFTER_S`.
        """
        failing_since_s, refusals = math.inf, 0

        def may_repeat(error: ApiError) -> bool:
            nonlocal failing_since_s, refusals
            if error.is_refusal:
                refusals += 1
            elif error.is_fault:
                failing_since_s = min(failing_since_s, time.monotonic())
            else:  # which says nothing of the group
                failing_since_s = math.inf
            is_late = time.monotonic() - failing_since_s >= SEND_GIVE_UP_AFTER_S
            return refusals < SEND_TRIES_IF_REFUSED and not is_late

        await self._session.patiently(
            lambda: self._send_where_known(groups), may_repeat
        )

    async def _send_where_known(self, groups: Any) -> None:
        """Send a group once, if the API still knows this environment.

        If a restarted API gets a group before its trainer has registered, it ignores
        the trainer from then on.
        """
        session, is_list = self._session, isinstance(groups, list)
        env_id = session.env_id
        payload = [
            {key: value for key, value in group.items() if key in API_KEYS}
            | {"env_id": env_id}
            for group in listed(groups)
        ]
        whole = payload if is_list else payload[0]
        encode = functools.partial(encode_groups, is_far=session.is_far)
        if is_short(payload):
            body, headers = encode(whole)
        else:
            body, headers = await off_loop(encode, whole, release_gil)
        try:
            # After the encoding, which may take long: the API may restart meanwhile.
            await session.read_status()
        except ApiError as error:
            raise ApiError(f"the status: {error}") from error
        # The payload has the old number; the next try encodes it with the new one.
        if env_id != session.env_id:
            raise ApiError("registered anew while a group was on its way")
        path = "/scored_data_list" if is_list else "/scored_data"
        await session.request("POST", path, body, headers)
