"""Prompts, and their completions from replies with token ids or from chats.

A completion is usable if the model has ended it or it was cut off at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. One that the
server broke off is sampled again, and never counts as a wrong answer.

The tokens of a chat are made by our tokenizer, without log-probabilities. The thinking
that a reasoning parser returns separately is put back in front of the answer, because
rows, dump files and extraction need the whole text.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from rg_env.inference.request_failures import (
    CUT_OFF,
    TOKENIZER,
    UNUSABLE,
    Failure,
    RequestFailedError,
)
from rg_env.inference.routes import TokenChoice
from rg_env.off_loop import keep_gil, off_loop
from rg_env.scoring.extraction import THINKING
from rg_env.scoring.prompt import Message

# What the framework's managed server writes.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0

MAX_PROMPTS = 256
SHORT_PROMPT_CHARS = 1536
"""A prompt up to here is rendered and encoded in half a millisecond, in place."""

NOT_WHOLE = (
    *("abort", "aborted", "cancelled", "content_filter", "error", "none"),
    "insufficient_system_resource",
)
"""Ends of the server's making, which leave half a completion."""

HIGHEST_LOGPROB = 0.01
"""Rounding puts the surest token a little above 0; a logit is far above it."""


# -- prompts ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Prompt:
    """An item's messages, rendered to token ids."""

    messages: Sequence[Message]
    tokens: Sequence[int]
    thinking_open: bool  # whether the template ends it with `<think>` or the like


def with_one_bos(tokenizer: Any, tokens: list[int]) -> list[int]:
    """Return tokens with one BOS, where the template and the tokenizer add one each."""
    has_two = len(tokens) >= 2 and tokens[0] == tokenizer.bos_token_id == tokens[1]
    return tokens[1:] if has_two else tokens


