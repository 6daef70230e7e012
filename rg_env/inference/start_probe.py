"""The probe of all servers of a run, and the end of a start that cannot succeed.

Every server is probed beside the setup, again and again until it is there. Until one
has given a completion, a reply that cannot get better by waiting ends the start with
the setting at fault; from then on it is a failed request like any other, since a run of
days outlives a server that somebody sets up anew. Only clients of ours probe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.client import Client
from rg_env.inference.outages import OutageWatch
from rg_env.inference.probe import NoRouteError, ProbeRequest, WrongSettingError
from rg_env.inference.request_failures import (
    MODEL,
    SILENT,
    Refusal,
    may_pass,
    refusal_behind,
    sentence,
    why_never,
)
from rg_env.inference.request_settings import secrets_of
from rg_env.inference.server_types import CLIENTS

URL = "openai.base_url"


class StartProbe:
    """Probes servers until the first of them has given a completion.

    Args:
        servers: The framework's server objects.
        watch: Told of servers that are not there.
    """

    def __init__(self, servers: Sequence[Any], watch: OutageWatch) -> None:
        ours = tuple(CLIENTS.values())
        self._clients: list[Client] = [s for s in servers if type(s) in ours]
        self._watch = watch
        self._absent: set[Client] = set()
        self._end: Callable[[], object] | None = None
        self._refused = 0
        self._tasks: list[asyncio.Future[None]] = []
        self._refusal: SettingError | None = None

    async def unless_refused(
        self, work: Coroutine[Any, Any, None], request: Callable[[], ProbeRequest]
    ) -> None:
        """Do a command's work; cancel it where a server refuses a probe for good.

        Raises:
            SettingError: The setting at fault.
        """
        this = asyncio.current_task()
        self._end = this.cancel if this is not None else None
        for client in self._clients:
            client.on_failure = self._note_failure
            probing = self._keep_probing(client, request)
            self._tasks.append(asyncio.ensure_future(probing))
        try:
            await work
        except asyncio.CancelledError:
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            self._end = None
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def _is_over(self) -> bool:
        """Whether a server has given a completion, or the start is to end."""
        has_begun = any(client.has_answered for client in self._clients)
        return has_begun or self._end is None or self._refusal is not None

    async def _keep_probing(
        self, client: Client, request: Callable[[], ProbeRequest]
    ) -> None:
        """Probe a server until it is there."""
        pause_s = patience.PROBE_FIRST_PAUSE_S
        client.probe_request = request()
        while not self._is_over and not await self._is_there(client):
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, patience.PROBE_LONGEST_PAUSE_S)

    async def _is_there(self, client: Client) -> bool:
        hanging = asyncio.get_running_loop().call_later(
            patience.PROBE_SILENT_AFTER_S, self._note_absence, client, SILENT
        )
        try:
            await client.probe()
        except Exception as error:  # noqa: BLE001 - as many kinds as ways to be down
            self._note_failure(client, error)
            self._note_absence(client, client.describe(error))
            return False
        finally:
            hanging.cancel()
        client.circuit.note_answer()
        if self._absent == set(self._clients):
            self._watch.note_presence()
        self._absent.discard(client)
        return True

    def _note_absence(self, client: Client, reason: str) -> None:
        self._absent.add(client)
        if self._absent == set(self._clients) and self._refusal is None:
            self._watch.note_absence(reason)

    # -- what ends the start -----------------------------------------------------------

    def _note_failure(self, client: Client, error: Exception) -> None:
        """A request failed; end the start if the next one has to fail as well."""
        if self._is_over:
            return
        url = client.config.base_url or ""
        refusal = refusal_behind(error, *secrets_of(client.config))
        if isinstance(error, WrongSettingError):
            self._refuse(f"{error.field}: {url}: {error}")
        elif isinstance(error, NoRouteError):
            does = "train" if client.needs_tokens else "be queried"
            self._refuse(f"{URL}: {url} cannot {does}: {error}; see docs/servers.md")
        elif refusal is not None:
            self._note_refusal(client, url, refusal)
        elif (never := why_never(url, error)) is not None:
            self._refuse(f"{URL}: {never}")

    def _note_refusal(self, client: Client, url: str, refusal: Refusal) -> None:
        field = refusal.setting
        self._refused += field is None and not may_pass(refusal.status)
        if field == MODEL:
            naming = self._refuse_model(client, url, refusal)
            self._tasks.append(asyncio.ensure_future(naming))
        elif field or self._refused >= patience.REFUSALS_BEFORE_FIRST_ANSWER:
            self._refuse(sentence(field or URL, url, refusal))

    async def _refuse_model(self, client: Client, url: str, refusal: Refusal) -> None:
        names = await client.connection.model_names()
        self._refuse(sentence(MODEL, url, refusal, names))

    def _refuse(self, reason: str) -> None:
        if not self._is_over and self._end is not None:
            self._refusal = SettingError(reason)
            self._watch.gave_up.set()  # requests under way need not be waited for
            self._end()
