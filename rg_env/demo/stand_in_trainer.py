"""A stand-in for a trainer: takes batches from the Atropos API and trains nothing.

It checks every group by the strictest rules of known trainers, and counts the groups.
Its step is the number of batches that it took. The API's step is ahead of it, because
the API makes all possible batches at once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from rg_env.errors import RunError

# A number of steps that no run reaches.
ENDLESS = 10**9

# The framework's mask of a token that is not trained.
MASKED = -100

FIRST_WAIT_S = 0.05
MAX_WAIT_S = 1.0
PAUSE_S = 0.2

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Headers against compression, which takes a third of the API's CPU time."""

# orjson's error is a subclass of `json.JSONDecodeError`.
FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, json.JSONDecodeError)

Groups = Sequence[Mapping[str, Any]]
"""The groups of a batch as the API sends them; see `find_faults`."""


@dataclass(frozen=True)
class TrainerConfig:
    """Settings of a stand-in trainer."""

    api_url: str
    batch_size: int  # in rollouts
    group_size: int
    max_token_len: int
    num_steps: int
    step_time_s: float = 0.0
    give_up_s: float = 30.0  # the longest outage of the API
    max_wait_s: float = MAX_WAIT_S  # between two requests for a batch
    checked_groups: int | None = None  # number per batch, None for all
    checkpoint_dir: str = ""
    save_checkpoint_interval: int = 0
    starting_step: int = 0


@dataclass
class TrainerCounts:
    """Counts of the received data; each batch is a step."""

    steps: int = 0
    groups: int = 0
    rollouts: int = 0
    invalid_groups: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def find_faults(
    group: Mapping[str, Any], group_size: int, max_token_len: int
) -> list[str]:
    """Return the names of all faults of a group.

    A group must have `tokens`, `masks` and `inference_logprobs` of shape (G, T_i) with
    T_i below `max_token_len`, `scores` of shape (G,), and `overrides` null or G
    objects.

    Example:
        >>> find_faults({"tokens": [[1, 2]], "scores": [1.0]}, 1, 512)
        ['masks', 'inference_logprobs']
    """
    tokens = group.get("tokens") or []
    scores = group.get("scores") or []
    overrides = group.get("overrides")
    lengths = [*map(len, tokens)]
    checks = {
        "group_size": len(tokens) == group_size,
        "empty_sequence": bool(tokens) and all(tokens),
        "too_long": max(lengths, default=0) < max_token_len,
        "scores": len(scores) == len(tokens) and _all_finite([scores]),
        "overrides": overrides is None
        or [*map(type, overrides)] == [dict] * len(tokens),
    }
    for name in ("masks", "inference_logprobs"):
        rows = group.get(name) or []
        checks[name] = [*map(len, rows)] == lengths and _all_finite(rows)
    if checks["masks"]:
        # Each value repeats or masks its token, and some tokens are trained.
        checks["masks"] = all(
            {*mask} != {MASKED}
            and all(v in (MASKED, token) for v, token in zip(mask, row, strict=True))
            for mask, row in zip(group["masks"], tokens, strict=True)
        )
    return [fault for fault, has_passed in checks.items() if not has_passed]


def _all_finite(rows: Sequence[Sequence[Any]]) -> bool:
    values = itertools.chain.from_iterable(rows)
    return all(isinstance(v, int | float) and math.isfinite(v) for v in values)


class StandInTrainer:
    """Takes batches from the API, checks and counts them, and trains nothing."""

    def __init__(
        self,
        config: TrainerConfig,
        on_step: Callable[[Groups], object] = lambda groups: None,
    ) -> None:
        self._config = config
        self._on_step = on_step
        self.counts = TrainerCounts()

    async def run(self, steps: int) -> TrainerCounts:
        """Register, then take a number of batches, and return `counts`."""
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(
            timeout=timeout, headers=UNCOMPRESSED
        ) as session:
            await self._register(session)
            for _ in range(steps):
                groups = await self._next_batch(session)
                await asyncio.sleep(self._config.step_time_s)
                self._record_step(groups)
        return self.counts

    async def _register(self, session: aiohttp.ClientSession) -> None:
        """Register, and check that the API has the settings of this trainer.

        The API ignores a second trainer, and replies to it as to the first.
        """
        config = self._config
        expected = {
            "batch_size": config.batch_size,
            "max_token_len": config.max_token_len,
        }
        # The API ignores fields that it does not know.
        values = {**vars(config), "wandb_group": "demo", "wandb_project": "demo"}
        await self._request(session, "POST", "/register", values)
        info = await self._request(session, "GET", "/info")
        if info != expected:
            raise RunError(
                f"the Atropos API at {config.api_url} has {info} instead of {expected}:"
                " another trainer registered first, or an env sent data before one did;"
                f" restart the API, or reset it with GET {config.api_url}/reset_data"
            )

    async def _next_batch(self, session: aiohttp.ClientSession) -> Groups:
        """Request a batch until there is one, with a growing back-off."""
        wait_s = FIRST_WAIT_S
        while True:
            reply = await self._request(session, "GET", "/batch")
            groups: Groups | None = reply.get("batch")
            if groups:
                return groups
            # The API was restarted, and has no trainer.
            if reply.get("status") == "error":
                await self._register(session)
            await asyncio.sleep(wait_s)
            wait_s = min(self._config.max_wait_s, wait_s * 1.5)

    async def _request(
        self, session: aiohttp.ClientSession, method: str, path: str, values: Any = None
    ) -> dict[str, Any]:
        """Send a request, and retry for up to `give_up_s` while the API fails."""
        url = f"{self._config.api_url}{path}"
        give_up_s = self._config.give_up_s
        deadline = time.monotonic() + give_up_s
        while True:
            try:
                async with session.request(method, url, json=values) as response:
                    response.raise_for_status()
                    reply: dict[str, Any] = orjson.loads(await response.read())
                    return reply
            except FAILURES as error:
                if time.monotonic() >= deadline:
                    raise RunError(
                        f"{method} {url} failed for {give_up_s:g} s"
                        f" ({type(error).__name__}: {error}); start the Atropos API"
                        " with `run-api`, or see its log"
                    ) from error
            await asyncio.sleep(PAUSE_S)

    def _record_step(self, groups: Groups) -> None:
        config = self._config
        counts = self.counts
        counts.steps += 1
        counts.groups += len(groups)
        for group in groups[: config.checked_groups]:
            faults = find_faults(group, config.group_size, config.max_token_len)
            counts.invalid_groups += bool(faults)
            counts.faults.update(faults)
        rollouts = sum(len(group.get("tokens") or []) for group in groups)
        counts.rollouts += rollouts
        if rollouts != config.batch_size:
            counts.faults["batch_size"] += 1
        self._on_step(groups)
