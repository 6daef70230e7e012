"""A probe that finds out how to query a server, with a short request.

For training, the server is queried for token ids at one route after the other, until
one returns what a trainer needs. Otherwise a server that returns no token ids is
queried as a chat, and so is every server of type `openai`. A wrong tokenizer ends the
search, because another route could only hide the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rg_env.inference.completions import check_some_usable
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

PROBE_TOKENS = 8
"""Length of a probe's completion: enough to see that its text is not of the ids."""

NO_ROUTE = "NoRouteError"


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
