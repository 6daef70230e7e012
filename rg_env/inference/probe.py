"""How a server is to be asked, found by asking it for what a run will ask, but less.

To train, it is asked for token ids at each route of its type until one gives what a
trainer needs. Otherwise a server that gives none is asked as a chat; one of type
`openai` is in any case. A tokenizer that is not the model's ends the search: another
route could only hide it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple

import aiohttp
import orjson

from rg_env.inference.chat_replies import why_no_answer
from rg_env.inference.connection_faults import may_pass
from rg_env.inference.extras import extra_body_of, secrets_of
from rg_env.inference.refusals import CONTEXT, Refusal, refusal_behind, setting_of
from rg_env.inference.replies import (
    NO_SUCH_FORM,
    BadReplyError,
    UnusableReplyError,
    check_some_usable,
)
from rg_env.inference.reply_checks import check_reply, check_temperature, span_of
from rg_env.inference.routes import CHAT, TokenRoute

logger = logging.getLogger(__name__)

PROBE_TOKENS = 8
"""Of a completion: enough to see that its text is not of the ids."""


class ProbeRequest(NamedTuple):
    """What a server is probed with.

    Attributes:
        messages: Of the prompt.
        tokens: The prompt rendered, shape (T,).
        sampling: What a run samples with, and `n`.
    """

    messages: Sequence[Mapping[str, Any]]
    tokens: Sequence[int]
    sampling: Mapping[str, Any]


class Fault(NamedTuple):
    """Why a path is not asked.

    Attributes:
        told: What the server answered there.
        error: What asking it came to.
        refusal: What the server said; None where its reply was well.
    """

    told: str
    error: Exception
    refusal: Refusal | None = None


class NoRouteError(ValueError):
    """No route of a server gives what is needed; the text has what each answered."""


async def find_route(client: Any, request: ProbeRequest) -> TokenRoute | None:
    """Return the route of token ids at which a server is to be asked; None for a chat.

    Args:
        client: A `Client`.
        request: What it is asked.

    Raises:
        NoRouteError: It gives nothing that will do.
        WrongSettingError: What it gives does not fit a setting.
        Exception: It is not there, or refuses or fails otherwise.
    """
    routes: Sequence[TokenRoute] = client.routes
    faults = []
    for route in routes if client.needs_tokens or not client.chats else ():
        fault = await _fault_of(client, route.path, _try_route(client, route, request))
        if fault is None:
            return route
        faults.append(fault)
    error = _telling_error(client, faults)
    # Some gateways answer 500 for ever to token ids, and a chat well.
    is_final = isinstance(error, aiohttp.ClientResponseError) and error.status != 500
    if not client.needs_tokens and not is_final:
        fault = await _fault_of(client, CHAT, _try_chat(client, request))
        # Some refuse a limit that is used up by thinking; a run's is higher.
        if fault is None or (fault.refusal and setting_of(fault.refusal) == CONTEXT):
            return None
        faults.append(fault)
        error = error or _telling_error(client, [fault])
    told = "; ".join(dict.fromkeys(fault.told for fault in faults))
    raise error or NoRouteError(told)


def _telling_error(client: Any, faults: Sequence[Fault]) -> Exception | None:
    """Return the error that says more than that there is no route.

    It is the first refusal that names a setting, or else one that may pass; None where
    a route answers well and lacks something, or all are absent.
    """
    refused = [(fault.refusal, fault.error) for fault in faults if fault.refusal]
    if len(refused) < len(faults):
        return None
    extra = extra_body_of(client.config)
    for refusal, error in refused:
        if setting_of(refusal, extra) is not None:
            return error
    for refusal, error in refused:
        if may_pass(refusal.status) and not refusal.is_absence:
            return error
    return None


async def _fault_of(client: Any, path: str, trying: Awaitable[None]) -> Fault | None:
    """Return why a path does not do, None where it does.

    Raises:
        Exception: What says nothing of the path.
    """
    try:
        await trying
    except UnusableReplyError:  # broken off, which may pass
        raise
    except BadReplyError as error:
        return Fault(f"{path}: {error}", error)
    except aiohttp.ClientResponseError as error:
        refusal = refusal_behind(error, *secrets_of(client.config))
        if refusal is None:
            raise
        return Fault(f"{path}: {refusal.words}", error, refusal)
    return None


async def _try_route(client: Any, route: TokenRoute, request: ProbeRequest) -> None:
    prompt = list(request.tokens)
    sampling = {**request.sampling, "max_tokens": PROBE_TOKENS}
    replies = await client.ask_route(route, prompt, sampling)
    generated = await client.read_route(route, replies)
    told = route.told(orjson.loads(b"".join(replies[0])))
    check_reply(client.tokenizer, prompt, generated, told)
    if len(generated.tokens) < sampling["n"]:
        client.ask_one_by_one()
    if not any(told.texts):
        logger.warning(
            "%s returns no texts, by which env.tokenizer_name could be checked",
            client.config.base_url,
        )
    temperature = sampling.get("temperature", 1.0)
    if client.needs_tokens and temperature not in (0.0, 1.0):
        await _try_temperature(client, route, prompt, temperature)


async def _try_temperature(
    client: Any, route: TokenRoute, prompt: list[int], temperature: float
) -> None:
    spans = []
    try:
        for each in (1.0, temperature):
            one = {"n": 1, "max_tokens": 1, "temperature": each, "top_p": 1.0}
            asked = await client.ask_route(route, prompt, one, **route.likeliest)
            reply = orjson.loads(b"".join(asked[0]))
            spans.append(span_of(route.of_likeliest(reply)))
    except (aiohttp.ClientResponseError, *NO_SUCH_FORM) as error:
        logger.warning(
            "whether %s returns log-probabilities of env.temperature cannot be seen"
            " (%s)",
            client.config.base_url,
            client.describe(error),
        )
        return
    check_temperature(spans[0], spans[1], temperature)


async def _try_chat(client: Any, request: ProbeRequest) -> None:
    reply = await client.ask_chat(
        model=client.config.model_name,
        messages=[dict(message) for message in request.messages],
        max_tokens=PROBE_TOKENS,
        **request.sampling,
    )
    check_some_usable([why_no_answer(choice) for choice in reply.choices])
