"""The look at all servers of a run, and the end of a start that cannot succeed.

    at the start      every server is looked at, beside the setup; one that is not there
                      yet is looked at again until it is
    until the first   a reply that cannot get better by waiting ends the start, with the
    completion        setting at fault
    from then on      the same reply is a failed request like any other: a run of days
                      outlives a server that somebody sets up anew

Only servers whose clients are ours are looked at.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import aiohttp
import msgspec
import pydantic

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.connection_faults import describe, fault_of
from rg_env.inference.guarded_server import GuardedServer
from rg_env.inference.native_servers import SERVER_CLASSES, NativeServer
from rg_env.inference.outages import OutageWatch
from rg_env.inference.reply_reasons import (
    Reply,
    UnusableReplyError,
    is_about_the_model,
    refusal_behind,
    why_key,
    why_refused,
    why_setting,
)
from rg_env.inference.route_probe import NoRouteError
from rg_env.inference.server_extras import headers_of, secrets_of
from rg_env.inference.server_look import (
    FIRST_SERVER_FAULT,
    LATER,
    REFUSED_KEY,
    NotThere,
    ServerLook,
)

logger = logging.getLogger(__name__)

OTHER_REPLIES = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    aiohttp.ContentTypeError,
    msgspec.MsgspecError,
    pydantic.ValidationError,
)
"""What clients raise where a reply is well and of another form than theirs."""


class _Seen:
    """One server, and what has been seen of it."""

    def __init__(self, server: NativeServer) -> None:
        self.server = server
        self.looked = asyncio.Event()
        self.failed = asyncio.Event()
        self.absence: str | None = None


class StartLook:
    """Looks at servers until the first of them has given a completion.

    Args:
        servers: The framework's server objects.
        watch: Told of servers that are not there.

    Attributes:
        refusal: Why the start is to end, None as long as it need not.
    """

    def __init__(self, servers: Sequence[Any], watch: OutageWatch) -> None:
        ours = tuple(SERVER_CLASSES.values())
        self._servers = [server for server in servers if type(server) in ours]
        self._watch = watch
        self._seen: list[_Seen] = []
        self._end: Callable[[], object] | None = None
        self._trains = False
        self._useless = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusal: SettingError | None = None

    async def unless_refused(
        self, work: Coroutine[Any, Any, None], *, trains: bool
    ) -> None:
        """Do a command's work; end it where a server refuses it for good.

        Args:
            work: Is cancelled then.
            trains: Whether the servers are to serve a trainer.

        Raises:
            SettingError: The setting at fault.
        """
        this = asyncio.current_task()
        self._trains, self._end = trains, this.cancel if this is not None else None
        self._seen = [_Seen(server) for server in self._servers]
        for seen in self._seen:
            seen.server.on_failure = self._note_failure
            self._begin(self._keep_looking(seen))
        try:
            await work
        except asyncio.CancelledError:
            if self.refusal is None:
                raise
            raise self.refusal from None
        finally:
            self._end = None
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def looked(self) -> None:
        """Wait until every server was looked at once, which takes seconds at most."""
        await asyncio.gather(*(seen.looked.wait() for seen in self._seen))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def _has_begun(self) -> bool:
        """Whether the start is over: a server has given a completion."""
        return any(server.has_answered for server in self._servers)

    def _refuse(self, error: SettingError) -> None:
        if self._end is None or self.refusal is not None or self._has_begun:
            return
        self.refusal = error
        self._watch.gave_up.set()  # what is being asked need not be waited for
        self._end()

    # -- pages -------------------------------------------------------------------------

    async def _keep_looking(self, seen: _Seen) -> None:
        """Look at a server until it is there, and again when a request fails."""
        pause_s = patience.LOOK_FIRST_PAUSE_S
        while not self._has_begun:
            began = time.monotonic()
            await self._look(seen)
            seen.looked.set()
            least_s = patience.LOOK_FIRST_PAUSE_S - (time.monotonic() - began)
            await asyncio.sleep(max(0.0, least_s))
            if seen.absence is not None:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, patience.LOOK_LONGEST_PAUSE_S)
            else:
                await seen.failed.wait()
            seen.failed.clear()

    async def _look(self, seen: _Seen) -> None:
        was_absent, absence = seen.absence is not None, None
        try:
            await self._look_of(seen.server).check()
            if self._trains:
                await self._find_route(seen.server)
        except NotThere as fault:
            absence = str(fault)
        except SettingError as error:
            self._refuse(error)
            return
        except Exception:  # a look that fails says nothing of the server
            logger.debug("the look at a server failed", exc_info=True)
        seen.absence = absence
        if absence is not None and all(s.absence is not None for s in self._seen):
            self._watch.note_absence(absence)
        elif was_absent and absence is None:
            self._watch.note_presence()

    async def _find_route(self, server: NativeServer) -> None:
        """Find out how a server is asked for token ids, and say so.

        Raises:
            SettingError: It can never give what a trainer needs.
            NotThere: It is there and does not answer yet.
        """
        look = self._look_of(server)
        finding = server.find_route(anew=not server.has_answered)
        try:
            route = await asyncio.wait_for(finding, patience.FIND_ROUTE_WITHIN_S)
        except NoRouteError as error:
            raise await look.why_no_tokens(error) from error
        except (
            aiohttp.ClientError,
            asyncio.TimeoutError,
            OSError,
            UnusableReplyError,
        ) as error:
            reply = refusal_behind(error, *secrets_of(server.config))
            if reply is None or not 400 <= reply.status < FIRST_SERVER_FAULT:
                raise NotThere(describe(error, *secrets_of(server.config))) from error
            self._read(server, reply)
            return
        logger.info(
            "inference at %s (%s): token ids from %s",
            server.config.base_url,
            await look.words(),
            route.words,
        )

    def _look_of(self, server: GuardedServer) -> ServerLook:
        config = server.config
        return ServerLook(
            config.base_url or "",
            config.server_type,
            config.model_name,
            config.api_key,
            self._trains,
            headers_of(config),
        )

    # -- replies -----------------------------------------------------------------------

    def _note_failure(self, server: GuardedServer, error: Exception) -> None:
        """A request failed; end the start if the next one has to fail as well."""
        if self._end is None or self._has_begun:
            return
        reply = refusal_behind(error, *secrets_of(server.config))
        if reply is not None:
            self._read(server, reply)
        elif isinstance(error, UnusableReplyError | NoRouteError):
            pass  # of our form, and broken off, which may pass; or looked at anyway
        elif isinstance(error, OTHER_REPLIES) and fault_of(error) is None:
            self._count_other(server, error)
        for seen in self._seen:
            if seen.server is server:
                seen.failed.set()

    def _read(self, server: GuardedServer, reply: Reply) -> None:
        url = server.config.base_url or ""
        sentence = why_setting(url, reply)
        if reply.status in REFUSED_KEY:
            sentence = why_key(url, reply)
        elif self._sends_model(server) and is_about_the_model(reply):
            self._begin(self._refuse_model(server, reply))
            return
        elif sentence is None and 400 <= reply.status < 500:
            self._useless += reply.status not in LATER
            if self._useless >= patience.REFUSALS_BEFORE_FIRST_ANSWER:
                sentence = why_refused(url, reply)
        if sentence is not None:
            self._refuse(SettingError(sentence))

    @staticmethod
    def _sends_model(server: GuardedServer) -> bool:
        """Say whether requests name the model, which those to `/generate` do not."""
        return server.config.server_type in ("openai", "vllm")

    def _count_other(self, server: GuardedServer, error: Exception) -> None:
        self._useless += 1
        if self._useless < patience.REFUSALS_BEFORE_FIRST_ANSWER:
            return
        config, told = server.config, describe(error, *secrets_of(server.config))
        self._refuse(
            SettingError(
                f"openai.server_type: {config.base_url} answers, but not as a server of"
                f" type {config.server_type!r} does ({told}); set the type that it is,"
                " or another openai.base_url"
            )
        )

    async def _refuse_model(self, server: GuardedServer, reply: Reply) -> None:
        self._refuse(await self._look_of(server).why_model(reply))
