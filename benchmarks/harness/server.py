"""An inference server that answers after a fixed time and costs next to nothing.

    python -m benchmarks.harness.server --tell SOCKET

It speaks as Atropos' vLLM server does (`/generate`, `/health`). Of the n choices to a
question every other one is right, as long as the environment's probe has told the
answer through the socket; the others hold varied wrong answers. It is simulated: there
is no model.

Besides, for the harness:

    POST /bench/begin   {latency_ms, jitter, tokens}: behave so, count from zero
    POST /bench/hold    answer no request any more; keep those there are
    GET  /bench/counts  the ledger, see `Ledger`
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from benchmarks.harness.children import end_with_parent
from benchmarks.harness.replies import Replies
from rg_env.simulation.chatml import extract_last_user_message
from rg_env.tasks.solutions import solution

MAX_LINE_BYTES = 16 * 1024**2
MAX_KNOWN = 20_000


@dataclasses.dataclass
class Ledger:
    """What was asked and answered since the beginning of a run.

    Attributes:
        in_flight: Requests being answered.
        idle_s: Seconds without a request in flight.
        in_flight_s: Integral over time of the requests in flight, in seconds.
        requests: Requests answered.
        rollouts: Completions in them.
        tokens: Their tokens, prompts not counted.
        truncated: Completions cut at the request's `max_tokens`.
        cancelled: Requests whose client went away first.
        cancelled_rollouts: Completions that they had asked for.
        unknown: Requests whose question no one had told the answer to.
    """

    in_flight: int = 0
    idle_s: float = 0.0
    in_flight_s: float = 0.0
    requests: int = 0
    rollouts: int = 0
    tokens: int = 0
    truncated: int = 0
    cancelled: int = 0
    cancelled_rollouts: int = 0
    unknown: int = 0
    _since: float = dataclasses.field(default_factory=time.monotonic)

    def move(self, change: int) -> None:
        """Let requests come (+1) or go (-1)."""
        now = time.monotonic()
        passed_s, self._since = now - self._since, now
        self.idle_s += passed_s * (self.in_flight == 0)
        self.in_flight_s += passed_s * self.in_flight
        self.in_flight += change

    def snapshot(self) -> dict[str, float]:
        """Return all counts and the time on this machine's monotonic clock."""
        self.move(0)
        values = dataclasses.asdict(self)
        values["t"] = values.pop("_since")
        return values


class Answers:
    """RunItems whose answers were told, the oldest forgotten first."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, told: Mapping[str, Any]) -> None:
        """Take in one question and its answer, or an example from its metadata."""
        answer = solution(told.get("task", ""), told)
        if answer is None:
            return
        self._known[told["question"]] = answer
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def choices(self, question: str, n: int) -> tuple[list[str], bool]:
        """Return n answers, and whether those in even places are right."""
        gold = self._known.get(question)
        if gold is None:
            return [str(i) for i in range(n)], False
        return [str(i) if i % 2 else gold for i in range(n)], True


class InferenceServer:
    """The handlers."""

    def __init__(self) -> None:
        self._answers = Answers()
        self._replies: dict[int, Replies] = {}
        self._rng = random.Random(0)
        self._latency_s = self._jitter = 0.0
        self._tokens = 300
        self._held = False
        self._ledger = Ledger()

    async def begin(self, request: web.Request) -> web.Response:
        """Behave as asked from now on."""
        asked = await request.json()
        self._latency_s = asked["latency_ms"] / 1000
        self._jitter = asked["jitter"]
        self._tokens = asked["tokens"]
        if self._tokens not in self._replies:
            self._replies[self._tokens] = Replies(self._tokens)
        self._held = False
        self._ledger = Ledger()
        return web.json_response({})

    async def hold(self, request: web.Request) -> web.Response:
        """Answer nothing any more."""
        self._held = True
        return web.json_response(self._ledger.snapshot())

    async def counts(self, request: web.Request) -> web.Response:
        """Return the ledger."""
        return web.json_response(self._ledger.snapshot())

    async def health(self, request: web.Request) -> web.Response:
        """Say that all is well."""
        return web.json_response({})

    async def generate(self, request: web.Request) -> web.Response:
        """Answer one prompt n times."""
        arrived, ledger = time.monotonic(), self._ledger
        ledger.move(+1)
        n = 0
        try:
            asked = await request.json()
            n = asked.get("n", 1)
            body, length, is_known = self._build(asked, n)
            await self._wait(arrived)
        except asyncio.CancelledError:
            if not self._held:
                ledger.cancelled += 1
                ledger.cancelled_rollouts += n
            raise
        finally:
            ledger.move(-1)
        ledger.requests += 1
        ledger.rollouts += n
        ledger.tokens += n * length
        ledger.truncated += n * (length < self._tokens)
        ledger.unknown += not is_known
        return web.Response(body=body, content_type="application/json")

    def _build(self, asked: Mapping[str, Any], n: int) -> tuple[bytes, int, bool]:
        prompt = asked["prompt"]["prompt_token_ids"]
        replies = self._replies[self._tokens]
        question = extract_last_user_message(replies.decode(prompt))
        answers, is_known = self._answers.choices(question, n)
        body, length = replies.build(prompt, answers, asked["max_tokens"])
        return body, length, is_known

    async def _wait(self, arrived: float) -> None:
        spread = 1 + self._jitter * self._rng.uniform(-1, 1)
        left_s = arrived + self._latency_s * spread - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(left_s)
        if self._held:
            await asyncio.Event().wait()

    async def listen(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Take in what one environment's probe tells."""
        while line := await reader.readline():
            self._answers.learn(json.loads(line))
        writer.close()


async def serve(tell: str) -> None:
    """Print the URL, then serve for ever."""
    server = InferenceServer()
    app = web.Application(client_max_size=MAX_LINE_BYTES)
    app.add_routes(
        [
            web.get("/health", server.health),
            web.post("/generate", server.generate),
            web.post("/bench/begin", server.begin),
            web.post("/bench/hold", server.hold),
            web.get("/bench/counts", server.counts),
        ]
    )
    await asyncio.start_unix_server(server.listen, tell, limit=MAX_LINE_BYTES)
    # Without `handler_cancellation` a client that goes away would not be noticed.
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until the standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness.server")
    parser.add_argument("--tell", required=True, help="unix socket for the answers")
    options = parser.parse_args()
    end_with_parent()
    asyncio.run(serve(options.tell))


if __name__ == "__main__":
    main()
