"""Prompts, which completions of a reply can be used, and the probe of a server.

A completion is usable if the model has ended it or it was cut off at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. One that the
server broke off is sampled again, and never counts as a wrong answer.

A probe is a short request. For training, it tries one route of token ids after the
other, until one returns what a trainer needs. Otherwise a server without token ids is
queried as a chat, and so is every server of type `openai`. A wrong tokenizer ends the
search, because another route could only hide the problem.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rg_env.executor import in_thread, keep_gil
from rg_env.inference.connection import (
    ABOUT_THE_REQUEST,
    BAD_REPLY,
    CONTEXT,
    CUT_OFF,
    TOKENIZER,
    UNUSABLE,
    URL,
    Failure,
    RequestFailedError,
)
from rg_env.inference.routes import CHAT, Completion, Prompt, Route
from rg_env.reward.extraction import THINKING

# A prompt up to here is rendered and encoded in half a millisecond, in place.
SHORT_PROMPT_CHARS = 1536

# Ends of the server's making, which leave half a completion.
NOT_WHOLE = (
    *("abort", "aborted", "cancelled", "content_filter", "error", "none"),
    "insufficient_system_resource",
)

# Length of a probe's completion: enough to see that its text is not of the ids.
PROBE_TOKENS = 8

NO_ROUTE = "NoRouteError"

# Rounding puts the surest token a little above 0; a logit is far above it.
HIGHEST_LOGPROB = 0.01


# -- prompts ---------------------------------------------------------------------------


def with_one_bos(tokenizer: Any, tokens: list[int]) -> list[int]:
    """Return tokens with one BOS, where the template and the tokenizer add one each."""
    has_two = len(tokens) >= 2 and tokens[0] == tokenizer.bos_token_id == tokens[1]
    return tokens[1:] if has_two else tokens


def render_prompt(
    tokenizer: Any,
    messages: Sequence[Mapping[str, str]],
    template_kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> Prompt:
    """Render messages as the framework's managed server does."""
    text: str = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True, **template_kwargs
    )
    tokens = with_one_bos(tokenizer, tokenizer.encode(text, add_special_tokens=True))
    opened = text[-40:].rstrip().lower().endswith(tuple(THINKING))
    return Prompt(messages, tokens, opened)


