"""The parts of the runs of `golden_runs.py`: subclasses with hooks, and a server."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

from atroposlib.envs.base import BaseEnv

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.errors import RunError

PAUSE_S = 0.05
LEFT_OUT = {"time", "seconds", "total_evaluation_time_seconds", "versions"}
LEFT_OUT |= {"step", "place", "events/items_overtaken"}
"""Keys of what depends on time, or on the order in which groups of tasks end."""


def digest(value: Any) -> str:
    text = json.dumps(value, default=lambda thing: "object", sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def plain(value: Any) -> Any:
    """Return a value without what differs between runs, long parts as digests."""
    if isinstance(value, dict):
        kept = {
            name: plain(each)
            for name, each in value.items()
            if name not in LEFT_OUT and not str(name).startswith("server/")
        }
        return digest(kept) if len(kept) > 60 else kept  # all settings
    if isinstance(value, list | tuple):
        is_long = len(value) > 12 or (value and isinstance(value[0], list | dict))
        made = [plain(each) for each in value]
        return digest(made) if is_long else made
    if isinstance(value, str) and len(value) > 60:
        return f"{value[:24]}... {digest(value)}"
    return value


# -- hooks -----------------------------------------------------------------------------


class _Exact:
    def score_answer(self, answer: Any, entry: Any) -> float:
        return float(answer == entry["answer"])


ENTRY = {"question": "1 + 1?", "answer": "2", "metadata": {"source_dataset": "sums"}}
GROUP = {
    "tokens": [[1, 2]] * 4,
    "masks": [[-100, 2]] * 4,
    "scores": [1.0, 0.5, 0.0, 0.0],
    "overrides": [{}] * 4,
    "inference_logprobs": [[1.0, -0.5]] * 4,
}


def sent(number: int) -> Callable[[], Any]:
    return lambda: os.kill(os.getpid(), number)


def _coroutine(value: Any) -> Any:
    async def hook(self: Any, *args: Any, **how: Any) -> Any:
        return value() if callable(value) else value

    return hook


HOOKS: dict[str, Any] = {
    "get_next_item": _coroutine(
        lambda: (({"role": "user", "content": "1 + 1?"},), ENTRY, _Exact())
    ),
    "collect_trajectories": _coroutine(lambda: (dict(GROUP), [])),
    "score": _coroutine(lambda: dict(GROUP)),
    "postprocess_histories": _coroutine(lambda: {**GROUP, "group_overrides": {"a": 1}}),
    "handle_send_to_api": _coroutine(sent(signal.SIGINT)),
    "rollout_and_score_eval": _coroutine(0.25),
    "add_rollouts_for_wandb": _coroutine(None),
    "wandb_log": _coroutine(None),
    "_extract_final_answer": lambda self, text: text[-11:-9],
    "_score_answer_with_both_formats": lambda self, *args: 0.5,
}
"""Hook to one that does not call `super()`."""


def noted(name: str, owner: Any, own: Any = None) -> Any:
    """Return a hook that notes its call; `owner` has it, None if an instance has."""

    def hook(self: Any, *args: Any, **how: Any) -> Any:
        with Path("calls.txt").open("a") as calls:
            given = [digest(plain(each)) for each in (*args, *how.items())]
            print(name, *given, file=calls)
        if own is not None:
            return own(self, *args, **how)
        above = super(owner, self) if owner else super(type(self), self)
        return getattr(above, name)(*args, **how)

    return hook


def hooked(place: str, hooks: dict[str, Any]) -> Any:
    """Return a class with hooks of its own, each with one that replaces it or None."""
    mixin, own = type("Mixin", (BaseEnv,), {}), type("Own", (ReasoningGymEnv,), {})
    if place == "instance":

        def assign(self: Any, *args: Any, **how: Any) -> None:
            super(own, self).__init__(*args, **how)
            for name, replaced in hooks.items():
                hook = functools.partial(noted(name, None, replaced), self)
                setattr(self, name, hook)

        own.__init__ = assign
        return own
    owner = own if place == "subclass" else mixin
    for name, replaced in hooks.items():
        setattr(owner, name, noted(name, owner, replaced))
    bases = {"before": (mixin, ReasoningGymEnv), "behind": (ReasoningGymEnv, mixin)}
    return type("Own", bases[place], {}) if place in bases else own


def at(call: int, name: str, fault: Callable[[], Any], pause_s: float = PAUSE_S) -> Any:
    """Return a class with a fault at one call of a hook; 0 is every second one."""
    calls = 0

    async def hook(self: Any, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call or (call == 0 and calls % 2):
            fault()
            await asyncio.sleep(pause_s)  # in which a signal is heard
        return await getattr(super(own, self), name)(*args)

    own = type("Own", (ReasoningGymEnv,), {name: hook})
    return own


def failing(name: str = "RuntimeError") -> Callable[[], Any]:
    def fault() -> None:
        ours = {each.__name__: each for each in RunError.__subclasses__()}
        raise ours.get(name, RuntimeError)("on purpose")

    return fault


# -- an inference server ---------------------------------------------------------------

REFUSALS = 3  # as many as `evaluate` takes


class Model(BaseHTTPRequestHandler):
    """Answers in the forms of OpenAI; refuses some prompts, some times."""

    refused: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        self._reply(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_probe = body.get("max_tokens", 99) < 9
        if not is_probe:
            with Path("requests.txt").open("a") as requests:
                print(self.path, json.dumps(plain(body), sort_keys=True), file=requests)
        prompt = digest(body.get("messages") or body.get("prompt"))
        self.refused[prompt] += 1
        if not is_probe and int(prompt, 16) % 2 and self.refused[prompt] <= REFUSALS:
            return self._reply(400, {"error": {"message": "refused"}})
        choices = [self._choice(number) for number in range(body.get("n", 1))]
        return self._reply(200, {"choices": choices, "model": "m"})

    def _choice(self, number: int) -> dict[str, Any]:
        text = f"<answer>{number}</answer>"
        ids = [ord(character) - 30 for character in text]  # of the project's tokenizer
        return {
            "index": number,
            "finish_reason": "stop",
            "text": text,
            "message": {"role": "assistant", "content": text},
            "token_ids": ids,
            "logprobs": {"token_logprobs": [-0.5] * len(ids)},
        }

    def _reply(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass
