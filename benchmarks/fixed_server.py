"""A simulated inference server whose completions all have the same length.

    python -m benchmarks.fixed_server --tokens 300 --latency_ms 50

It must not cost more than what is measured, so its completions are made once. Every
other one of them has an answer, which is right by chance alone.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections.abc import Mapping
from typing import Any

from rg_env import ending
from rg_env.demo.chat_tokenizer import ChatTokenizer
from rg_env.demo.inference_server import InferenceServer, build_app, serve_announced
from rg_env.demo.model import Generation

VARIANTS = 16
WORDS = "so we look at each number in turn and count again because a slip 3 7 12 plus"


class FixedModel:
    """Answers every prompt with completions of one length, the end token included."""

    def __init__(self, tokens: int) -> None:
        self._tokens, self._tokenizer = tokens, ChatTokenizer()

    @functools.cache  # noqa: B019
    def _made(self, variant: int, limit: int) -> Generation:
        rng = random.Random(variant)
        words = " ".join(rng.choices(WORDS.split(), k=self._tokens))
        answer = f"\n</think>\n<answer>{variant}</answer>" if variant % 2 else ""
        end = [*self._tokenizer.encode(answer), self._tokenizer.end_id]
        begin = self._tokenizer.encode(f"<think>\n{words}")
        ids = [*begin[: self._tokens - len(end)], *end][:limit]
        reason = "stop" if limit >= self._tokens else "length"
        logprobs = [-rng.expovariate(2.0) for _ in ids]
        return Generation(self._tokenizer.decode(ids), ids, logprobs, reason)

    async def generate(self, prompt: str, n: int, max_tokens: int) -> list[Generation]:
        """Answer a prompt n times; what is cut at the limit loses its answer."""
        limit = min(self._tokens, max_tokens)
        return [self._made((len(prompt) + i) % VARIANTS, limit) for i in range(n)]

    def counts(self) -> Mapping[str, Any]:
        return {}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixed_server")
    parser.add_argument("--tokens", type=int, default=300, help="of a completion")
    parser.add_argument("--latency_ms", type=float, default=0.0, help="of every reply")
    options = parser.parse_args()
    server = InferenceServer(FixedModel(options.tokens), options.latency_ms)
    ending.run(serve_announced(build_app(server), "inference server", 0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
