"""A group's last steps: the host's checks, the row for people, the send to the API.

Mends B7 (`group_overrides: None` loses the group) and B9 (JSON and gzip at level 9 on
the event loop). Encoding, compressing and writing a long group is done off the event
loop; the API gets the same fields in the same order.

Source: atroposlib 0.4.0, BaseEnv.handle_send_to_api(); differs: the above, a limit of
length that the trainer does not set is said once, not for every group.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.atropos.api_client import ApiFaulted, ApiRefused, ApiUnreachable
from rg_env.atropos.api_session import ConnectedEnv
from rg_env.inference.generation import PROMPT_MASK
from rg_env.off_loop import breathe, off_loop
from rg_env.rollouts.group_json import encode_groups

logger = logging.getLogger(__name__)

SEND_GIVE_UP_AFTER_S = 120.0

MAX_REFUSALS = 3
"""A group that was spoiled on its way, or met a proxy, is accepted the next time."""

FEW_TOKENS = 8192
"""So many are counted, encoded and compressed in a millisecond, in place."""

API_KEYS = frozenset(
    {
        "tokens",
        "masks",
        "scores",
        "advantages",
        "ref_logprobs",
        "messages",
        "generation_params",
        "inference_logprobs",
        "overrides",
        "group_overrides",
        "images",
        "distill_token_ids",
        "distill_logprobs",
    }
)
"""What the API keeps of a group; rows for people carry more."""

SET_IF_ABSENT = (
    "ref_logprobs",
    "overrides",
    "group_overrides",
    "distill_token_ids",
    "distill_logprobs",
)


def is_short(groups: Any) -> bool:
    """Say whether one group, or several, can be encoded in place."""
    listed = groups if isinstance(groups, list) else [groups]
    rows = (row for group in listed for row in group.get("tokens", ()))
    return sum(map(len, rows)) <= FEW_TOKENS


def count_trained(masks: Sequence[Sequence[int]]) -> list[int]:
    """Return how many tokens of each rollout are trained on."""
    return [len(mask) - list(mask).count(PROMPT_MASK) for mask in masks]


class SendingEnv(ConnectedEnv):
    """An environment that sends its groups."""

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Check a group, or several, write the rows, and send what is left.

        Args:
            scored_data: A group, or a list of groups of which some may be None.
            item: Whose group it is.
            do_send_to_api: Whether it goes to the API.
            abort_on_any_max_length_exceeded: Whether a group is rejected for one
                sequence that reaches the trainer's limit.
        """
        is_list = isinstance(scored_data, list)
        left = []
        for group in scored_data if is_list else [scored_data]:
            if group is None:
                continue
            masks = group.get("masks", ())
            if is_short(group):
                lengths = count_trained(masks)
            else:
                lengths = await off_loop(count_trained, masks)
            fault = self._fault(
                group, lengths, do_send_to_api, abort_on_any_max_length_exceeded
            )
            if fault is not None:
                logger.warning("a group is not sent: %s", fault)
                continue
            if self.config.include_messages and group.get("messages") is None:
                group["messages"] = await off_loop(self._decoded_messages, group)
            try:
                await self._write_row(group)
            except OSError as error:
                if not do_send_to_api:
                    raise
                # The trainer's group is worth more than the copy of it.
                self._say_row_lost(error)
            left.append(group)
        if left and do_send_to_api:
            self.items_sent_this_step += len(left)
            try:
                await self._send_scored_data_to_api(
                    left if is_list or len(left) > 1 else left[0]
                )
            except ApiRefused as error:
                logger.error("a group was not sent: %s", error)
        for group in left:
            await self.add_rollouts_for_wandb(group, item)

    def _fault(
        self,
        group: dict[str, Any],
        lengths: list[int],
        is_for_trainer: bool,
        aborts_if_too_long: bool,
    ) -> str | None:
        """Say why a group cannot be sent; notes its lengths if it has a size."""
        overrides = group.get("group_overrides") or {}
        size = overrides.get("group_size", self.config.group_size)
        found = group.get("tokens", [])
        if len(found) != size:
            return f"it has {len(found)} rollouts instead of {size}"
        if self.config.ensure_scores_are_not_same and len(set(group["scores"])) == 1:
            return "its scores are all the same"
        for key in SET_IF_ABSENT:
            group.setdefault(key, None)
        self.completion_lengths += lengths
        if is_for_trainer and 0 in lengths:
            return "a completion has no token that could be trained on"
        longest = max(map(len, found), default=0)
        if aborts_if_too_long and 0 < self.max_token_len <= longest:
            return f"{longest} tokens reach the trainer's limit, {self.max_token_len}"
        return None

    def _decoded_messages(self, group: Mapping[str, Any]) -> list[Any]:
        texts = map(self.tokenizer.decode, group["tokens"])
        return [[{"role": "user", "content": text}] for text in texts]

    async def _write_row(self, group: Mapping[str, Any]) -> None:
        if self.jsonl_writer is not None:
            await off_loop(self.jsonl_writer.write, group)
            logger.info("wrote a group to %s", self.config.data_path_to_save_groups)

    def _say_row_lost(self, error: OSError) -> None:
        lost = self.jsonl_writer.rows_lost
        if lost & (lost - 1) == 0:  # the first, second, fourth, eighth, ...
            logger.error(
                "env.data_path_to_save_groups: row %d is lost: %s", lost, error
            )

    async def _send_scored_data_to_api(self, scored_data: Any) -> None:
        """Send a group, or several, as the API takes them.

        An API that is away, or that waits for its trainer, is waited for. One that is
        there and fails at this group alone is given up.

        Raises:
            ApiRefused: The API refused the group `MAX_REFUSALS` times, or failed at
                it for `SEND_GIVE_UP_AFTER_S`.
        """
        failing_since: float | None = None
        refusals = 0

        async def attempt() -> None:
            nonlocal failing_since, refusals
            try:
                await self._send_where_known(scored_data)
            except ApiUnreachable:
                failing_since = None
                raise
            except ApiFaulted as error:
                now = time.monotonic()
                failing_since = failing_since or now
                if now - failing_since < SEND_GIVE_UP_AFTER_S:
                    raise
                raise ApiRefused(f"{error}, for {now - failing_since:.0f} s") from error
            except ApiRefused as error:
                refusals += 1
                if refusals < MAX_REFUSALS:
                    raise ApiFaulted(str(error)) from error
                raise

        await self._api.patiently(attempt, even_if_refused=False)

    async def _send_where_known(self, scored_data: Any) -> None:
        """Send once, to an API that knows us.

        One that was restarted or reset and gets a group before its trainer has
        registered ignores the trainer from then on.
        """
        env_id, is_list = self.env_id, isinstance(scored_data, list)
        payload = [
            {key: value for key, value in group.items() if key in API_KEYS}
            | {"env_id": env_id}
            for group in (scored_data if is_list else [scored_data])
        ]
        whole = payload if is_list else payload[0]
        if is_short(payload):
            body, headers = encode_groups(whole)
        else:
            body, headers = await off_loop(encode_groups, whole, breathe)
        try:
            await self._own_status()
        except (ApiFaulted, ApiRefused) as error:
            raise ApiUnreachable(f"it does not know us: {error}") from error
        if env_id != self.env_id:
            raise ApiUnreachable("registered anew while a group was on its way")
        path = "/scored_data_list" if is_list else "/scored_data"
        await self._api.send(path, body, headers)
