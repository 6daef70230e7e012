"""The probe of a server: a short request that shows how to query it.

For training, the routes of token ids are tried in turn until one returns everything
that a trainer needs. Otherwise a server without token ids is queried as a chat, and so
is every server of type `openai`. A wrong tokenizer ends the search, because another
route would only hide the problem.
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
    ABORTED,
    ABOUT_THE_REQUEST,
    BAD_REPLY,
    CONTEXT,
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

# Length of a probe's completion: enough to see whether its text belongs to its ids.
PROBE_TOKENS = 8

NO_ROUTE = "NoRouteError"

# Failures that concern the route; the next one is tried.
ROUTE_KINDS = (BAD_REPLY, UNUSABLE, f"{ABORTED}none")
ROUTE_STATUSES = ABOUT_THE_REQUEST | {404, 405, 410, 501}


class ProbeRequest(NamedTuple):
    """A short prompt, and the sampling of a run, `n` included."""

    prompt: Prompt
    sampling: Mapping[str, Any]


def routes_of(client: Client) -> list[Route]:
    """Return the routes of a server in the order in which they are tried."""
    kind = client.config.server_type
    if kind == "openai" and not client.needs_tokens:
        return [CHAT]
    routes = [*ROUTES]
    if kind == "sglang":
        routes.sort(key=lambda route: route is not SGLANG)  # SGLANG first
    return routes if client.needs_tokens else [*routes, CHAT]


async def find_route(client: Client, request: ProbeRequest) -> Route:
    """Return the first route by which a server can be queried.

    Raises:
        RequestFailedError: No route works, or the server fails for another reason.
    """
    failures: dict[str, str] = {}
    fields = {**request.sampling, "max_tokens": PROBE_TOKENS}
    for route in routes_of(client):
        try:
            completions = await client.query(route, request.prompt, fields)
            if route is not CHAT:
                _check_texts(completions)
            return route
        except RequestFailedError as error:
            failure = error.failure
            # Some servers refuse a limit that thinking would use up. That of a run is
            # higher.
            if route is CHAT and failure.setting == CONTEXT:
                return route
            if failure.setting is not None:
                raise
            if failure.kind not in ROUTE_KINDS and failure.status not in ROUTE_STATUSES:
                raise
            failures.setdefault(route.path, failure.text)  # two routes share a path
    use = "train" if client.needs_tokens else "be queried"
    reasons = "; ".join(f"{path}: {text}" for path, text in failures.items())
    text = f"cannot {use}: {reasons}; see docs/servers.md"
    raise RequestFailedError(Failure(NO_ROUTE, text, setting=URL))


def _check_texts(completions: Sequence[Completion]) -> None:
    """Raise an error if no text of a server is that of its token ids."""

    def plain(text: Any) -> str:
        # Two decoders may treat spaces and an incomplete character differently.
        return "".join(str(text or "").replace("\ufffd", "").split())

    text = None
    for completion in completions:
        ours = plain(completion.text)
        theirs = plain(completion.server_text)
        if not theirs:  # a completion that is only an end token has no text
            continue
        # A server may omit the end of a text.
        if ours and (ours.startswith(theirs) or theirs.startswith(ours)):
            return
        text = text or (
            f"its token ids are {ours[:60]!r} to this tokenizer, and {theirs[:60]!r}"
            " to the server; name the tokenizer of its model"
        )
    if text is not None:
        failure = Failure("WrongSettingError", text, setting=TOKENIZER)
        raise RequestFailedError(failure)


# -- the model of a reply --------------------------------------------------------------


def is_same_model(requested: str, name: str) -> bool:
    """Return whether a name is the requested model's, perhaps with a folder or a date.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06")
    True
    """
    base_name = re.escape(PurePath(requested).name.removesuffix("-latest"))
    pattern = rf"(.*/)?{base_name}([-@]\d[\d-]{{3,}})?"
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


async def check_model(client: Client, name: str) -> None:
    """Check the name of the model in a reply.

    The name may be an alias of the requested model in the server's list. If the list
    has no requested model, the first name is accepted. But completions for a trainer
    may not be of another model in the list.

    Raises:
        RequestFailedError: The reply is of another model.
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
    if is_alias:
        return
    is_first = not client.model_names and requested not in roots
    is_other = client.needs_tokens and name in roots
    if is_other or not is_first:
        text = f"a reply is of the model {shown(name)}, not of {shown(requested)}"
        raise RequestFailedError(Failure("OtherModelError", text, setting=MODEL))
    logger.warning(
        "inference at %s calls the model %s %s",
        client.config.base_url,
        shown(requested),
        shown(name),
    )
