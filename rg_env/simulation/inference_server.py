"""The simulated policy as an inference server over HTTP.

    python -m rg_env.simulation.inference_server --port 9004

It speaks to the env as a vLLM, SGLang, TRL or OpenAI server does (see
`rg_env.simulation.protocols`), with answers of the simulated policy: the host and the
env cannot tell, the ledger at `GET /stats` can. Malformed requests get status 400 and a
JSON object that says what was expected.

What it is not: an inference server. It loads no model, keeps no context limit of its
own and checks no key.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from rg_env.simulation.answer_key import AsyncKey, Key, StaticAnswerKey, read_key
from rg_env.simulation.engine import TOKENIZER_FOLDER, SimulatedEngine, load_tokenizer
from rg_env.simulation.policy import PolicyProfile
from rg_env.simulation.protocols import (
    CHAT,
    COMPLETION,
    TRL,
    Answer,
    Ask,
    BadRequest,
    Body,
    Dialect,
    choose_native,
)

MAX_BODY_BYTES = 64 * 1024**2

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class ServerConfig:
    """Settings of a simulated policy server.

    Attributes:
        key: Where the answers come from; a question outside it is answered by a guess.
        profile: How the simulated policy behaves.
        seed: Decides every completion.
        model_name: What `GET /v1/models` lists.
        tokenizer_folder: Folder of the tokenizer that the env uses, ChatML only.
        default_max_tokens: Limit of a request that names none, positive.
        latency_ms: Wait before every answer, in milliseconds, at least 0.
        token_latency_ms: Further wait for each token of the longest completion.
    """

    key: Key
    profile: PolicyProfile = dataclasses.field(default_factory=PolicyProfile)
    seed: int = 0
    model_name: str = "simulated-policy"
    tokenizer_folder: Path = TOKENIZER_FOLDER
    default_max_tokens: int = 1024
    latency_ms: float = 0.0
    token_latency_ms: float = 0.0


class _PolicyServer:
    """The handlers of one application."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._key = AsyncKey(config.key)
        tokenizer = load_tokenizer(config.tokenizer_folder)
        self._engine = SimulatedEngine(
            self._key, config.profile, config.seed, tokenizer
        )

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "simulated": True})

    async def models(self, request: web.Request) -> web.Response:
        model = {"id": self._config.model_name, "object": "model"}
        return web.json_response({"object": "list", "data": [model]})

    async def stats(self, request: web.Request) -> web.Response:
        ledger = vars(self._engine.ledger)
        return web.json_response({"simulated": True, **ledger})

    async def generate(self, request: web.Request) -> web.Response:
        body = await _read_body(request)
        return await self._reply(choose_native(body), body)

    async def generate_trl(self, request: web.Request) -> web.Response:
        return await self._reply(TRL, await _read_body(request))

    async def complete(self, request: web.Request) -> web.Response:
        return await self._reply(COMPLETION, await _read_body(request))

    async def chat(self, request: web.Request) -> web.Response:
        return await self._reply(CHAT, await _read_body(request))

    async def close(self, app: web.Application) -> None:
        self._key.close()

    async def _reply(self, dialect: Dialect, body: Body) -> web.Response:
        asks = dialect.read(body, self._config.default_max_tokens)
        answers = [await self._answer(ask) for ask in asks]
        await asyncio.sleep(self._latency_s(answers))
        return web.json_response(dialect.shape(body, answers))

    async def _answer(self, ask: Ask) -> Answer:
        prompt = ask.prompt
        try:
            text = prompt if isinstance(prompt, str) else self._engine.decode(prompt)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        length = len(self._engine.encode(prompt) if isinstance(prompt, str) else prompt)
        made = await self._engine.generate(text, ask.n, ask.max_tokens)
        return Answer(text, length, made)

    def _latency_s(self, answers: list[Answer]) -> float:
        longest = max(
            len(generation.token_ids)
            for answer in answers
            for generation in answer.generations
        )
        latency_ms = self._config.latency_ms + longest * self._config.token_latency_ms
        return latency_ms / 1000


async def _read_body(request: web.Request) -> Body:
    try:
        body: Any = await request.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body


@web.middleware
async def _explain_bad_requests(
    request: web.Request, handler: Handler
) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        details = {"message": str(error), "type": "invalid_request_error"}
        return web.json_response({"error": details}, status=400)