class Prompts:
    """Renders prompts and caches them."""

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        # A prompt is needed twice: to see whether it leaves room, and to send it.
        @functools.lru_cache(256)
        def rendered(*messages: tuple[tuple[str, str], ...]) -> Prompt:
            return render_prompt(tokenizer, [*map(dict, messages)], template_kwargs)

        self._rendered = rendered

    async def render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return a prompt, rendered off the event loop where it is long."""
        key = [tuple(sorted(dict(message).items())) for message in messages]
        if len(repr(key)) > SHORT_PROMPT_CHARS:
            return await in_thread(self._rendered, *key)
        await asyncio.sleep(0)  # several in a row must not add up
        return self._rendered(*key)


# -- completions -----------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _highest_id(tokenizer: Any) -> float:
    """Return the highest token id of a tokenizer; infinite where it does not say."""
    if not hasattr(tokenizer, "get_vocab"):
        return math.inf
    return max(tokenizer.get_vocab().values(), default=math.inf)


def read_tokens(
    tokenizer: Any,
    completions: Iterable[Completion],
    release_gil: Callable[[], None] = keep_gil,
) -> list[Completion]:
    """Check completions of token ids and decode them, calling `release_gil` between."""
    read, highest = [], _highest_id(tokenizer)
    for each in completions:
        each.finish_reason = _end_of(each.finish_reason)
        each.unusable = why_unusable(each, highest)
        if each.unusable is None:
            # decode() checks each id of a list first, and none of an array.
            ids = np.asarray(each.tokens, dtype=np.int64)
            each.text = tokenizer.decode(ids, skip_special_tokens=True)
        read.append(each)
        release_gil()
    return read


def read_texts(tokenizer: Any, completions: Iterable[Completion]) -> list[Completion]:
    """Check completions of a chat, and give them the tokens of our tokenizer."""
    read = list(completions)
    for each in read:
        each.unusable = _why_cut_off(each.finish_reason)
        if each.server_text is None and each.unusable is None:
            each.unusable = Failure(UNUSABLE, "no content")
        each.text = (each.server_text or "").removesuffix(tokenizer.eos_token or "")
    # Half a character of UTF-16 has no tokens, and the tokenizer raises at it.
    whole = [each.text.encode("utf-8", "replace").decode() for each in read]
    # One text alone would be encoded without letting go of the interpreter's lock.
    encoded = tokenizer(whole, add_special_tokens=False)["input_ids"] if whole else []
    for each, ids in zip(read, encoded, strict=True):
        each.tokens = ids
    return read


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How completions of at most `max_tokens` are sampled.

    `split`, "train" or "eval", says which of the server's request limits counts.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str


def check_some_usable(completions: list[Completion]) -> None:
    """Raise an error where no completion of a reply is usable."""
    whys = [completion.unusable for completion in completions]
    if None not in whys:
        why = next(iter(whys), None) or Failure(UNUSABLE, "there is none")
        text = f"none of {len(whys)} completions is usable: {why.text}"
        raise RequestFailedError(dataclasses.replace(why, text=text))


def _end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def _why_cut_off(end: Any) -> Failure | None:
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if end and isinstance(end, str) else "none"
    if word not in NOT_WHOLE:
        return None
    return Failure(f"{CUT_OFF}{word}", f"finish_reason {word}")


def why_unusable(completion: Completion, highest: float = math.inf) -> Failure | None:
    """Return why a trainer cannot use a completion; None if it can.

    `highest` is the highest token id of the tokenizer.
    """
    tokens, logprobs = completion.tokens, completion.logprobs or []
    if (cut_off := _why_cut_off(completion.finish_reason)) is not None:
        return cut_off
    if not tokens:  # a trainer fails at none
        return Failure(UNUSABLE, "no token")
    try:
        # A sum is finite only if all of its parts are, and faster than checking each.
        is_finite = math.isfinite(sum(logprobs))
    except TypeError:  # None, as SGLang writes a NaN
        is_finite = False
    if not is_finite or len(tokens) != len(logprobs):
        text = "a log-probability that is no number, or none for a token"
        return Failure(UNUSABLE, text)
    if max(logprobs) > HIGHEST_LOGPROB:
        text = f"a log-probability above 0 ({max(logprobs):.3g})"
        return Failure(UNUSABLE, f"{text}: logits perhaps (--logprobs-mode of vLLM)")
    # An id for which the trainer's embedding has no row.
    if min(tokens) < 0 or max(tokens) > highest:
        wrong = min(tokens) if min(tokens) < 0 else max(tokens)
        text = f"a token id that the tokenizer does not have ({wrong})"
        return Failure(UNUSABLE, text, setting=TOKENIZER)
    return None


def is_same_model(requested: str, name: str) -> bool:
    """Return whether a name has the requested one, in a folder or with a date."""
    plain = re.escape(PurePath(requested).name.removesuffix("-latest"))
    pattern = rf"(.*/)?{plain}([-@]\d[\d-]{{3,}})?"
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


# -- the probe -------------------------------------------------------------------------


class ProbeRequest(NamedTuple):
    """A short prompt, and what a run samples with, `n` included."""

    prompt: Prompt
    sampling: Mapping[str, Any]


async def find_route(client: Any, request: ProbeRequest) -> Route:
    """Return the route at which to query a `Client`."""
    failures: list[str] = []
    routes: list[Route] = client.routes()
    for route in routes:
        try:
            await _try_route(client, route, request)
            return route
        except RequestFailedError as error:
            failure = error.failure
            # Some refuse a limit that is used up by thinking; a run's is higher.
            if route is CHAT and failure.setting == CONTEXT:
                return route
            kinds = (BAD_REPLY, UNUSABLE, f"{CUT_OFF}none")
            statuses = ABOUT_THE_REQUEST | {404, 405, 410, 501}
            is_of_route = failure.kind in kinds or failure.status in statuses
            if failure.setting is not None or not is_of_route:
                raise
            # Two routes have one path; what is said of the first stands.
            if not any(each.startswith(f"{route.path}: ") for each in failures):
                failures.append(f"{route.path}: {failure.text}")
    does = "train" if client.needs_tokens else "be queried"
    text = f"cannot {does}: {'; '.join(failures)}; see docs/servers.md"
    raise RequestFailedError(Failure(NO_ROUTE, text, setting=URL))


async def _try_route(client: Any, route: Route, request: ProbeRequest) -> None:
    fields = {**request.sampling, "max_tokens": PROBE_TOKENS}
    completions = await client.ask(route, request.prompt, fields)
    check_some_usable(completions)
    if route is not CHAT:
        _check_texts(completions)


def _check_texts(completions: Sequence[Completion]) -> None:
    def plain(text: Any) -> str:
        # Two decoders may treat spaces and half a character differently.
        return "".join(str(text or "").replace("\ufffd", "").split())

    texts = [(plain(each.text), plain(each.server_text)) for each in completions]
    pairs = [pair for pair in texts if pair[1]]  # an end alone has no text
    # A server may omit the end of a text.
    if pairs and not any(a and (a.startswith(b) or b.startswith(a)) for a, b in pairs):
        ours, theirs = pairs[0]
        text = (
            f"its token ids are {ours[:60]!r} to this tokenizer, and {theirs[:60]!r}"
            " to the server; name the tokenizer of its model"
        )
        failure = Failure("WrongSettingError", text, setting=TOKENIZER)
        raise RequestFailedError(failure)
