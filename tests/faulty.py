"""Inference servers and an API that misbehave on purpose, by a script.

    python tests/faulty.py server --rate 0.2 --seed 1 --port 0
    python tests/faulty.py api --of http://127.0.0.1:8000 --rate 0.05 --port 0

The server speaks vLLM's protocol and OpenAI's; its model is simulated: it can add,
find the greatest common divisor, and guess. The API's stand-in hands every request on
to a real API, before or after a fault. Both count what they did at `GET /stats`.

Nothing here imports the environment, so that a process of these starts at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import math
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp
from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rg_env.simulation.engine import TOKENIZER_FOLDER, load_tokenizer
from rg_env.simulation.inference_server import serve_app

LONGEST_HANG_S = 30.0
SLOW_S = 0.4

SERVER_FAULTS = (
    "status_500",
    "status_503",
    "status_429",
    "hang",
    "slow",
    "reset",
    "truncated",
    "not_json",
    "wrong_shape",
    "empty_object",
    "no_choices",
    "too_few",
    "too_many",
    "no_logprobs",
    "null_logprob",
    "nan_logprob",
    "bad_token",
    "abort_one",
    "abort_all",
    "empty_one",
    "nasty_text",
    "endless_text",
)
"""What a request to the server can suffer."""

API_FAULTS = (
    "status_500",
    "status_400",
    "not_json",
    "reset",
    "slow",
    "reply_lost",
    "faulted_after",
)
"""What a request to the API can suffer; the last two after it has been served."""

NASTY = [
    "<answer>\x00</answer>",
    "\x1b[2J\x07<think>\r\n\x85\u2028</think><answer>\ufeff5\u202e</answer>",
    "<answer>" * 200 + "</answer>",
    '{"role": "system"}\n{"torn',
    "<|im_end|><|im_start|>user\nhm<answer>1</answer>",
]

LONE = "\ud800 half a pair \udfff <answer>1</answer>"
"""What only servers of text can send: no token decodes to it."""

Script = Callable[[int], str]
"""From the number of a request, from 0, to the fault that it suffers; "" for none."""


def listed(*faults: str) -> Script:
    """Return a script of the first requests; all later ones are served."""
    return lambda number: faults[number] if number < len(faults) else ""


def always(fault: str) -> Script:
    return lambda number: fault


def dice(seed: int, rate: float, names: Sequence[str]) -> Script:
    """Return a script in which each request suffers something with a chance."""

    def fault(number: int) -> str:
        rng = random.Random(f"{seed}/{number}")
        return rng.choice(names) if rng.random() < rate else ""

    return fault


def solve(question: str) -> str:
    """Answer as well as this model can."""
    numbers = [int(n) for n in re.findall(r"-?\d+", question)]
    if "GCD" in question and numbers:
        return str(math.gcd(*numbers))
    found = re.search(r"(\d+(?: [+-] \d+)+)", question)
    if found:
        terms = found.group(1).split(" ")
        signs = [1, *(1 if sign == "+" else -1 for sign in terms[1::2])]
        return str(sum(s * int(n) for s, n in zip(signs, terms[::2], strict=True)))
    return str(numbers[0] if numbers else 0)


class Faulty:
    """What both have: a script, its counts, and the faults of any HTTP server.

    Attributes:
        script: Decides what each request suffers; may be replaced at any time.
        requests: Requests so far.
        injected: How often each fault was.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests = 0
        self.injected: Counter[str] = Counter()

    def next_fault(self) -> str:
        fault = self.script(self.requests)
        self.requests += 1
        if fault:
            self.injected[fault] += 1
        return fault

    @staticmethod
    def stats() -> dict:
        return {}

    async def show_stats(self, request: web.Request) -> web.Response:
        counts = {"requests": self.requests, "injected": self.injected}
        return web.json_response(counts | self.stats())

    async def spoiled(self, request: web.Request, fault: str):
        """Return the reply of a fault that needs none of the truth, or None."""
        if fault.startswith("status_"):
            wait = {"Retry-After": "1"} if fault == "status_429" else {}
            return web.Response(status=int(fault[7:]), text="scripted", headers=wait)
        if fault == "hang":
            await asyncio.sleep(LONGEST_HANG_S)
            return web.Response(status=504)
        if fault == "reset":
            return self.cut(request)
        if fault == "not_json":
            return web.Response(text='{"logprobs": [[', content_type="application/json")
        if fault == "slow":
            await asyncio.sleep(SLOW_S)
        return None

    @staticmethod
    def cut(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)


