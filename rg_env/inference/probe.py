"""The probe of a server: a short request that shows how to query it.

For training, it tries one route of token ids after the other, until one returns all
that a trainer needs. Otherwise a server without token ids is queried as a chat, and so
is every server of type `openai`. A wrong tokenizer ends the search, because another
route could only hide the problem.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from rg_env.errors import shown
from rg_env.inference.completions import Completion
from rg_env.inference.connection import (
    ABOUT_THE_REQUEST,
    BAD_REPLY,
    CONTEXT,
    CUT_OFF,
    MODEL,
    PAGE_S,
    TOKENIZER,
    UNUSABLE,
    URL,
    Failure,
    RequestFailedError,
)
from rg_env.inference.prompts import Prompt
from rg_env.inference.protocols import CHAT, PARSE_ERRORS, ROUTES, SGLANG, Route

if TYPE_CHECKING:
    from rg_env.inference.client import Client

logger = logging.getLogger(__name__)

# Length of a probe's completion: enough to see that its text is not of the ids.
PROBE_TOKENS = 8

NO_ROUTE = "NoRouteError"


class ProbeRequest(NamedTuple):
    """A short prompt, and the sampling of a run, `n` included."""

    prompt: Prompt
    sampling: Mapping[str, Any]


def routes_of(client: Client) -> list[Route]:
    """Return the routes of a server in the order in which they are tried."""
    kind = client.config.server_type
    if kind == "openai" and not client.needs_tokens:
        return [CHAT]
    routes = dict.fromkeys((SGLANG, *ROUTES) if kind == "sglang" else ROUTES)
    return [*routes] if client.needs_tokens else [*routes, CHAT]


async def find_route(client: Client, request: ProbeRequest) -> Route:
    """Return the route at which to query a server."""
    failures: list[str] = []
    fields = {**request.sampling, "max_tokens": PROBE_TOKENS}
    for route in routes_of(client):
        try:
            completions = await client.ask(route, request.prompt, fields)
            if route is not CHAT:
                _check_texts(completions)
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
            # Two routes have one path; the words about the first stand.
            if not any(each.startswith(f"{route.path}: ") for each in failures):
                failures.append(f"{route.path}: {failure.text}")
    does = "train" if client.needs_tokens else "be queried"
    text = f"cannot {does}: {'; '.join(failures)}; see docs/servers.md"
    raise RequestFailedError(Failure(NO_ROUTE, text, setting=URL))


def _check_texts(completions: Sequence[Completion]) -> None:
    """Raise an error if a server's texts are not those of its token ids."""

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


# -- the model of a reply --------------------------------------------------------------


def is_same_model(requested: str, name: str) -> bool:
    """Return whether a name has the requested one, in a folder or with a date.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06")
    True
    """
    plain = re.escape(PurePath(requested).name.removesuffix("-latest"))
    pattern = rf"(.*/)?{plain}([-@]\d[\d-]{{3,}})?"
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


async def check_model(client: Client, name: str) -> None:
    """Accept the name of the model in a reply, or raise a `RequestFailedError`.

    A server may answer with another name of the requested model, as its list says. One
    that does not list it has names of its own, of which the first is accepted, but a
    trainer does not learn from a model that is listed in its place.
    """
    requested = client.config.model_name
    if is_same_model(requested, name):
        return
    try:
        models = await client.connection.models(PAGE_S)
        roots = {model["id"]: model.get("root") or model["id"] for model in models}
    except (RequestFailedError, *PARSE_ERRORS):
        roots = {}
    is_alias = requested in roots and roots[requested] == roots.get(name, name)
    is_own_name = not client.model_names and requested not in roots
    is_other = client.needs_tokens and name in roots
    if not is_alias and (is_other or not is_own_name):
        text = f"a reply is of the model {shown(name)}, not of {shown(requested)}"
        raise RequestFailedError(Failure("OtherModelError", text, setting=MODEL))
    if is_own_name:
        text = "inference at %s calls the model %s %s"
        logger.warning(text, client.config.base_url, shown(requested), shown(name))
