"""What a simulated inference server was asked and has answered."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from rg_env.demo.model import Generation


@dataclasses.dataclass
class RequestCounts:
    """Counts since the server began.

    Attributes:
        in_flight: Requests being answered.
        idle_s: Seconds without a request in flight.
        in_flight_s: Integral over time of the requests in flight, in seconds.
        requests: Requests answered with completions.
        completions: Completions in them, as many as left in whole replies.
        tokens: Their tokens, prompts not counted.
        truncated: Completions cut at the request's limit.
        cancelled: Requests whose client went away first.
        cancelled_completions: Completions that they had asked for.
    """

    in_flight: int = 0
    idle_s: float = 0.0
    in_flight_s: float = 0.0
    requests: int = 0
    completions: int = 0
    tokens: int = 0
    truncated: int = 0
    cancelled: int = 0
    cancelled_completions: int = 0
    _since: float = dataclasses.field(default_factory=time.monotonic)

    def move(self, change: int) -> None:
        """Let requests come (+1) or go (-1)."""
        now = time.monotonic()
        passed_s, self._since = now - self._since, now
        self.idle_s += passed_s * (self.in_flight == 0)
        self.in_flight_s += passed_s * self.in_flight
        self.in_flight += change

    def record_reply(self, made: Sequence[Generation]) -> None:
        """Count the completions of one reply."""
        self.requests += 1
        self.completions += len(made)
        self.tokens += sum(generation.num_tokens for generation in made)
        self.truncated += sum(g.finish_reason == "length" for g in made)

    def record_departure(self, completions: int) -> None:
        """Count a client that went away before it was answered."""
        self.cancelled += 1
        self.cancelled_completions += completions

    def snapshot(self) -> dict[str, Any]:
        """Return all counts, this process, and the time of the monotonic clock."""
        self.move(0)
        values = dataclasses.asdict(self)
        return {**values, "t": values.pop("_since"), "pid": os.getpid()}
