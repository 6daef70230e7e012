"""A stand-in for a trainer: it takes batches from the Atropos API and trains nothing.

It registers, asks for batches as a trainer does, checks every group as strictly as the
strictest known trainer reads it, and counts. It is there for machines without an
accelerator, for tests and for measuring an env alone.

What it does not do: no gradient, no weights, no checkpoint. Nor does it follow the
API's step: that runs ahead of the trainer, because the API makes all possible batches
at once and hands out the newest first. Its own count of batches is its step.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from rg_env.errors import RunFailed

MASKED = -100
"""What the host writes into a mask where a token is not trained on."""

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 1.0

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Compressing batches takes the API a third of its CPU, and saves nothing here."""


REFUSED_ADVICE = "see the log of the Atropos API for the reason"
ABSENT_ADVICE = "start the Atropos API with `run-api`"
FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, json.JSONDecodeError)


class TrainerError(RunFailed):
    """The API cannot be used by this trainer; the text says what to do."""


@dataclass(frozen=True)
class TrainerConfig:
    """Settings of a stand-in trainer.

    Attributes:
        api_url: Base URL of the Atropos API.
        batch_size: Rollouts in a batch; a multiple of group_size, or no batch is ever
            made.
        group_size: Rollouts in a group.
        max_token_len: Longest sequence in tokens; the host drops the whole group of a
            sequence that reaches it.
        num_steps: What the envs are told as the length of the run.
        step_time_s: Simulated time of one training step, at least 0.
        give_up_s: How long the API may be unreachable before an error.
        longest_wait_s: Longest pause between two requests for a batch.
        checked_groups: Groups of a batch that are checked, from its beginning; None
            for all. A benchmark has better use for the CPU.
        checkpoint_dir: What the envs are told.
        save_checkpoint_interval: In steps; what the envs are told.
        starting_step: First step; what the envs are told.

    Raises:
        ValueError: A value outside its range.
    """

    api_url: str
    batch_size: int
    group_size: int
    max_token_len: int
    num_steps: int
    step_time_s: float = 0.0
    give_up_s: float = 30.0
    longest_wait_s: float = LONGEST_WAIT_S
    checked_groups: int | None = None
    checkpoint_dir: str = ""
    save_checkpoint_interval: int = 0
    starting_step: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.group_size < 1:
            raise ValueError("batch_size and group_size must be positive")
        if self.batch_size % self.group_size:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of group_size"
                f" {self.group_size}; the API would never make a batch"
            )


@dataclass
class TrainerCounts:
    """What a stand-in trainer has received.

    Attributes:
        steps: Batches taken, each of which is one step.
        groups: Groups in them, invalid ones included.
        rollouts: Sequences in them.
        tokens: Tokens of all sequences, prompts included.
        trained_tokens: Tokens that the masks leave unmasked, in the groups that were
            checked.
        invalid_groups: Groups with at least one fault, among those.
        faults: How often each fault was found, by its name.
        api_errors: Times the API failed or could not be reached.
    """

    steps: int = 0
    groups: int = 0
    rollouts: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    invalid_groups: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    api_errors: int = 0


@dataclass(frozen=True)
class TrainerStep:
    """One step, as told to a progress callback.

    Attributes:
        number: Steps done so far, this one included.
        groups: The groups of the batch, as the API sent them.
    """

    number: int
    groups: Sequence[Mapping[str, Any]]


def find_faults(
    group: Mapping[str, Any], group_size: int, max_token_len: int
) -> list[str]:
    """Name everything that keeps a trainer from using a group, each fault once.

    Args:
        group: What the API holds for one group. Expected are `tokens`, `masks` and
            `inference_logprobs` of shape (G, T_i), `scores` of shape (G,), `overrides`
            null or G objects, `group_overrides` an object.
        group_size: G.
        max_token_len: Every T_i is below it.
    """
    tokens = group.get("tokens") or []
    faults = []
    if len(tokens) != group_size:
        faults.append("group_size")
    if not all(tokens) or not tokens:
        faults.append("empty_sequence")
    if any(len(sequence) >= max_token_len for sequence in tokens):
        faults.append("too_long")
    lengths = [*map(len, tokens)]
    for name in ("masks", "inference_logprobs"):
        rows = group.get(name)
        if rows is None:
            faults.append(f"no_{name}")
        elif [len(row) for row in rows] != lengths:
            faults.append(f"{name}_shape")
        elif not _all_finite(rows):
            faults.append(f"{name}_not_finite")
    if not faults and not _masks_fit(tokens, group["masks"]):
        faults.append("masks_differ_from_tokens")
    return faults + _find_score_faults(group, len(tokens))


def _find_score_faults(group: Mapping[str, Any], size: int) -> list[str]:
    faults = []
    scores = group.get("scores") or []
    if len(scores) != size:
        faults.append("scores_shape")
    if not _all_finite([scores]):
        faults.append("scores_not_finite")
    overrides = group.get("overrides")
    if overrides is not None and (
        len(overrides) != size or not all(isinstance(o, dict) for o in overrides)
    ):
        faults.append("overrides_shape")
    return faults


