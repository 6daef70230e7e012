"""A look at what answers in the place of the Atropos API, before it knows us."""

from __future__ import annotations

import asyncio

import aiohttp

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.connection_faults import may_pass, why_never
from rg_env.inference.refusals import LONGEST_READ, said_in

FIELD = "env.rollout_server_url:"
OWN_NAME = "AtroposLib"
"""In the sentence of the API's front page."""


async def refuse_another_program(url: str) -> None:
    """Refuse a program that answers, and is not the Atropos API.

    A proxy that has not found the API yet may answer once in its place, so it is looked
    at several times. One that is silent or fails is waited for.

    Args:
        url: The API's, as the user wrote it, without a slash at its end.

    Raises:
        SettingError: It is another program, or can never be reached.
    """
    timeout = aiohttp.ClientTimeout(total=patience.PROBE_SILENT_AFTER_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for _ in range(patience.LOOKS_AT_ANOTHER_PROGRAM):
            try:
                async with session.get(f"{url}/", allow_redirects=False) as front:
                    content = await front.content.read(LONGEST_READ)
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                never = why_never(url, error)
                if never is not None:
                    raise SettingError(f"{FIELD} {never}") from error
                return
            text = content.decode("utf-8", "replace")
            if may_pass(front.status) or OWN_NAME in text:
                return
            await asyncio.sleep(patience.API_POLL_S / 2)
    leads = front.headers.get("Location")
    said = f"leads to {leads}" if leads else said_in(text)
    raise SettingError(
        f"{FIELD} what is at {url}/ answers {front.status} {said}: not the Atropos API;"
        " set the address of the API, which `run-api --port PORT` starts"
    )
