"""The delivery of a group to the trainer: its data, their checks, and the request.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop. A
long group is encoded and compressed in a thread; the API gets the same fields in the
same order.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from atroposlib.envs.base import APIServerConfig, BaseEnv, ScoredDataGroup

from rg_env.atropos.api_client import ApiError, ApiSession
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.model import completion_tokens
from rg_env.executor import in_thread
from rg_env.group_encoding import encode_groups
from rg_env.inference.connection import sampling_extra_of
from rg_env.run.dumps import Dumps
from rg_env.run.group import Group, count_rollouts, groups_in, has_variance
from rg_env.run.group_loop import Refused
from rg_env.run.ledger import Ending

logger = logging.getLogger(__name__)

# Up to this length, a group is encoded on the event loop, which takes a millisecond.
SHORT_GROUP_TOKENS = 8192

# A refusal may come from a proxy, or from damage to the request on its way.
SEND_TRIES_IF_REFUSED = 3

# About two minutes, for a group that the API fails at while it answers other requests.
SEND_TRIES_IF_FAULTY = 15

API_FIELDS = ScoredDataGroup.__annotations__.keys()
"""The fields of a group that the API keeps; rows in files have more."""


# -- its data --------------------------------------------------------------------------


class TrainerData:
    """The sink that makes the trainer's data of a group, with more fields for rows."""

    def __init__(self, config: ReasoningGymEnvConfig, server: APIServerConfig) -> None:
        self._config = config
        self._model = server.model_name
        # reported to the trainer
        self.generation_params = {
            "temperature": config.temperature,
            "top_p": config.top_p,
            **sampling_extra_of(server),
        }

    async def take(self, group: Group) -> None:
        """Set the data of a group.

        Raises:
            Refused: The rewards are equal, and `ensure_scores_are_not_same` is set.
        """
        config = self._config
        if config.ensure_scores_are_not_same and not has_variance(group.rewards):
            raise Refused(Ending.ZERO_VARIANCE)
        group.data = self._data(group)

    def _data(self, group: Group) -> dict[str, Any]:
        config = self._config
        masks_truncated = config.mask_too_long_completions
        completions = group.completions
        rollouts = group.rollouts
        logprobs = [completion.get("logprobs") for completion in completions]
        data = {
            "tokens": [completion["tokens"] for completion in completions],
            "masks": [completion["masks"] for completion in completions],
            "scores": group.rewards,
            # The API takes a list of numbers for every rollout, or nothing.
            "inference_logprobs": None if None in logprobs else logprobs,
            # The model should not learn from a completion that was truncated.
            "overrides": [
                {"set_advantage_to_zero": True}
                if masks_truncated and rollout.finish_reason == "length"
                else {}
                for rollout in rollouts
            ],
            "group_overrides": {},
            "generation_params": self.generation_params,
            "model": self._model,
            "task": group.task,
            "question": group.entry.get("question"),
            "gold_answer": group.gold_answer,
            "answers": [rollout.answer for rollout in rollouts],
            "outcomes": [rollout.outcome for rollout in rollouts],
            "task_scores": group.scores,
            "finish_reasons": [rollout.finish_reason for rollout in rollouts],
            "completion_tokens": [rollout.completion_tokens for rollout in rollouts],
            **group.origin,
        }
        if config.include_messages:
            data["messages"] = [list(rollout.conversation) for rollout in rollouts]
        data["seconds"] = round(time.monotonic() - group.began_s, 3)
        return data


# -- the checks ------------------------------------------------------------------------


async def check(env: BaseEnv, group: Group, limit_tokens: int) -> None:
    """Keep the data of a group, or of several, that can be delivered.

    Every sequence must stay below `limit_tokens`, 0 or less for no limit. Data without
    messages get them if `include_messages` is set.

    Raises:
        Refused: Nothing is left.
    """
    passed = []
    for data in groups_in(group.data):
        fault = _fault_of(env, data, group.is_for_trainer, limit_tokens)
        if fault is not None:
            logger.warning("a group is not sent: %s", fault)
            group.end(Ending.DISCARDED, count_rollouts(data))
            continue
        if env.config.include_messages and data.get("messages") is None:
            await _add_messages(data, env.tokenizer.decode)
        passed.append(data)
    if not passed:
        raise Refused(Ending.DISCARDED)
    group.data = passed if isinstance(group.data, list) else passed[0]


