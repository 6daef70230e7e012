"""A stand-in trainer that costs little: it takes batches and counts them.

Unlike the demo's it checks only one group of a batch, with the demo's own rules,
because checking all of them would take CPU from what is measured.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter

import aiohttp
import orjson

from rg_env.simulation.stand_in_trainer import find_faults

POLL_S = 0.05

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Compressing batches takes the API a third of its CPU, which others here need."""


@dataclasses.dataclass
class Received:
    """What the trainer has received.

    Attributes:
        batches: Batches taken.
        groups: Groups in them.
        rollouts: Sequences in them.
        tokens: Tokens of all sequences, prompts included.
        faults: Faults of the groups that were checked, by name.
    """

    batches: int = 0
    groups: int = 0
    rollouts: int = 0
    tokens: int = 0
    faults: Counter[str] = dataclasses.field(default_factory=Counter)


class CountingTrainer:
    """Takes batches as fast as it may.

    Args:
        api: URL of the Atropos API.
        batch_size: Rollouts of a batch.
        group_size: Rollouts of a group.
        max_token_len: Longest sequence, in tokens.
        step_s: Simulated time of a training step, in seconds.

    Attributes:
        received: What came so far.
    """

    def __init__(
        self,
        api: str,
        batch_size: int,
        group_size: int,
        max_token_len: int,
        step_s: float,
    ) -> None:
        self._api = api
        self._batch_size = batch_size
        self._group_size = group_size
        self._max_token_len = max_token_len
        self._step_s = step_s
        self.received = Received()

    async def register(self, session: aiohttp.ClientSession) -> None:
        """Register and ask once, so that environments may register too."""
        values = {
            "wandb_group": "bench",
            "wandb_project": "bench",
            "batch_size": self._batch_size,
            "max_token_len": self._max_token_len,
            "checkpoint_dir": "",
            "save_checkpoint_interval": 0,
            "starting_step": 0,
            "num_steps": 1_000_000,
        }
        async with session.post(f"{self._api}/register", json=values) as reply:
            reply.raise_for_status()
        await self._batch(session)

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Take batches until cancelled."""
        while True:
            took = await self._batch(session)
            await asyncio.sleep(self._step_s if took else POLL_S)

    async def _batch(self, session: aiohttp.ClientSession) -> bool:
        async with session.get(f"{self._api}/batch", headers=UNCOMPRESSED) as reply:
            reply.raise_for_status()
            groups = orjson.loads(await reply.read()).get("batch")
        if not groups:
            return False
        received = self.received
        received.batches += 1
        received.groups += len(groups)
        for group in groups:
            received.rollouts += len(group["tokens"])
            received.tokens += sum(map(len, group["tokens"]))
        received.faults.update(
            find_faults(groups[0], self._group_size, self._max_token_len)
        )
        return True