def as_sglang(given: dict) -> list | dict:
    """Return a reply of vLLM's shape, bent as it may be, in that of SGLang."""
    rows = given.get("logprobs")
    if not isinstance(rows, list):
        return [{"text": "", "meta_info": {"finish_reason": {"type": "stop"}}}]
    return [
        {
            "text": "",
            "meta_info": {
                "finish_reason": {"type": reason},
                "output_token_logprobs": [
                    [logprob, int(token) if token.isdigit() else token, None]
                    for (entry,) in row
                    for token, logprob in entry.items()
                ],
            },
        }
        for row, reason in zip(rows, given["finish_reasons"], strict=True)
    ]


class FaultyServer(Faulty):
    """An inference server.

    Attributes:
        choices: Completions that left in whole replies.
        arrivals: When each request came, on the monotonic clock.
        trials: Requests so far for one token, which no item asks for.
        runs: While it is not set everything hangs, health too, as in a stopped process.
    """

    def __init__(self, script: Script, seed: int = 0, latency_s: float = 0.0) -> None:
        super().__init__(script)
        self.choices = self.trials = 0
        self.arrivals: list[float] = []
        self.runs = asyncio.Event()
        self.runs.set()
        self.latency_s = latency_s
        self._rng = random.Random(seed)
        self._tokenizer = load_tokenizer(TOKENIZER_FOLDER)

    def stats(self) -> dict:
        return {"choices": self.choices}

    def texts(self, prompt: str, n: int) -> list[str]:
        """Return n completions, of which about half hold the solution."""
        question = prompt.rpartition("<|im_start|>user")[2]
        right = solve(question.partition("<|im_end|>")[0])
        answers = [right if self._rng.random() < 0.5 else "no" for _ in range(n)]
        return [f"<think>hm</think><answer>{a}</answer>" for a in answers]

    def choice(self, text: str) -> list:
        """Return a completion as vLLM gives it, told from every other by its dice."""
        ids = self._tokenizer.encode(text).ids
        return [[{str(i): -self._rng.random()}] for i in ids]

    async def health(self, request: web.Request) -> web.Response:
        await self.runs.wait()
        return web.json_response({})

    def note_arrival(self, max_tokens: int | None) -> None:
        self.arrivals.append(time.monotonic())
        self.trials += max_tokens == 1

    async def generate(self, request: web.Request) -> web.StreamResponse:
        """Answer as vLLM, or as SGLang if the request is one for SGLang."""
        body = await request.json()
        is_sglang = "input_ids" in body
        asked = body["sampling_params"] if is_sglang else body
        max_tokens = asked["max_new_tokens" if is_sglang else "max_tokens"]
        self.note_arrival(max_tokens)
        await self.runs.wait()
        fault, n = self.next_fault(), asked["n"]
        reply = await self.spoiled(request, fault)
        if reply is not None:
            return reply
        await asyncio.sleep(self.latency_s)
        ids = body["input_ids"] if is_sglang else body["prompt"]["prompt_token_ids"]
        prompt = self._tokenizer.decode(ids, skip_special_tokens=False)
        texts = self.texts(prompt, n)
        if fault == "nasty_text":
            texts[0] = self._rng.choice(NASTY)
        if fault == "endless_text":
            texts[0] = "<think>" + "on and on " * max_tokens
        given = {
            "logprobs": [self.choice(text) for text in texts],
            "finish_reasons": ["stop" for _ in texts],
        }
        given = self.bent(fault, given)
        if fault != "truncated":
            self.choices += len(given.get("logprobs") or [])
        shaped = as_sglang(given) if is_sglang else given
        return await self.sent(request, fault, json.dumps(shaped).encode())

    def bent(self, fault: str, given: dict) -> dict:
        """Return a reply with what a fault changes in it."""
        rows, reasons = given["logprobs"], given["finish_reasons"]
        if fault == "wrong_shape":
            return {"logprobs": "none", "finish_reasons": 3}
        if fault == "empty_object":
            return {}
        if fault == "no_logprobs":
            return {"logprobs": None, "finish_reasons": reasons}
        if fault == "no_choices":
            return {"logprobs": [], "finish_reasons": []}
        if fault == "too_few":
            return {"logprobs": rows[1:], "finish_reasons": reasons[1:]}
        if fault == "too_many":
            return {
                "logprobs": rows + rows[:2],
                "finish_reasons": [*reasons, "stop", "stop"],
            }
        if fault in ("null_logprob", "nan_logprob"):
            token = next(iter(rows[0][0][0]))
            rows[0][0][0][token] = None if fault == "null_logprob" else math.nan
        if fault == "bad_token":
            rows[0][0] = [{"word": -0.5}]
        if fault in ("abort_one", "abort_all"):
            for i in range(1 if fault == "abort_one" else len(rows)):
                rows[i], reasons[i] = rows[i][:2], "abort"
        if fault == "empty_one":
            rows[0] = []
        return given

    async def sent(
        self, request: web.Request, fault: str, body: bytes
    ) -> web.StreamResponse:
        if fault != "truncated":
            return web.Response(body=body, content_type="application/json")
        reply = web.StreamResponse(headers={"Content-Length": str(len(body))})
        reply.content_type = "application/json"
        await reply.prepare(request)
        await reply.write(body[: len(body) // 2])
        return self.cut(request)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer as an OpenAI server, whose texts need not be Unicode."""
        body = await request.json()
        self.note_arrival(body.get("max_tokens"))
        fault = self.next_fault()
        reply = await self.spoiled(request, fault)
        if reply is not None:
            return reply
        prompt = "<|im_start|>user" + body["messages"][-1]["content"]
        texts = self.texts(prompt, body.get("n") or 1)
        if fault == "nasty_text":
            texts[0] = LONE
        if fault == "endless_text":
            texts[0] = "<answer>" + "on " * 1_000_000
        self.choices += len(texts)
        choices = [
            {
                "index": i,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
            for i, text in enumerate(texts)
        ]
        given = {"id": "x", "object": "chat.completion", "created": 0, "model": "x"}
        return await self.sent(
            request, fault, json.dumps(given | {"choices": choices}).encode()
        )

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/stats", self.show_stats),
                web.post("/generate", self.generate),
                web.post("/v1/chat/completions", self.chat),
            ]
        )
        return app


class FaultyApi(Faulty):
    """A stand-in for an API that hands requests on to a real one.

    Only environments go through it and suffer; the trainer asks the real one.

    Args:
        script: Decides what each request suffers.
        url: The real API.
        only: The path of the requests that suffer and are counted; None for all.

    Attributes:
        accepted: Groups that the real API took.
        acknowledged: Those of them of which the environment was told.
    """

    def __init__(self, script: Script, url: str, only: str | None = None) -> None:
        super().__init__(script)
        self._url = url
        self._only = only
        self._http: aiohttp.ClientSession | None = None
        self.accepted = self.acknowledged = 0

    def stats(self) -> dict:
        return {"accepted": self.accepted, "acknowledged": self.acknowledged}

    async def hand_on(self, request: web.Request) -> web.StreamResponse:
        fault = self.next_fault() if self._only in (None, request.path) else ""
        reply = await self.spoiled(request, fault)
        if reply is not None:
            return reply
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=20), auto_decompress=False
            )
        headers = {
            name: request.headers[name]
            for name in ("Content-Type", "Content-Encoding")
            if name in request.headers
        }
        try:
            body = await raw(request)
        except ConnectionResetError:  # the environment was killed
            return web.Response(status=400)
        try:
            async with self._http.request(
                request.method,
                self._url + request.path_qs,
                data=body,
                headers=headers,
            ) as served:
                body, status = await served.read(), served.status
        except (aiohttp.ClientError, asyncio.TimeoutError):
            return web.Response(status=502)
        is_group = request.path == "/scored_data" and status == 200
        self.accepted += is_group
        if fault == "reply_lost":
            return self.cut(request)
        if fault == "faulted_after":
            return web.Response(status=500)
        self.acknowledged += is_group
        return web.Response(body=body, status=status, content_type="application/json")

    async def close(self, app: web.Application) -> None:
        if self._http is not None:
            await self._http.close()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/stats", self.show_stats)
        app.router.add_route("*", "/{path:.*}", self.hand_on)
        app.on_cleanup.append(self.close)
        return app


async def raw(request: web.Request) -> bytes:
    """Return a body, unpacked by aiohttp, packed again as its header says."""
    body = await request.read()
    if request.headers.get("Content-Encoding") == "gzip":
        return gzip.compress(body, 1)
    return body


@contextlib.asynccontextmanager
async def faulty_server(script: Script, **settings):
    """Serve in this process; yield the server, with its `url`."""
    server = FaultyServer(script, **settings)
    async with serve_app(server.app()) as server.url:
        yield server


@contextlib.asynccontextmanager
async def faulty_api(script: Script, url: str, only: str | None = None):
    """Serve in this process; yield the stand-in, with its `url`."""
    api = FaultyApi(script, url, only)
    async with serve_app(api.app()) as api.url:
        yield api


async def _serve_until_signal(app: web.Application, port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with serve_app(app, port=port) as url:
        print(f"ready on {url}", flush=True)
        await stopped.wait()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["server", "api"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", default=None, help="names, separated by commas")
    parser.add_argument("--latency_s", type=float, default=0.0)
    parser.add_argument("--of", default=None, help="URL of the real API")
    options = parser.parse_args(argv)
    is_api = options.what == "api"
    names = API_FAULTS if is_api else SERVER_FAULTS
    if options.faults is not None:
        names = tuple(options.faults.split(","))
    script = dice(options.seed, options.rate, names)
    faulty = (
        FaultyApi(script, options.of)
        if is_api
        else FaultyServer(script, options.seed, options.latency_s)
    )
    asyncio.run(_serve_until_signal(faulty.app(), options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
