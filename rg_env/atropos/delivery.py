"""The delivery of a group to the trainer: its data, their checks, and the request.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop. A
long group is encoded, compressed and written off it; the API gets the same fields in
the same order.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from typing import Any

from atroposlib.envs.base import APIServerConfig, BaseEnv

from rg_env.atropos.api_client import ApiError, ApiSession
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.model import completion_tokens
from rg_env.executor import in_thread
from rg_env.group_encoding import encode_groups
from rg_env.inference.connection import sampling_extra_of
from rg_env.run.dumps import Dumps
from rg_env.run.group import Ending, Group, has_variance, listed, rollouts_in
from rg_env.run.group_loop import Refused

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


# -- its data --------------------------------------------------------------------------


class TrainerData:
    """The sink that makes the data for the trainer, with more fields for rows."""

    def __init__(self, config: ReasoningGymEnvConfig, server: APIServerConfig) -> None:
        self._config = config
        self._model = server.model_name
        # As they are reported to the trainer.
        own = {"temperature": config.temperature, "top_p": config.top_p}
        self.sampled_with = {**own, **sampling_extra_of(server)}

    async def take(self, group: Group) -> None:
        """Set the data of a group; refuse equal rewards if that is set."""
        config = self._config
        if config.ensure_scores_are_not_same and not has_variance(group.rewards):
            raise Refused(Ending.ZERO_VARIANCE)
        group.data = self._data(group)

    def _data(self, group: Group) -> dict[str, Any]:
        config = self._config
        completed = group.completions
        rollouts = group.rollouts
        logprobs = [each.get("logprobs") for each in completed]
        data = {
            "tokens": [each["tokens"] for each in completed],
            "masks": [each["masks"] for each in completed],
            "scores": group.rewards,
            # The API takes a list of numbers for every rollout, or nothing.
            "inference_logprobs": None if None in logprobs else logprobs,
            # So that the model is not taught by a completion it could not end.
            "overrides": [
                {"set_advantage_to_zero": True}
                if config.mask_too_long_completions and each.finish_reason == "length"
                else {}
                for each in rollouts
            ],
            "group_overrides": {},
            "generation_params": self.sampled_with,
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

    Every sequence must stay below `limit_tokens`, 0 or less for no limit.

    Raises:
        Refused: Nothing is left.
    """
    passed = []
    for part in listed(group.data):
        fault = await _fault_of(env, part, group.is_for_trainer, limit_tokens)
        if fault is None:
            passed.append(part)
        else:
            logger.warning("a group is not sent: %s", fault)
            group.end(Ending.DISCARDED, rollouts_in(part))
    if not passed:
        raise Refused(Ending.DISCARDED)
    group.data = passed if isinstance(group.data, list) else passed[0]


async def _fault_of(
    env: BaseEnv, part: dict[str, Any], is_for_trainer: bool, limit_tokens: int
) -> str | None:
    """Return why a group cannot be delivered; give it messages if it needs them."""
    config = env.config
    rows = part.get("tokens", [])
    size = (part.get("group_overrides") or {}).get("group_size", config.group_size)
    if len(rows) != size:
        return f"it has {len(rows)} rollouts instead of {size}"
    if config.ensure_scores_are_not_same and len(set(part["scores"])) == 1:
        return "its scores are all the same"
    lengths = [*map(completion_tokens, part["masks"])]
    env.completion_lengths += lengths
    if is_for_trainer and 0 in lengths:
        return "a completion has no token that could be trained on"
    longest = max(map(len, rows), default=0)
    if 0 < limit_tokens <= longest:
        return f"{longest} tokens reach the trainer's limit, {limit_tokens}"
    if config.include_messages and part.get("messages") is None:
        texts = await in_thread(lambda: [*map(env.tokenizer.decode, part["tokens"])])
        part["messages"] = [[{"role": "user", "content": text}] for text in texts]
    return None


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

        parts = listed(groups)
        await self._session.patiently(lambda: self._request(parts), may_repeat)

    async def _request(self, groups: list[dict[str, Any]]) -> None:
        """Send groups in one request.

        If the reply is lost, the API's queue tells whether they have arrived, unless
        the trainer has taken a batch meanwhile.

        If a restarted API gets a group before its trainer has registered, it ignores
        the trainer from then on.
        """
        session = self._session
        env_id = session.env_id
        payload: list[dict[str, Any]] = [
            {key: value for key, value in group.items() if key in API_KEYS}
            | {"env_id": env_id}
            for group in groups
        ]
        is_list = len(payload) > 1
        encode = functools.partial(
            encode_groups,
            payload if is_list else payload[0],
            is_remote=session.is_remote,
        )
        if sum(len(row) for group in groups for row in group["tokens"]) <= FEW_TOKENS:
            body, headers = encode()
        else:
            body, headers = await in_thread(encode)
        async with self._sending:
            try:
                # After the encoding: the API may restart meanwhile.
                await session.read_status()
            except ApiError as error:  # which says nothing of the group
                raise ApiError(f"the status: {error}") from error
            # The payload has the old number; the next try encodes it with the new one.
            if env_id != session.env_id:
                raise ApiError("registered anew while a group was on its way")
            arrived = session.queue(len(groups))
            status = session.status
            path = "/scored_data_list" if is_list else "/scored_data"
            try:
                await session.request("POST", path, body=body, headers=headers)
                if session.status is status:
                    session.note_sent(len(groups))
            except ApiError as error:
                # Its reply may be lost alone.
                is_known = not error.is_refusal and await session.renew_status()
                if not is_known or session.queue() != arrived:
                    raise