def _fault_of(
    env: BaseEnv, data: dict[str, Any], is_for_trainer: bool, limit_tokens: int
) -> str | None:
    """Return why the data of a group cannot be delivered, or None.

    As in the framework, the lengths of its completions are counted before the limit.
    """
    config = env.config
    rows = data.get("tokens", [])
    size = (data.get("group_overrides") or {}).get("group_size", config.group_size)
    if len(rows) != size:
        return f"it has {len(rows)} rollouts instead of {size}"
    if config.ensure_scores_are_not_same and not has_variance(data["scores"]):
        return "its scores are all the same"
    lengths = [*map(completion_tokens, data["masks"])]
    env.completion_lengths += lengths
    if is_for_trainer and 0 in lengths:
        return "a completion has no token that could be trained on"
    longest = max(map(len, rows), default=0)
    if 0 < limit_tokens <= longest:
        return f"{longest} tokens reach the trainer's limit, {limit_tokens}"
    return None


async def _add_messages(data: dict[str, Any], decode: Callable[[Any], str]) -> None:
    texts = await in_thread(lambda: [*map(decode, data["tokens"])])
    data["messages"] = [[{"role": "user", "content": text}] for text in texts]


# -- the request -----------------------------------------------------------------------


class GroupSender:
    """The sink of groups for the trainer; dumps keep one that the API did not take."""

    def __init__(self, env: BaseEnv, session: ApiSession, dumps: Dumps) -> None:
        self._env = env
        self._session = session
        self._dumps = dumps
        # One request at a time, so that the status tells whether it has arrived.
        self._sending = asyncio.Lock()

    async def take(self, group: Group) -> None:
        """Send the group by the framework's method, or keep it on disk."""
        try:
            await self._env._send_scored_data_to_api(group.data)
        except asyncio.CancelledError:
            await self._keep_unsent(group, "the run ended")
            raise
        except ApiError as error:
            await self._keep_unsent(group, str(error))
            logger.error("a group was not sent: %s", error)
        else:
            group.end(Ending.SENT, count_rollouts(group.data))
        self._env.items_sent_this_step += len(groups_in(group.data))

    async def _keep_unsent(self, group: Group, reason: str) -> None:
        for data in groups_in(group.data):
            await self._dumps.keep_unsent(data, reason)
        group.end(Ending.UNSENT, count_rollouts(group.data))

    async def send(self, groups: Any) -> None:
        """Send a group, or several, as the API takes them.

        If the API is down or waits for its trainer, this waits. If the API works but
        fails for this group, the group is given up.

        Raises:
            ApiError: The API refused the group, or failed at it, again and again.
        """
        refusals = 0
        faults = 0

        def may_retry(error: ApiError) -> bool:
            nonlocal refusals, faults
            if error.is_refusal:
                refusals += 1
            if error.is_fault:
                faults += 1
            if not error.has_reply:  # the API is down, whatever the group
                faults = 0
            return refusals < SEND_TRIES_IF_REFUSED and faults < SEND_TRIES_IF_FAULTY

        await self._session.retry(lambda: self._request(groups_in(groups)), may_retry)

    async def _request(self, groups: list[dict[str, Any]]) -> None:
        """Send groups in one request.

        If the reply is lost, the API's queue tells whether the groups have arrived,
        unless the trainer has taken a batch meanwhile.
        """
        session = self._session
        env_id = session.env_id
        body, headers = await self._encoded(groups)
        async with self._sending:
            # The API may have restarted during the encoding. If it gets a group before
            # its trainer has registered, it ignores the trainer from then on.
            try:
                await session.read_status()
            except ApiError as error:  # without a status: the group is not at fault
                raise ApiError(f"the status: {error}") from error
            # The body has the old number; the next try encodes the new one.
            if env_id != session.env_id:
                raise ApiError("registered anew while a group was on its way")
            expected = session.queue(len(groups))
            status = session.status
            path = "/scored_data_list" if len(groups) > 1 else "/scored_data"
            try:
                await session.request("POST", path, body=body, headers=headers)
                if session.status is status:
                    session.note_sent(len(groups))
            except ApiError as error:
                # The groups may have arrived although the reply was lost.
                is_known = not error.is_refusal and await session.renew_status()
                if not is_known or session.queue() != expected:
                    raise

    async def _encoded(
        self, groups: list[dict[str, Any]]
    ) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers of the request for groups."""
        session = self._session
        payload = [
            {name: value for name, value in group.items() if name in API_FIELDS}
            | {"env_id": session.env_id}
            for group in groups
        ]
        encode = functools.partial(
            encode_groups,
            payload if len(payload) > 1 else payload[0],
            is_remote=session.is_remote,
        )
        length_tokens = sum(len(row) for group in groups for row in group["tokens"])
        if length_tokens <= SHORT_GROUP_TOKENS:
            return encode()
        return await in_thread(encode)