def render_prompt(
    tokenizer: Any,
    messages: Sequence[Message],
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
    """Renders prompts and caches them, because a prompt is needed twice."""

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        @functools.lru_cache(MAX_PROMPTS)
        def rendered(*messages: tuple[tuple[str, str], ...]) -> Prompt:
            plain = [dict(message) for message in messages]
            return render_prompt(tokenizer, plain, template_kwargs)

        self._rendered = rendered

    async def render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return a prompt, rendered off the event loop where it is long."""
        key = [tuple(sorted(dict(message).items())) for message in messages]
        if len(repr(key)) > SHORT_PROMPT_CHARS:
            return await off_loop(self._rendered, *key)
        await asyncio.sleep(0)  # several in a row must not add up
        return self._rendered(*key)


# -- completions -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Completion:
    """One completion; `tokens`, `masks` and `logprobs` have equal lengths.

    Attributes:
        tokens: Prompt and completion.
        masks: -100 for the prompt, the token id for the completion.
        logprobs: 1.0 for the prompt; None where the server gives none.
        unusable: Why the completion cannot be used; None if it can.
        choice: As the server has returned it; None of a chat.
    """

    text: str
    finish_reason: str | None
    tokens: list[int]
    masks: list[int]
    logprobs: list[float] | None
    unusable: Failure | None = None
    choice: TokenChoice | None = None

    def cut(self, limit_tokens: int) -> Completion:
        """Cut a sequence whose server did not keep to max_tokens."""
        if len(self.tokens) <= limit_tokens:
            return self
        names = ("tokens", "masks", *(["logprobs"] if self.logprobs else []))
        shorter = {name: getattr(self, name)[:limit_tokens] for name in names}
        return dataclasses.replace(self, finish_reason="length", **shorter)


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


def _why_cut_off(end: Any) -> Failure | None:
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if end and isinstance(end, str) else "none"
    if word not in NOT_WHOLE:
        return None
    return Failure(f"{CUT_OFF}{word}", f"finish_reason {word}")


# -- of token ids ----------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def highest_id(tokenizer: Any) -> int | None:
    """Return the highest token id of a tokenizer; None where it does not say."""
    if not hasattr(tokenizer, "get_vocab"):
        return None
    return max(tokenizer.get_vocab().values(), default=None)


def why_unusable(
    tokens: Sequence[int],
    logprobs: Sequence[float | None],
    reason: Any,
    highest: int | None = None,
) -> Failure | None:
    """Return why a trainer cannot use a completion; None if it can.

    A trainer fails without any token, and at an id above `highest`, which its embedding
    does not have.
    """
    if (cut_off := _why_cut_off(_end_of(reason))) is not None:
        return cut_off
    if not tokens:
        return Failure(UNUSABLE, "no token")
    numbers = cast(Sequence[float], logprobs)
    try:
        # A sum is finite only if all of its parts are, and faster than checking each.
        is_finite = math.isfinite(sum(numbers))
    except TypeError:  # None
        is_finite = False
    if not is_finite or len(tokens) != len(numbers):
        text = "a log-probability that is no number, or none for a token"
        return Failure(UNUSABLE, text)
    if max(numbers) > HIGHEST_LOGPROB:
        text = f"a log-probability above 0 ({max(numbers):.3g})"
        return Failure(UNUSABLE, f"{text}: logits perhaps (--logprobs-mode of vLLM)")
    if min(tokens) < 0 or (highest is not None and max(tokens) > highest):
        text = f"a token id that the tokenizer does not have ({max(tokens)})"
        return Failure(UNUSABLE, text, setting=TOKENIZER)
    return None


def _end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def from_tokens(
    tokenizer: Any,
    prompt: Sequence[int],
    choices: Iterable[TokenChoice],
    release_gil: Callable[[], None] = keep_gil,
) -> list[Completion]:
    """Return the completions of a reply of token ids, calling `release_gil` between."""
    completions, highest, prompt = [], highest_id(tokenizer), list(prompt)
    for choice in choices:
        tokens, logprobs, reason, *_ = choice
        unusable, text = why_unusable(tokens, logprobs, reason, highest), ""
        if unusable is None:
            # decode() checks each id of a list first, and none of an array.
            ids = np.asarray(tokens, dtype=np.int64)
            text = tokenizer.decode(ids, skip_special_tokens=True)
        completion = Completion(
            text=text,
            finish_reason=_end_of(reason),
            tokens=prompt + tokens,
            masks=[PROMPT_MASK] * len(prompt) + tokens,
            logprobs=[PROMPT_LOGPROB] * len(prompt) + cast(list[float], logprobs),
            unusable=unusable,
            choice=choice,
        )
        completions.append(completion)
        release_gil()
    return completions


# -- of a chat -------------------------------------------------------------------------


def _read_chat(
    choice: Mapping[str, Any], *, thinking_open: bool
) -> tuple[str, Failure | None]:
    """Return the model's text, with its thinking, and why it cannot be used."""
    end, message = choice.get("finish_reason"), choice["message"]
    texts = {name: v for name, v in message.items() if isinstance(v, str)}
    text = texts.get("content", texts.get("refusal"))
    thinking = texts.get("reasoning_content") or texts.get("reasoning") or ""
    if (cut_off := _why_cut_off(end)) is not None:
        return "", cut_off
    # A model may use up its tokens with thinking that it does not show.
    if text is None and not thinking and end != "length":
        return "", Failure(UNUSABLE, "no content")
    if not thinking or "</think>" in (text or ""):
        return text or "", None
    begin = "" if thinking_open or thinking.startswith("<think>") else "<think>"
    # Cut in the midst of its thinking, it never ended that.
    is_cut = not text and end == "length"
    return f"{begin}{thinking}{'' if is_cut else '</think>'}{text or ''}", None


def from_chat(
    tokenizer: Any, prompt: Prompt, choices: Sequence[Mapping[str, Any]]
) -> list[Completion]:
    """Return the completions of the choices of a chat, as JSON has them."""
    read = [_read_chat(c, thinking_open=prompt.thinking_open) for c in choices]
    texts = [text.removesuffix(tokenizer.eos_token or "") for text, _ in read]
    # Half a character of UTF-16 has no tokens, and the tokenizer raises at it.
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    # One text alone would be encoded without letting go of the interpreter's lock.
    encoded = tokenizer(whole, add_special_tokens=False)["input_ids"] if whole else []
    return [
        Completion(
            text=text,
            finish_reason=choice.get("finish_reason"),
            tokens=[*prompt.tokens, *ids],
            masks=[PROMPT_MASK] * len(prompt.tokens) + ids,
            logprobs=None,
            unusable=why,
        )
        for choice, text, ids, (_, why) in zip(
            choices, texts, encoded, read, strict=True
        )
    ]
