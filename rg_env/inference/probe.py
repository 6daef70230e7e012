"""A probe that finds out how to query a server, with a short request.

For training, the server is queried for token ids at one route after the other, until
one returns what a trainer needs. Otherwise a server that returns no token ids is
queried as a chat, and so is every server of type `openai`. A wrong tokenizer ends the
search, because another route could only hide the problem.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rg_env.inference.completions import Completion, Prompt, check_some_usable
from rg_env.inference.request_failures import (
    CONTEXT,
    CUT_OFF,
    LONG_REPLY,
    NOTHING,
    TOKENIZER,
    UNUSABLE,
    URL,
    Failure,
    RequestFailedError,
    bad_reply,
)
from rg_env.inference.routes import CHAT, TokenRoute

logger = logging.getLogger(__name__)

PROBE_TOKENS = 8
"""Length of a probe's completion: enough to see that its text is not of the ids."""

NO_ROUTE = "NoRouteError"


class ProbeRequest(NamedTuple):
    """A short prompt, and what a run samples with, `n` included."""

    prompt: Prompt
    sampling: Mapping[str, Any]


async def find_route(client: Any, request: ProbeRequest) -> TokenRoute | None:
    """Return the route of token ids at which to query a `Client`; None for a chat."""
    failures: dict[str, Failure] = {}
    routes: Sequence[TokenRoute] = client.routes
    for route in routes if client.needs_tokens or not client.chats else ():
        try:
            await _try_route(client, route, request)
            return route
        except RequestFailedError as error:
            if _ends_search(error.failure):
                raise
            # Two routes have one path; what is said of the first stands.
            failures[f"{route.path}: {error.failure.text}"] = error.failure
    telling = _telling(list(failures.values()))
    # Some gateways answer 500 for ever to token ids, and a chat well.
    if not client.needs_tokens and (telling is None or telling.status == 500):
        try:
            fields = {**request.sampling, "max_tokens": PROBE_TOKENS}
            check_some_usable(await client.ask(None, request.prompt, fields))
            return None
        except RequestFailedError as error:
            # Some refuse a limit that is used up by thinking; a run's is higher.
            if error.failure.setting == CONTEXT:
                return None
            if _ends_search(error.failure) or error.failure.kind == UNUSABLE:
                raise
            failures[f"{CHAT}: {error.failure.text}"] = error.failure
            telling = telling or _telling([error.failure])
    if telling is not None:
        raise RequestFailedError(telling)
    does = "train" if client.needs_tokens else "be queried"
    text = f"cannot {does}: {'; '.join(failures)}; see docs/servers.md"
    raise RequestFailedError(Failure(NO_ROUTE, text, setting=URL))


def _ends_search(failure: Failure) -> bool:
    """Say whether a failure says nothing of a route: the next one would fail alike."""
    is_cut_off = failure.kind.startswith(CUT_OFF) and failure.kind != f"{CUT_OFF}none"
    is_ours = failure.status is None and failure.setting is not None
    return failure.how == NOTHING or failure.kind == LONG_REPLY or is_cut_off or is_ours


def _telling(failures: Sequence[Failure]) -> Failure | None:
    """Return a refusal that names a setting, or else a failure that may be temporary.

    None if a route answers but lacks something, or if no route exists.
    """
    if any(failure.status is None for failure in failures):
        return None
    naming = [failure for failure in failures if failure.setting is not None]
    passing = [each for each in failures if each.is_temporary and not each.is_absence]
    return next(iter(naming + passing), None)


async def _try_route(client: Any, route: TokenRoute, request: ProbeRequest) -> None:
    fields = {**request.sampling, "max_tokens": PROBE_TOKENS}
    completions = await client.ask(route, request.prompt, fields)
    check_some_usable(completions)
    if completions[0].choice.prompt not in (None, list(request.prompt.tokens)):
        raise bad_reply("it changes the tokens of the prompt")
    _check_texts(client, completions)


def _check_texts(client: Any, completions: Sequence[Completion]) -> None:
    def plain(text: Any) -> str:
        # Two decoders may treat spaces and half a character differently.
        return "".join(str(text or "").replace("\ufffd", "").split())

    texts = [(plain(c.text), plain(c.choice and c.choice.text)) for c in completions]
    pairs = [pair for pair in texts if pair[1]]  # an end alone has no text
    if not pairs:
        url = client.config.base_url
        logger.warning("%s returns no text to check env.tokenizer_name with", url)
    # A server may omit the end of a text.
    elif not any(a and (a.startswith(b) or b.startswith(a)) for a, b in pairs):
        ours, theirs = pairs[0]
        text = (
            f"its token ids are {ours[:60]!r} to this tokenizer, and {theirs[:60]!r}"
            " to the server; name the tokenizer of its model"
        )
        failure = Failure("WrongSettingError", text, setting=TOKENIZER)
        raise RequestFailedError(failure)
