"""A probe that finds out how to query a server, with a short request.

For training, the server is queried for token ids at each route of its type, until one
returns what a trainer needs. Otherwise a server that returns no token ids is queried as
a chat, and so is every server of type `openai`. A wrong tokenizer or temperature ends
the search, because another route could only hide the problem.

By default, vLLM returns log-probabilities for temperature 1. They would make a
trainer's ratios wrong, so training with them is an error; if they only go into rows,
there is a warning. The temperature divides the difference between two
log-probabilities, so comparing the most likely first tokens at two temperatures shows
it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from rg_env.inference.completions import (
    HIGHEST_LOGPROB,
    check_some_usable,
    end_of,
    why_unusable,
)
from rg_env.inference.connection import CHAT
from rg_env.inference.request_failures import (
    CONTEXT,
    CUT_OFF,
    LONG_REPLY,
    NOTHING,
    UNUSABLE_REPLY,
    URL,
    Failure,
    RequestFailedError,
    bad_reply,
    failure_of,
)
from rg_env.inference.routes import (
    LOGPROBS,
    NO_SUCH_FORM,
    NUM_LIKELIEST,
    TOKEN_IDS,
    Generated,
    ReplyDetails,
    TokenRoute,
    lacking,
)

logger = logging.getLogger(__name__)

PROBE_TOKENS = 8
"""Of a completion: enough to see that its text is not of the ids."""

LEAST_LOGPROB = -1000.0
"""Below stand the numbers that some write for minus infinity."""

TOKENIZER = "env.tokenizer_name"

NO_ROUTE, WRONG_SETTING = "NoRouteError", "WrongSettingError"
"""Kinds of failures."""

OF_NO_ROUTE = frozenset({UNUSABLE_REPLY, LONG_REPLY, WRONG_SETTING})
"""Kinds that say nothing of a route: the next one would fail likewise, or hide it."""


class ProbeRequest(NamedTuple):
    """What a server is probed with.

    Attributes:
        messages: Of the prompt.
        tokens: The prompt rendered, shape (T,).
        sampling: What a run samples with, and `n`.
        writes_rows: Whether log-probabilities are written, though no trainer gets them.
    """

    messages: Sequence[Mapping[str, Any]]
    tokens: Sequence[int]
    sampling: Mapping[str, Any]
    writes_rows: bool = False


def greeting(tokenizer: Any) -> ProbeRequest:
    """Return a request that works for any model."""
    messages = [{"role": "user", "content": "hi"}]
    return ProbeRequest(messages, tokenizer.encode("hi"), {"n": 2})


def no_route(client: Any, told: str) -> RequestFailedError:
    """Return the error for a server none of whose routes gives what is needed.

    Args:
        client: The server's.
        told: What each route answered.
    """
    said = f"cannot {'train' if client.needs_tokens else 'be queried'}: {told}"
    advice = "see docs/servers.md"
    return RequestFailedError(Failure(NO_ROUTE, said, setting=URL, advice=advice))


def _wrong_setting(setting: str, reason: str) -> RequestFailedError:
    """Return the error for a setting that fits no route of a server."""
    return RequestFailedError(Failure(WRONG_SETTING, reason, setting=setting))


# -- the search ------------------------------------------------------------------------


async def find_route(client: Any, request: ProbeRequest) -> TokenRoute | None:
    """Return the route of token ids at which to query a `Client`; None for a chat.

    Raises:
        RequestFailedError: It gives nothing that will do, a setting does not fit it,
            it is not there, or it refuses or fails otherwise.
    """
    routes: Sequence[TokenRoute] = client.routes
    told, failures = [], []
    for route in routes if client.needs_tokens or not client.chats else ():
        failure = await _failure_of(_try_route(client, route, request))
        if failure is None:
            return route
        told.append(f"{route.path}: {failure.said}")
        failures.append(failure)
    telling = _telling(failures)
    # Some gateways answer 500 for ever to token ids, and a chat well.
    if not client.needs_tokens and (telling is None or telling.status == 500):
        failure = await _failure_of(_try_chat(client, request))
        # Some refuse a limit that is used up by thinking; a run's is higher.
        if failure is None or failure.setting == CONTEXT:
            return None
        told.append(f"{CHAT}: {failure.said}")
        telling = telling or _telling([failure])
    if telling is not None:
        raise RequestFailedError(telling)
    raise no_route(client, "; ".join(dict.fromkeys(told)))


def _telling(failures: Sequence[Failure]) -> Failure | None:
    """Return the most informative failure.

    This is the first refusal that names a setting, or else a failure that may be
    temporary. None if a route answers but lacks something, or if no route exists.
    """
    if any(failure.status is None for failure in failures):
        return None
    naming = [failure for failure in failures if failure.setting is not None]
    passing = [each for each in failures if each.is_temporary and not each.is_absence]
    return next(iter(naming + passing), None)


async def _failure_of(trying: Awaitable[None]) -> Failure | None:
    """Return why a route does not do, None where it does; raises what may pass."""
    try:
        await trying
    except RequestFailedError as error:
        kind, how = error.failure.kind, error.failure.how
        if how == NOTHING or kind in OF_NO_ROUTE or kind.startswith(CUT_OFF):
            raise
        return error.failure
    return None


async def _try_route(client: Any, route: TokenRoute, request: ProbeRequest) -> None:
    prompt = list(request.tokens)
    sampling = {**request.sampling, "max_tokens": PROBE_TOKENS}
    replies = await client.query_route(route, prompt, sampling)
    generated = await client.read_route(route, replies)
    details = route.details(orjson.loads(b"".join(replies[0])))
    _check_reply(generated)
    if details.prompt is not None and list(details.prompt) != prompt:
        raise bad_reply("it changes the tokens of the prompt")
    _check_texts(client, generated, details)
    if len(generated.tokens) < sampling["n"]:
        client.connection.query_one_by_one()
    temperature = sampling.get("temperature", 1.0)
    is_kept = client.needs_tokens or request.writes_rows
    # At 1 both kinds are equal, and nothing can be divided by 0.
    if is_kept and temperature not in (0.0, 1.0):
        await _check_temperature(client, route, prompt, temperature)


async def _try_chat(client: Any, request: ProbeRequest) -> None:
    reply = await client.query_chat(
        model=client.config.model_name,
        messages=[dict(message) for message in request.messages],
        max_tokens=PROBE_TOKENS,
        **request.sampling,
    )
    check_some_usable(reply)


# -- what a trainer needs of a reply ---------------------------------------------------


def _check_reply(generated: Generated) -> None:
    if not any(generated.tokens):
        raise lacking(TOKEN_IDS)
    for ids, logprobs in zip(generated.tokens, generated.logprobs, strict=False):
        told: list[Any] = logprobs
        numbers = [each for each in told if each is not None]
        if max(numbers, default=0.0) > HIGHEST_LOGPROB:
            raise bad_reply(
                f"what it gives as a log-probability is above 0 ({max(numbers):.3g}):"
                " logits perhaps (--logprobs-mode of vLLM)"
            )
        # As if it had ended by itself: whether it was cut off is checked last.
        if (ids or logprobs) and why_unusable(ids, logprobs, "stop"):
            raise lacking(LOGPROBS)
    if all(end_of(reason) is None for reason in generated.finish_reasons):
        raise bad_reply("its completions have no finish_reason")
    check_some_usable(generated)


def _plain(text: str) -> str:
    """Return a text without what two decoders may do differently."""
    half_a_character = "\ufffd"
    return "".join(text.replace(half_a_character, "").split())


def _agree(ours: str, theirs: str) -> bool:
    """Return whether two texts have the same tokens; a server may omit the end."""
    mine, other = _plain(ours), _plain(theirs)
    return mine != "" and (mine.startswith(other) or other.startswith(mine))


def _check_texts(client: Any, generated: Generated, details: ReplyDetails) -> None:
    if not any(details.texts):
        logger.warning(
            "%s returns no texts, so env.tokenizer_name cannot be checked",
            client.config.base_url,
        )
    both = [
        (ids, text)
        for ids, text in zip(generated.tokens, details.texts, strict=False)
        if isinstance(text, str) and _plain(text)  # an end alone has no text
    ]
    decode = client.tokenizer.decode
    try:
        pairs = [(decode(ids, skip_special_tokens=True), text) for ids, text in both]
    except Exception as error:  # as many kinds as tokenizers
        reason = "it returns token ids that this tokenizer does not have"
        raise _wrong_setting(TOKENIZER, reason) from error
    if pairs and not any(_agree(*pair) for pair in pairs):
        ours, theirs = pairs[0]
        raise _wrong_setting(
            TOKENIZER,
            f"its token ids are {ours[:60]!r} to this tokenizer, and {theirs[:60]!r}"
            " to the server; name the tokenizer of its model",
        )


# -- the temperature of log-probabilities ----------------------------------------------


async def _check_temperature(
    client: Any, route: TokenRoute, prompt: list[int], temperature: float
) -> None:
    """Refuse log-probabilities of temperature 1 where another is sampled with.

    Those that go into rows alone are warned of.
    """
    spans = []
    try:
        for each in (1.0, temperature):
            # With a lower top_p, likely tokens may have no finite value.
            one = {"n": 1, "max_tokens": 1, "temperature": each, "top_p": 1.0}
            bodies = await client.query_route(route, prompt, one, **route.likeliest)
            reply = orjson.loads(b"".join(bodies[0]))
            spans.append(_span_of(route.of_likeliest(reply)))
    except (RequestFailedError, *NO_SUCH_FORM) as error:
        failure = failure_of(error)
        if isinstance(error, RequestFailedError) and failure.how == NOTHING:
            raise
        logger.warning(
            "whether %s returns log-probabilities of env.temperature cannot be seen"
            " (%s)",
            client.config.base_url,
            failure.said,
        )
        return
    at_one, at_own = spans
    # Nearer to the distance that the temperature makes of it than to that of 1.
    if abs(at_own - at_one) >= abs(at_own - at_one / temperature):
        return
    field = "env.temperature"
    fault = (
        f"{temperature:g} is sampled with, and it returns log-probabilities of 1; start"
        " vLLM with --logprobs-mode processed_logprobs, or set 1.0"
    )
    if client.needs_tokens:
        raise _wrong_setting(field, fault)
    url = client.config.base_url
    logger.warning("%s: %s: %s; the rows have those of 1", field, url, fault)


def _span_of(logprobs: Iterable[Any]) -> float:
    known = [p for p in logprobs if isinstance(p, float) and p > LEAST_LOGPROB]
    likeliest = sorted(known, reverse=True)[:NUM_LIKELIEST]
    if len(likeliest) < 2:
        raise LookupError("no log-probabilities of the likeliest tokens")
    return likeliest[0] - likeliest[-1]