def _all_finite(rows: Sequence[Sequence[Any]]) -> bool:
    return all(
        isinstance(value, int | float) and math.isfinite(value)
        for row in rows
        for value in row
    )


def _masks_fit(tokens: Sequence[Sequence[int]], masks: Sequence[Sequence[int]]) -> bool:
    """Tell whether each mask repeats or masks its tokens, and leaves some to train."""
    return all(
        any(value != MASKED for value in mask)
        and all(
            value in (MASKED, token)
            for value, token in zip(mask, sequence, strict=True)
        )
        for mask, sequence in zip(masks, tokens, strict=True)
    )


class StandInTrainer:
    """Takes batches from the API, checks and counts them; trains nothing.

    Args:
        config: Its settings.
        on_step: Called after each step, in the event loop; it has to be quick.
    """

    def __init__(
        self,
        config: TrainerConfig,
        on_step: Callable[[TrainerStep], None] | None = None,
    ) -> None:
        self._config = config
        self._on_step = on_step
        self.counts = TrainerCounts()

    async def run(self, steps: int) -> TrainerCounts:
        """Register, then take a number of batches; returns `counts`.

        It waits for them without end while the API answers.

        Raises:
            TrainerError: The API is unreachable for longer than `give_up_s`, or is in
                use by another trainer.
        """
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            await self._register(session)
            for _ in range(steps):
                groups = await self._next_batch(session)
                await asyncio.sleep(self._config.step_time_s)
                self._record_step(groups)
        return self.counts

    async def _register(self, session: aiohttp.ClientSession) -> None:
        """Register, and make sure that the API took our values.

        The first registration wins and a later one is answered as if it had: only
        `/info` tells.
        """
        config = self._config
        values = {
            "wandb_group": "demo",
            "wandb_project": "demo",
            "batch_size": config.batch_size,
            "max_token_len": config.max_token_len,
            "checkpoint_dir": config.checkpoint_dir,
            "save_checkpoint_interval": config.save_checkpoint_interval,
            "starting_step": config.starting_step,
            "num_steps": config.num_steps,
        }
        await self._request(session, "POST", "/register", values)
        found = await self._request(session, "GET", "/info")
        ours = {name: values[name] for name in ("batch_size", "max_token_len")}
        if found != ours:
            raise TrainerError(
                f"the Atropos API at {config.api_url} holds {found} instead of {ours}:"
                " another trainer registered first, or an env sent data before one did;"
                f" restart the API, or reset it with GET {config.api_url}/reset_data"
            )

    async def _next_batch(
        self, session: aiohttp.ClientSession
    ) -> Sequence[Mapping[str, Any]]:
        """Ask for a batch until there is one, less and less often."""
        wait_s = FIRST_WAIT_S
        while True:
            answer = await self._request(session, "GET", "/batch")
            groups: Sequence[Mapping[str, Any]] | None = answer.get("batch")
            if groups:
                return groups
            # Said by an API that was started anew and knows no trainer.
            if answer.get("status") == "error":
                await self._register(session)
            await asyncio.sleep(wait_s)
            wait_s = min(self._config.longest_wait_s, wait_s * 1.5)

    async def _request(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        values: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request, again and again while the API fails, up to `give_up_s`."""
        url = f"{self._config.api_url}{path}"
        deadline = time.monotonic() + self._config.give_up_s
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with session.request(
                    method, url, json=values, headers=UNCOMPRESSED
                ) as response:
                    response.raise_for_status()
                    answer: dict[str, Any] = orjson.loads(await response.read())
                    return answer
            except FAILURES as error:
                self.counts.api_errors += 1
                if time.monotonic() > deadline:
                    is_refused = isinstance(error, aiohttp.ClientResponseError)
                    raise TrainerError(
                        f"{method} {url} failed for {self._config.give_up_s:g} s"
                        f" ({type(error).__name__}: {error}); "
                        + (REFUSED_ADVICE if is_refused else ABSENT_ADVICE)
                    ) from error
            await asyncio.sleep(wait_s)
            wait_s = min(LONGEST_WAIT_S, wait_s * 1.5)

    def _record_step(self, groups: Sequence[Mapping[str, Any]]) -> None:
        counts = self.counts
        counts.steps += 1
        counts.groups += len(groups)
        sequences = [row for group in groups for row in group.get("tokens") or []]
        counts.rollouts += len(sequences)
        counts.tokens += sum(map(len, sequences))
        for group in groups[: self._config.checked_groups]:
            self._check_group(group)
        if len(sequences) != self._config.batch_size:
            counts.faults["batch_size"] += 1
        if self._on_step:
            self._on_step(TrainerStep(counts.steps, groups))

    def _check_group(self, group: Mapping[str, Any]) -> None:
        config, counts = self._config, self.counts
        faults = find_faults(group, config.group_size, config.max_token_len)
        counts.invalid_groups += bool(faults)
        counts.faults.update(faults)
        counts.trained_tokens += sum(
            value != MASKED for mask in group.get("masks") or [] for value in mask
        )
