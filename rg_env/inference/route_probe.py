"""Whether a route gives what a trainer needs, seen on one short completion.

    ids            are there, one log-probability each, a number and none above 0
    the prompt     came back unchanged, where the server says how it took it
    the text       is what our tokenizer makes of the ids, where the server gives one

A server that has all that may still lose it later, with another version: that is then a
request like any other that fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rg_env.inference.native_replies import Generated, end_of
from rg_env.inference.token_replies import LOGPROBS, TOKEN_IDS, MissingInReplyError
from rg_env.inference.token_routes import TokenRoute, Told

PROBE_SAMPLING = {"n": 2, "max_tokens": 8, "temperature": 1.0, "top_p": 1.0}
"""Of the request that tries a route."""

HIGHEST_LOGPROB = 0.01
"""Rounding puts the surest token a little above 0; a logit is far above it."""

NO_CHARACTER = "\ufffd"
"""What half a character is decoded as."""


class UnfitRouteError(ValueError):
    """A route's replies are not what a trainer needs; the text says why.

    Attributes:
        field: The setting to look at.
    """

    def __init__(self, reason: str, field: str = "openai.base_url") -> None:
        super().__init__(reason)
        self.field = field


class RouteFault(NamedTuple):
    """Why a route is not asked.

    Attributes:
        route: The route.
        reason: For people.
        error: What asking it came to.
    """

    route: TokenRoute
    reason: str
    error: Exception


class NoRouteError(ValueError):
    """No route of a server gives what a trainer needs.

    Attributes:
        missing: `TOKEN_IDS` or `LOGPROBS`, of the reply that came nearest; None where
            something else is wrong.
        field: The setting to look at.
    """

    def __init__(self, faults: Sequence[RouteFault]) -> None:
        nearest = max(faults, key=_nearness)
        told = "; ".join(f"{fault.route.path}: {fault.reason}" for fault in faults)
        super().__init__(told)
        self.nearest = nearest
        self.missing = getattr(nearest.error, "what", None)
        self.field = getattr(nearest.error, "field", "openai.base_url")


def _nearness(fault: RouteFault) -> int:
    """Return how far a route got, to tell of the one that got farthest."""
    if isinstance(fault.error, UnfitRouteError):
        return 3
    missing = getattr(fault.error, "what", None)
    return {LOGPROBS: 2, TOKEN_IDS: 1}.get(missing or "", 0)


def check_tokens(generated: Generated) -> None:
    """Refuse completions without token ids, or without a log-probability for each.

    Raises:
        MissingInReplyError: One of the two is missing.
        UnfitRouteError: The log-probabilities are none.
    """
    if not any(generated.tokens):
        raise MissingInReplyError(TOKEN_IDS)
    for ids, logprobs in zip(generated.tokens, generated.logprobs, strict=False):
        if len(logprobs) != len(ids) or any(value is None for value in logprobs):
            raise MissingInReplyError(LOGPROBS)
        if not all(map(math.isfinite, logprobs)):
            raise UnfitRouteError("a log-probability is not finite")
        if any(value > HIGHEST_LOGPROB for value in logprobs):
            raise UnfitRouteError(
                f"what it gives as a log-probability is above 0 ({max(logprobs):.3g}):"
                " logits perhaps (--logprobs-mode of vLLM)"
            )


def check_ends(generated: Generated) -> None:
    """Refuse completions of which is not said why they ended.

    Raises:
        UnfitRouteError: It is said of none.
    """
    if all(end_of(reason) is None for reason in generated.finish_reasons):
        raise UnfitRouteError("its completions have no finish_reason")


def check_prompt(prompt: Sequence[int], told: Told) -> None:
    """Refuse a server that changed the prompt.

    Raises:
        UnfitRouteError: It did.
    """
    if told.prompt is not None and list(told.prompt) != list(prompt):
        raise UnfitRouteError("it changes the tokens of the prompt")


def _plain(text: str) -> str:
    """Return a text without what two decoders may do differently."""
    return "".join(text.replace(NO_CHARACTER, "").split())


def _agree(ours: str, theirs: str) -> bool:
    """Say whether two texts are of the same tokens; a server may hold an end back."""
    mine, other = _plain(ours), _plain(theirs)
    return mine.startswith(other) or other.startswith(mine)


def check_texts(tokenizer: Any, generated: Generated, told: Told) -> None:
    """Refuse a tokenizer that makes other texts of the ids than the server.

    Raises:
        UnfitRouteError: Every completion has another text.
    """
    if not told.texts:
        return
    try:
        decoded = [
            tokenizer.decode(ids, skip_special_tokens=True) for ids in generated.tokens
        ]
    except Exception as error:  # as many kinds as tokenizers
        raise UnfitRouteError(
            "its token ids are none of our tokenizer's; name that of its model",
            "env.tokenizer_name",
        ) from error
    both = [
        (ours, theirs)
        for ours, theirs in zip(decoded, told.texts, strict=False)
        if _plain(ours) and _plain(theirs)  # an end alone has no text
    ]
    if not both or any(_agree(ours, theirs) for ours, theirs in both):
        return
    ours, theirs = both[0]
    raise UnfitRouteError(
        f"its token ids are {ours[:60]!r} to our tokenizer, and {theirs[:60]!r} to the"
        " server; name the tokenizer of its model",
        "env.tokenizer_name",
    )
