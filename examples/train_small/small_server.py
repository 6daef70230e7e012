"""A small inference server: any `Sampler` behind OpenAI's protocol for completions.

    python -m examples.train_small.small_server FOLDER --port 9004

It is queried as a stock vLLM in its development mode is, for machines that cannot have
one: `/v1/completions` with a prompt as token ids, and the pages with which
`examples/trainer` hands weights over. Requests that arrive together are sampled as one
batch; those that arrive meanwhile are the next one. New weights are taken between two
batches, so no completion is of two versions.

What it does not do is refused with a sentence: other ways of sampling, texts as
prompts, streams, chats. It ends with its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from aiohttp import web
from transformers import AutoTokenizer

from examples.train_small.recipe import MODEL_NAME
from examples.train_small.sampler import Sample, Sampler
from rg_env import ending
from rg_env.demo.inference_server import (
    MAX_BODY_BYTES,
    BadRequestError,
    Body,
    explain_bad_requests,
    read_body,
    read_query,
    serve_announced,
    shape_reply,
)
from rg_env.demo.model import Generation
from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

MAX_MODEL_LEN = 4096
"""Tokens of a prompt and its completion together."""

DEFAULT_MAX_TOKENS = 16
"""Tokens of a completion where a request does not say, as OpenAI has it."""

QUIET_S, TOGETHER_S = 0.01, 0.1
"""A batch begins when no request came for the first, or the second is over."""

MOST_ROWS = 256
"""Completions in a batch, unless one request wants more: they take memory."""

OWN_FIELDS = (
    *("model", "prompt", "n", "max_tokens", "temperature"),
    *("return_token_ids", "return_tokens_as_token_ids"),
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
class Request:
    """One request for completions, which come as the result of a future."""

    prompt: list[int]
    n: int
    max_tokens: int
    temperature: float
    made: asyncio.Future[list[Sample]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


def read_request(body: Body, vocabulary: int) -> Request:
    """Read the body of a request; token ids are below `vocabulary`.

    Raises:
        BadRequestError: It asks for what is not done here, or is malformed.
    """
    for name, value in body.items():
        allowed = NEUTRAL_FIELDS.get(name, [])
        if name not in OWN_FIELDS and value is not None and value not in allowed:
            raise BadRequestError(f"`{name}`: the small server cannot do {value!r}")
    if body.get("model") not in (None, MODEL_NAME):
        raise BadRequestError(f"`model`: there is only {MODEL_NAME!r} here")
    ask = read_query({"max_tokens": DEFAULT_MAX_TOKENS, **body})
    temperature = body.get("temperature", 1.0)
    if isinstance(ask.prompt, str):
        raise BadRequestError("`prompt`: the small server takes a list of token ids")
    if not 0 <= min(ask.prompt) <= max(ask.prompt) < vocabulary:
        raise BadRequestError(
            f"`prompt`: token ids lie in [0, {vocabulary}); it was encoded with another"
            " tokenizer than the model's"
        )
    if len(ask.prompt) + ask.max_tokens > MAX_MODEL_LEN:
        raise BadRequestError(
            f"the context length is {MAX_MODEL_LEN} tokens, and this is a prompt of"
            f" {len(ask.prompt)} with `max_tokens` {ask.max_tokens}"
        )
    if type(temperature) not in (int, float) or not 0 <= temperature < float("inf"):
        raise BadRequestError(
            f"`temperature`: expected at least 0, found {temperature!r}"
        )
    return Request(ask.prompt, ask.n, ask.max_tokens, temperature)


class Batches:
    """Samples requests that arrive together as one batch, off the event loop.

    Args:
        policy: Is used by one thread only.
        stop_ids: End a completion.
    """

    def __init__(self, policy: Sampler, stop_ids: frozenset[int]) -> None:
        self._policy, self._stop_ids = policy, stop_ids
        self._seeds = itertools.count()
        self._waiting: list[Request] = []
        self._arrived = asyncio.Event()

    async def sample(self, request: Request) -> list[Sample]:
        """Wait for the completions of a request, n of them."""
        self._waiting.append(request)
        self._arrived.set()
        return await request.made

    async def load(self, folder: Path) -> None:
        """Take new weights, after the batch that is being sampled."""
        await off_loop(self._policy.load, folder)

    async def run(self) -> None:
        """Sample what comes, for ever."""
        while True:
            await self._wait()
            batch = self._take()
            try:
                made = await off_loop(self._sample, batch) if batch else []
            except Exception as error:
                logger.exception("a batch of %d requests failed", len(batch))
                for request in batch:
                    if not request.made.done():
                        request.made.set_exception(error)
                continue
            for request, samples in zip(batch, made, strict=True):
                if not request.made.done():  # else its client has left
                    request.made.set_result(samples)

    async def _wait(self) -> None:
        """Wait for a request, and for those that come with it."""
        await self._arrived.wait()
        deadline = time.monotonic() + TOGETHER_S
        while self._arrived.is_set() and time.monotonic() < deadline:
            self._arrived.clear()
            await asyncio.sleep(QUIET_S)
        self._arrived.clear()

    def _take(self) -> list[Request]:
        """Take requests of one temperature, the oldest first."""
        taken: list[Request] = []
        left: list[Request] = []
        rows = 0
        for request in self._waiting:
            if request.made.done():  # its client has left
                continue
            fits = not taken or (
                request.temperature == taken[0].temperature
                and rows + request.n <= MOST_ROWS
            )
            (taken if fits else left).append(request)
            rows += request.n * fits
        self._waiting = left
        if left:
            self._arrived.set()
        return taken

    def _sample(self, batch: Sequence[Request]) -> list[list[Sample]]:
        """Sample a batch; for the thread.

        Those with a lower limit than the longest are cut there: a token depends on none
        after it.
        """
        samples = iter(
            self._policy.sample(
                [request.prompt for request in batch for _ in range(request.n)],
                max(request.max_tokens for request in batch),
                batch[0].temperature,
                self._stop_ids,
                next(self._seeds),
            )
        )
        return [
            [
                (ids[: request.max_tokens], logprobs[: request.max_tokens])
                for ids, logprobs in itertools.islice(samples, request.n)
            ]
            for request in batch
        ]


class SmallServer:
    """The handlers of the server.

    Args:
        policy: Samples; its weights are those in the folder.
        folder: Of the model: its weights as the policy reads them, and its tokenizer.
    """

    def __init__(self, policy: Sampler, folder: Path) -> None:
        self._folder = folder
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._stop_ids = frozenset({int(self._tokenizer.eos_token_id)})
        self._batches = Batches(policy, self._stop_ids)

    async def running(self, app: web.Application) -> AsyncIterator[None]:
        """Sample while the application runs."""
        task = asyncio.ensure_future(self._batches.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def page(self, request: web.Request) -> web.Response:
        """Answer what is always the same: there is no cache, and no need of a pause."""
        model = {
            "id": MODEL_NAME,
            "object": "model",
            "owned_by": "small_server",
            "root": str(self._folder),
            "max_model_len": MAX_MODEL_LEN,
        }
        pages = {
            "/v1/models": {"object": "list", "data": [model]},
            "/version": {"version": "0.0.0+small_server"},
            "/is_paused": {"is_paused": False},
            "/reset_prefix_cache": {"success": True},
        }
        return web.json_response(pages.get(request.path, {}))

    async def complete(self, request: web.Request) -> web.Response:
        """Complete a prompt."""
        body = await read_body(request)
        asked = read_request(body, len(self._tokenizer))
        try:
            samples = await self._batches.sample(asked)
        except Exception as error:  # noqa: BLE001 - as many kinds as policies
            return _failure("the policy could not sample", error)
        generations = [self._generation(*sample) for sample in samples]
        encoded = orjson.dumps(shape_reply(body, asked.prompt, generations))
        return web.Response(body=encoded, content_type="application/json")

    def _generation(self, ids: list[int], logprobs: list[float]) -> Generation:
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        reason = "stop" if ids[-1] in self._stop_ids else "length"
        return Generation(text, ids, logprobs, reason)

    async def call(self, request: web.Request) -> web.Response:
        """Take the weights that are in the folder now."""
        body = await read_body(request)
        if body != {"method": "reload_weights"}:
            raise BadRequestError(
                'the small server does {"method": "reload_weights"} alone, from the'
                f" folder it began with; found {body}"
            )
        try:
            await self._batches.load(self._folder)
        except Exception as error:  # noqa: BLE001 - as many kinds as policies
            return _failure(f"no weights could be read from {self._folder}", error)
        return web.json_response({"results": [None]})

    async def nothing(self, request: web.Request) -> web.Response:
        """Say that there is no such page.

        Raises:
            BadRequestError: It is that of chats, without which `serve` would take this
                for no server.
        """
        message = f"the small server has no {request.method} {request.path}"
        if request.path == "/v1/chat/completions":
            raise BadRequestError(
                f"{message}: it completes token ids, as of type `vllm`"
            )
        return web.json_response({"error": {"message": message}}, status=404)


def _failure(what: str, error: Exception) -> web.Response:
    message = f"{what} ({type(error).__name__}: {error}); see the server's log"
    return web.json_response({"error": {"message": message}}, status=500)


def build_app(server: SmallServer) -> web.Application:
    """Build the application of a small server."""
    app = web.Application(
        middlewares=[explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    app.cleanup_ctx.append(server.running)
    told = ("/health", "/v1/models", "/version", "/is_paused")
    done = ("/pause", "/resume", "/reset_prefix_cache")
    app.add_routes(
        [
            *(web.get(path, server.page) for path in told),
            *(web.post(path, server.page) for path in done),
            web.post("/v1/completions", server.complete),
            web.post("/collective_rpc", server.call),
            web.route("*", "/{any:.*}", server.nothing),
        ]
    )
    return app


def _torch_sampler(folder: Path) -> Sampler:
    # Not above: the tests serve a policy without torch.
    from examples.train_small.torch_sampler import TorchSampler

    return TorchSampler(folder)


def main(
    argv: Sequence[str] | None = None,
    make_policy: Callable[[Path], Sampler] = _torch_sampler,
) -> int:
    """Serve until a signal comes.

    Args:
        argv: The command line; None for this process's.
        make_policy: From the folder to the policy.
    """
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_small.small_server",
        description="A small inference server. It ends with its parent.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("folder", type=Path, help="of the model and its tokenizer")
    add("--port", type=int, default=0, help="0 for a free one")
    options = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = "1"  # of torch; the other cores are the trainer's
    server = SmallServer(make_policy(options.folder), options.folder)
    ending.run(serve_announced(build_app(server), "small server", options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
