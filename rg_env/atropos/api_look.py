"""A look at what answers in the place of the Atropos API, before it knows us."""

from __future__ import annotations

import asyncio

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.server_look import (
    FIRST_SERVER_FAULT,
    LATER,
    SENT_ON,
    Pages,
    is_atropos_api,
    kind_at,
    root_of,
    why_unreachable,
)

FIELD = "env.rollout_server_url:"


async def refuse_another_program(url: str) -> None:
    """Refuse a program that answers, and is not the Atropos API.

    A proxy that has not found the API yet may answer once in its place, so it is looked
    at several times. One that is silent or fails is waited for.

    Args:
        url: The API's, as the user wrote it, without a slash at its end.

    Raises:
        SettingError: It is another program, or can never be reached.
    """
    async with Pages(None, by_proxy=False) as pages:
        for _ in range(patience.LOOKS_AT_ANOTHER_PROGRAM):
            front = await pages.get(f"{url}/")
            if front.status == 0:
                sentence = await why_unreachable(url, front.fault or "")
                if sentence is not None:
                    raise SettingError(f"{FIELD} {sentence}")
                return
            is_failing = front.status >= FIRST_SERVER_FAULT or front.status in LATER
            if is_failing or is_atropos_api(front):
                return
            await asyncio.sleep(patience.API_POLL_S / 2)
        if front.status in SENT_ON:
            raise SettingError(
                f"{FIELD} {url} leads elsewhere ({front.status}, to {front.location});"
                " write the address that it leads to"
            )
        root = root_of(url)
        if root != url and is_atropos_api(await pages.get(f"{root}/")):
            raise SettingError(f"{FIELD} the Atropos API is not at {url}; write {root}")
        kind = await kind_at(pages, url)
    words = f"answers with {front.status} at /" if kind is None else f"is {kind.words}"
    raise SettingError(
        f"{FIELD} what is at {url} {words}, not the Atropos API; set the address of"
        " the API, which `run-api --port PORT` starts"
    )
