"""Completions from replies with token ids or from chats, and which are usable.

A completion is usable if the model has ended it or it was cut off at its limit, and if
each of its tokens is one of the tokenizer's and has a log-probability. One that the
server broke off is sampled again, and never counts as a wrong answer.

The tokens of a chat are made by our tokenizer, without log-probabilities. The thinking
that a reasoning parser returns separately is put back in front of the answer, because
rows, dump files and extraction need the whole text.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from rg_env.inference.prompts import Prompt
from rg_env.inference.request_failures import (
    CUT_OFF,
    TOKENIZER,
    UNUSABLE,
    Failure,
    RequestFailedError,
)
from rg_env.inference.routes import TokenChoice
from rg_env.off_loop import keep_gil

# What the framework's managed server writes.
PROMPT_MASK = -100
PROMPT_LOGPROB = 1.0

NOT_WHOLE = frozenset(
    {"abort", "aborted", "cancelled", "content_filter", "error", "none"}
    | {"insufficient_system_resource"}
)
"""Ends of the server's making, which leave half a completion."""

HIGHEST_LOGPROB = 0.01
"""Rounding puts the surest token a little above 0; a logit is far above it."""

THINK, END_THINK = "<think>", "</think>"


@dataclasses.dataclass(frozen=True)
class Completion:
    """One completion; `tokens`, `masks` and `logprobs` have equal lengths.

    Attributes:
        text: What the model wrote; "" of one that cannot be used.
        finish_reason: "stop", "length" or the server's word.
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


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How completions are sampled.

    Attributes:
        max_tokens: Longest completion, in tokens; at least 1.
        temperature: At least 0.
        top_p: In (0, 1].
        split: "train" or "eval": which of the server's request limits counts.
    """

    max_tokens: int
    temperature: float
    top_p: float
    split: str

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a request."""
        fields = dataclasses.asdict(self)
        del fields["split"]
        return fields


def cut(completion: Completion, limit_tokens: int) -> Completion:
    """Cut a sequence whose server did not keep to max_tokens."""
    if len(completion.tokens) <= limit_tokens:
        return completion
    logprobs = completion.logprobs
    return dataclasses.replace(
        completion,
        finish_reason="length",
        tokens=completion.tokens[:limit_tokens],
        masks=completion.masks[:limit_tokens],
        logprobs=None if logprobs is None else logprobs[:limit_tokens],
    )


def check_some_usable(completions: list[Completion]) -> None:
    """Raise an error where no completion of a reply is usable."""
    whys = [completion.unusable for completion in completions]
    if None not in whys:
        why = next(iter(whys), None) or Failure(UNUSABLE, "there is none")
        text = f"none of {len(whys)} completions is usable: {why.text}"
        raise RequestFailedError(dataclasses.replace(why, text=text))


# -- of token ids ----------------------------------------------------------------------


def _end_of(reason: Any) -> Any:
    """Return the word for why a completion ended, which SGLang puts in an object."""
    return reason.get("type", "stop") if isinstance(reason, dict) else reason


def _why_cut_off(reason: Any) -> Failure | None:
    end = _end_of(reason) or "none"
    # Some say more behind a colon, as "content_filter: RECITATION".
    word = end.partition(":")[0].lower() if isinstance(end, str) else "none"
    if word not in NOT_WHOLE:
        return None
    return Failure(f"{CUT_OFF}{word}", f"finish_reason {word}")


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

    A trainer looks ids up in its embedding, where a larger one than `highest` ends it,
    and fails without any token. Even an empty completion has an end token, whose
    log-probability we would have to invent.
    """
    cut_off = _why_cut_off(reason)
    if cut_off is not None:
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
        text = f"a log-probability above 0 ({max(numbers):.3g}): logits perhaps"
        return Failure(UNUSABLE, f"{text} (--logprobs-mode of vLLM)")
    if min(tokens) < 0 or (highest is not None and max(tokens) > highest):
        text = f"a token id that the tokenizer does not have ({max(tokens)})"
        return Failure(UNUSABLE, text, setting=TOKENIZER)
    return None


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


def _reasoning(message: Mapping[str, Any]) -> str:
    texts = (message.get(name) for name in ("reasoning_content", "reasoning"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _content(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message, a list of its parts joined; None without one."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in parts if isinstance(text, str))
    text = message.get("refusal") if content is None else content
    return text if isinstance(text, str) else None


def _why_no_answer(choice: Mapping[str, Any]) -> Failure | None:
    message, reason = choice["message"], choice.get("finish_reason")
    cut_off = _why_cut_off(reason)
    if cut_off is not None or _content(message) is not None:
        return cut_off
    # A model may use up its tokens with thinking that it does not show.
    has_thought = _reasoning(message) or reason == "length"
    return None if has_thought else Failure(UNUSABLE, "no content")


def whole_text(choice: Mapping[str, Any], *, thinking_open: bool) -> str:
    """Return the model's text, with the thinking that the prompt may have opened."""
    message = choice["message"]
    content, reasoning = _content(message) or "", _reasoning(message)
    if not reasoning or END_THINK in content:
        return content
    begin = "" if thinking_open or reasoning.startswith(THINK) else THINK
    # Cut in the midst of its thinking, it never ended that.
    is_cut = not content and choice.get("finish_reason") == "length"
    return f"{begin}{reasoning}{'' if is_cut else END_THINK}{content}"


def from_chat(
    tokenizer: Any, prompt: Prompt, choices: Sequence[Mapping[str, Any]]
) -> list[Completion]:
    """Return the completions of the choices of a chat, as JSON has them."""
    end = tokenizer.eos_token or ""
    whys = [_why_no_answer(choice) for choice in choices]
    texts = [
        whole_text(choice, thinking_open=prompt.thinking_open).removesuffix(end)
        if why is None
        else ""
        for choice, why in zip(choices, whys, strict=True)
    ]
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
        for choice, text, ids, why in zip(choices, texts, encoded, whys, strict=True)
    ]
