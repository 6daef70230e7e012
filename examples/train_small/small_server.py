"""A small inference server: any `Policy` behind OpenAI's protocol for completions.

    python -m examples.train_small.small_server FOLDER --port 9004

    GET  /health, /v1/models, /version
    POST /v1/completions       a prompt as token ids; true ids and log-probabilities
    POST /collective_rpc       {"method": "reload_weights"}: those now in the folder
    POST /reset_prefix_cache   answered, for there is no cache

It is asked as a stock vLLM is (`return_token_ids`, and the last two as in vLLM's
development mode), for machines that cannot have one. Requests that arrive together are
sampled as one batch; those that arrive while it is sampled are the next one. New
weights are taken between two batches, so no completion is of two versions.

What it does not do is refused with a sentence: other ways of sampling, texts as
prompts, streams, chats. It ends when its standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aiohttp import web
from transformers import AutoTokenizer

from examples.train_small.policy import MODEL_NAME, Policy, Sample
from rg_env.off_loop import off_loop
from rg_env.simulation.child_process import announce, end_with_parent
from rg_env.simulation.inference_server import (
    MAX_BODY_BYTES,
    catch_signals,
    explain_bad_requests,
    read_body,
    serve_app,
)
from rg_env.simulation.protocols.protocol import BadRequest, Body, read_int

logger = logging.getLogger(__name__)

VERSION = "0.0.0+small_server"
MAX_CHOICES = 1024
MAX_MODEL_LEN = 4096
DEFAULT_MAX_TOKENS = 16
"""Tokens of a completion where a request does not say, as OpenAI has it."""

QUIET_S = 0.01
TOGETHER_S = 0.1
"""A batch begins when no request came for the first, or the second is over."""

MOST_ROWS = 256
"""Completions in a batch: what they take is memory for keys and values."""

OWN_FIELDS = frozenset(
    {
        "model",
        "prompt",
        "n",
        "max_tokens",
        "temperature",
        "return_token_ids",
        "return_tokens_as_token_ids",
    }
)
NEUTRAL_FIELDS: Mapping[str, Sequence[Any]] = MappingProxyType(
    {
        "logprobs": [0],
        "top_p": [1],
        "top_k": [-1, 0],
        "min_p": [0],
        "repetition_penalty": [1],
        "presence_penalty": [0],
        "frequency_penalty": [0],
        "stop": [[]],
        "stream": [False],
    }
)
"""What may be asked for because it changes nothing; null may be too."""


@dataclass(frozen=True)
class Ask:
    """One request for completions.

    Attributes:
        prompt: Token ids.
        n: Completions of it.
        max_tokens: Of each completion at most.
        temperature: At least 0.
    """

    prompt: list[int]
    n: int
    max_tokens: int
    temperature: float


def read_ask(body: Body, vocabulary: int, max_model_len: int) -> Ask:
    """Read the body of a request.

    Args:
        body: As it came.
        vocabulary: Token ids are below it.
        max_model_len: Tokens of a prompt and its completion together.

    Raises:
        BadRequest: It asks for what is not done here, or is malformed.
    """
    for field, value in body.items():
        _check_field(field, value)
    prompt = body.get("prompt")
    is_ids = isinstance(prompt, list) and all(type(token) is int for token in prompt)
    if not is_ids or not prompt:
        raise BadRequest(
            "`prompt`: the small server takes one list of token ids, not empty"
        )
    if not 0 <= min(prompt) <= max(prompt) < vocabulary:
        raise BadRequest(
            f"`prompt`: token ids lie in [0, {vocabulary}), found {min(prompt)} to"
            f" {max(prompt)}; it was encoded with another tokenizer than the model's"
        )
    max_tokens = read_int(body, ["max_tokens"], DEFAULT_MAX_TOKENS, max_model_len)
    if len(prompt) + max_tokens > max_model_len:
        raise BadRequest(
            f"the context length is {max_model_len} tokens, and this is a prompt of"
            f" {len(prompt)} with `max_tokens` {max_tokens}"
        )
    return Ask(
        prompt,
        read_int(body, ["n"], 1, MAX_CHOICES),
        max_tokens,
        _read_temperature(body.get("temperature")),
    )


def _check_field(field: str, value: Any) -> None:
    """Refuse what is not known, or would change something."""
    if field in OWN_FIELDS or value is None:
        return
    if field not in NEUTRAL_FIELDS:
        raise BadRequest(f"`{field}`: the small server does not know it; leave it out")
    if value not in NEUTRAL_FIELDS[field]:
        allowed = " or ".join(map(repr, NEUTRAL_FIELDS[field]))
        raise BadRequest(
            f"`{field}`: the small server can only do {allowed}, found {value!r}; use"
            " vLLM for more"
        )


def _read_temperature(value: Any) -> float:
    if value is None:
        return 1.0
    if type(value) not in (int, float) or not 0 <= value < float("inf"):
        raise BadRequest(f"`temperature`: expected at least 0, found {value!r}")
    return float(value)


class Batches:
    """Samples requests that arrive together as one batch, off the event loop.

    Args:
        policy: Is used by one thread only.
        stop_ids: End a completion.
        seed: Of the first batch; each one has its own.
        most_rows: Completions in a batch at most, unless one request wants more.
    """

    def __init__(
        self,
        policy: Policy,
        stop_ids: frozenset[int],
        seed: int = 0,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._policy, self._stop_ids = policy, stop_ids
        self._seeds = itertools.count(seed)
        self._most_rows = most_rows
        self._waiting: list[tuple[Ask, asyncio.Future[list[Sample]]]] = []
        self._arrived = asyncio.Event()

    async def sample(self, ask: Ask) -> list[Sample]:
        """Wait for the completions of a request, n of them."""
        future: asyncio.Future[list[Sample]] = (
            asyncio.get_running_loop().create_future()
        )
        self._waiting.append((ask, future))
        self._arrived.set()
        return await future

    async def load(self, folder: Path) -> None:
        """Take new weights, after the batch that is being sampled."""
        await off_loop(self._policy.load, folder)

    async def run(self) -> None:
        """Sample what comes, for ever."""
        while True:
            await self._wait()
            batch = self._take()
            if self._waiting:
                self._arrived.set()
            try:
                made = await off_loop(self._sample, [ask for ask, _ in batch])
            except Exception as error:
                logger.exception("a batch of %d requests failed", len(batch))
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), samples in zip(batch, made, strict=True):
                if not future.done():  # else its client has left
                    future.set_result(samples)

    async def _wait(self) -> None:
        """Wait for a request, and for those that come with it."""
        await self._arrived.wait()
        deadline = time.monotonic() + TOGETHER_S
        while self._arrived.is_set() and time.monotonic() < deadline:
            self._arrived.clear()
            await asyncio.sleep(QUIET_S)
        self._arrived.clear()

    def _take(self) -> list[tuple[Ask, asyncio.Future[list[Sample]]]]:
        """Take requests of one temperature, the oldest first."""
        waiting = [(ask, future) for ask, future in self._waiting if not future.done()]
        taken: list[tuple[Ask, asyncio.Future[list[Sample]]]] = []
        left: list[tuple[Ask, asyncio.Future[list[Sample]]]] = []
        rows = 0
        for ask, future in waiting:
            fits = not taken or (
                ask.temperature == taken[0][0].temperature
                and rows + ask.n <= self._most_rows
            )
            (taken if fits else left).append((ask, future))
            rows += ask.n * fits
        self._waiting = left
        return taken

    def _sample(self, asks: Sequence[Ask]) -> list[list[Sample]]:
        """Sample a batch; for the thread.

        Those with a lower limit than the longest are cut there: a token depends on none
        after it.
        """
        if not asks:
            return []
        samples = self._policy.sample(
            [ask.prompt for ask in asks for _ in range(ask.n)],
            max(ask.max_tokens for ask in asks),
            asks[0].temperature,
            self._stop_ids,
            next(self._seeds),
        )
        made = iter(samples)
        return [
            [
                (ids[: ask.max_tokens], logprobs[: ask.max_tokens])
                for ids, logprobs in itertools.islice(made, ask.n)
            ]
            for ask in asks
        ]


class SmallServer:
    """The handlers of the server.

    Args:
        policy: Samples; its weights are those in the folder.
        folder: Of the model: its weights as the policy reads them, and its tokenizer.
        seed: Decides what is sampled.
        max_model_len: Tokens of a prompt and its completion together.
    """

    def __init__(
        self,
        policy: Policy,
        folder: Path,
        seed: int = 0,
        max_model_len: int = MAX_MODEL_LEN,
    ) -> None:
        self._folder, self._max_model_len = folder, max_model_len
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._stop_ids = frozenset({int(self._tokenizer.eos_token_id)})
        self._batches = Batches(policy, self._stop_ids, seed)

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """Sample while the application runs."""
        task = asyncio.ensure_future(self._batches.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def health(self, request: web.Request) -> web.Response:
        """Say that all is well."""
        return web.Response()

    async def models(self, request: web.Request) -> web.Response:
        """Name the one model."""
        model = {
            "id": MODEL_NAME,
            "object": "model",
            "owned_by": "small_server",
            "max_model_len": self._max_model_len,
        }
        return web.json_response({"object": "list", "data": [model]})

    async def version(self, request: web.Request) -> web.Response:
        """Name the version, as vLLM does."""
        return web.json_response({"version": VERSION})

    async def complete(self, request: web.Request) -> web.Response:
        """Complete a prompt."""
        body = await read_body(request)
        if body.get("model") not in (None, MODEL_NAME):
            raise BadRequest(f"`model`: there is only {MODEL_NAME!r} here")
        ask = read_ask(body, len(self._tokenizer), self._max_model_len)
        try:
            samples = await self._batches.sample(ask)
        except Exception as error:  # noqa: BLE001 - as many kinds as policies
            return _failure("the policy could not sample", error)
        return web.json_response(self._shape(body, ask, samples))

    async def call(self, request: web.Request) -> web.Response:
        """Take the weights that are in the folder now."""
        body = await read_body(request)
        asked = {name: value for name, value in body.items() if value}
        if asked != {"method": "reload_weights"}:
            raise BadRequest(
                'the small server does {"method": "reload_weights"} alone, from the'
                f" folder it began with; found {body}"
            )
        try:
            await self._batches.load(self._folder)
        except Exception as error:  # noqa: BLE001 - as many kinds as policies
            return _failure(f"no weights could be read from {self._folder}", error)
        return web.json_response({"results": [None]})

    async def reset(self, request: web.Request) -> web.Response:
        """Say that no prefix of an earlier request is kept."""
        return web.json_response({"success": True})

    async def chat(self, request: web.Request) -> web.Response:
        """Refuse a chat; were there no such page, `serve` would take it for no server.

        Raises:
            BadRequest: Always.
        """
        raise BadRequest(
            "the small server completes token ids and has no chats; with"
            " `--openai.server_type vllm` the environment asks it for those"
        )

    async def nothing(self, request: web.Request) -> web.Response:
        """Say that there is no such page."""
        what = f"{request.method} {request.path}"
        message = f"the small server has no {what}; use /v1/completions, or vLLM"
        return web.json_response({"error": {"message": message}}, status=404)

    def _shape(self, body: Body, ask: Ask, samples: Sequence[Sample]) -> Body:
        count = sum(len(ids) for ids, _ in samples)
        return {
            "id": "small_server",
            "object": "text_completion",
            "created": int(time.time()),
            "model": MODEL_NAME,
            "choices": [
                {"index": index, **self._shape_one(body, ask, ids, logprobs)}
                for index, (ids, logprobs) in enumerate(samples)
            ],
            "usage": {
                "prompt_tokens": len(ask.prompt),
                "completion_tokens": count,
                "total_tokens": len(ask.prompt) + count,
            },
        }

    def _shape_one(
        self, body: Body, ask: Ask, ids: list[int], logprobs: list[float]
    ) -> Body:
        is_whole = ids[-1] in self._stop_ids
        shaped: Body = {
            "text": self._tokenizer.decode(ids, skip_special_tokens=True),
            "logprobs": None,
            "finish_reason": "stop" if is_whole else "length",
            "stop_reason": None,
        }
        if body.get("logprobs") is not None:
            tokens = (
                [f"token_id:{token}" for token in ids]
                if body.get("return_tokens_as_token_ids")
                else self._tokenizer.convert_ids_to_tokens(ids)
            )
            shaped["logprobs"] = {"tokens": tokens, "token_logprobs": logprobs}
        if body.get("return_token_ids"):
            shaped |= {"token_ids": ids, "prompt_token_ids": ask.prompt}
        return shaped


def _failure(what: str, error: Exception) -> web.Response:
    message = f"{what} ({type(error).__name__}: {error}); see the server's log"
    return web.json_response({"error": {"message": message}}, status=500)


def build_app(server: SmallServer) -> web.Application:
    """Build the application of a small server."""
    app = web.Application(
        middlewares=[explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    app.cleanup_ctx.append(server.running)
    app.add_routes(
        [
            web.get("/health", server.health),
            web.get("/v1/models", server.models),
            web.get("/version", server.version),
            web.post("/v1/completions", server.complete),
            web.post("/collective_rpc", server.call),
            web.post("/reset_prefix_cache", server.reset),
            web.route("*", "/v1/chat/completions", server.chat),
            web.route("*", "/{any:.*}", server.nothing),
        ]
    )
    return app


def _torch_policy(folder: Path, device: str) -> Policy:
    # Not above: the tests serve a policy without torch.
    from examples.train_small.torch_policy import TorchPolicy

    return TorchPolicy(folder, device=device)


async def _serve(server: SmallServer, host: str, port: int) -> None:
    stopped = catch_signals()
    app = build_app(server)
    async with serve_app(app, host, port, notices_departures=True) as url:
        announce(url, "small server")
        await stopped.wait()


def main(
    argv: Sequence[str] | None = None,
    make_policy: Callable[[Path, str], Policy] = _torch_policy,
) -> int:
    """Serve until the standard input closes or a signal comes.

    Args:
        argv: The command line; None for this process's.
        make_policy: From the folder and the device to the policy.
    """
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_small.small_server",
        description="A small inference server. It ends when its standard input closes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("folder", type=Path, help="of the model and its tokenizer")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=0, help="0 for a free one")
    add("--device", default="cpu", help="cpu, cuda or another one of torch")
    add("--seed", type=int, default=0, help="decides what is sampled")
    add("--max-model-len", type=int, default=MAX_MODEL_LEN, help="prompt and answer")
    options = parser.parse_args(argv)
    end_with_parent()
    server = SmallServer(
        make_policy(options.folder, options.device),
        options.folder,
        options.seed,
        options.max_model_len,
    )
    asyncio.run(_serve(server, options.host, options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