def build_app(config: ServerConfig) -> web.Application:
    """Build the application of a simulated policy server.

    Raises:
        ValueError: The tokenizer is not of the demo's format.
        OSError: The tokenizer cannot be read.
    """
    server = _PolicyServer(config)
    app = web.Application(
        middlewares=[_explain_bad_requests], client_max_size=MAX_BODY_BYTES
    )
    app.add_routes(
        [
            web.get("/health", server.health),
            web.get("/stats", server.stats),
            web.get("/v1/models", server.models),
            web.post("/generate", server.generate),
            web.post("/generate/", server.generate_trl),
            web.post("/v1/completions", server.complete),
            web.post("/v1/chat/completions", server.chat),
        ]
    )
    app.on_cleanup.append(server.close)
    return app


@contextlib.asynccontextmanager
async def serve_app(
    app: web.Application, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serve an application while the context lasts.

    Args:
        app: What to serve.
        host: Address to listen on.
        port: Port to listen on; 0 for a free one.

    Yields:
        The base URL, without a slash at its end.

    Raises:
        OSError: The address cannot be listened on.
    """
    # A waiting answer must not hold up the end.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _build_parser() -> argparse.ArgumentParser:
    profile = PolicyProfile()
    parser = argparse.ArgumentParser(
        prog="python -m rg_env.simulation.inference_server",
        description="A simulated policy behind the interfaces of vLLM, SGLang, TRL and"
        " OpenAI servers. It loads no model: answers come from a key, spoiled by dice.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    where = parser.add_argument_group("where it listens")
    where.add_argument("--host", default="127.0.0.1", help="address")
    where.add_argument("--port", type=int, default=9004, help="port; 0 for a free one")
    what = parser.add_argument_group("what it answers")
    what.add_argument(
        "--key", type=Path, help="JSON lines of task, category, question, answer, level"
    )
    what.add_argument(
        "--tokenizer", type=Path, default=TOKENIZER_FOLDER, help="tokenizer folder"
    )
    what.add_argument(
        "--model-name", default="simulated-policy", help="listed by /v1/models"
    )
    what.add_argument(
        "--max-tokens", type=int, default=1024, help="limit if a request has none"
    )
    what.add_argument("--seed", type=int, default=0, help="decides every completion")
    dice = parser.add_argument_group("the simulated policy")
    helps = {
        "mean_skill": "middle of the tasks' skills, in (0, 1)",
        "skill_spread": "half width of their range, in [0, 0.5]",
        "sharpness": "how fast the chance falls with the level",
        "bad_format": "chance of an answer that cannot be extracted",
        "unfinished": "chance of thinking that never ends",
        "hedged": "chance of two answers within one pair of tags",
        "thinking_words": "mean length of the thinking, in words",
    }
    for name, text in helps.items():
        default = getattr(profile, name)
        flag = "--" + name.replace("_", "-")
        dice.add_argument(flag, type=type(default), default=default, help=text)
    speed = parser.add_argument_group("its speed")
    speed.add_argument(
        "--latency-ms", type=float, default=0.0, help="wait before every answer"
    )
    speed.add_argument(
        "--token-latency-ms",
        type=float,
        default=0.0,
        help="further wait for each token of the longest completion",
    )
    return parser


def _build_config(args: argparse.Namespace) -> ServerConfig:
    names = {item.name for item in dataclasses.fields(PolicyProfile)}
    profile = PolicyProfile(**{k: v for k, v in vars(args).items() if k in names})
    return ServerConfig(
        key=read_key(args.key) if args.key else StaticAnswerKey({}),
        profile=profile,
        seed=args.seed,
        model_name=args.model_name,
        tokenizer_folder=args.tokenizer,
        default_max_tokens=args.max_tokens,
        latency_ms=args.latency_ms,
        token_latency_ms=args.token_latency_ms,
    )


async def _serve_until_signal(config: ServerConfig, host: str, port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with serve_app(build_app(config), host, port) as base_url:
        print(f"simulated policy server ready on {base_url}", flush=True)
        await stopped.wait()


def main() -> int:
    """Run the command; returns 2 when a setting or the address cannot be used."""
    parser = _build_parser()
    args = parser.parse_args()
    try:
        asyncio.run(_serve_until_signal(_build_config(args), args.host, args.port))
    except (ValueError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
