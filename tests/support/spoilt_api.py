"""A door to the Atropos API that spoils requests on purpose, by a script.

Every request is handed on to a real API, before or after a fault. Only environments go
through it and suffer; the trainer asks the real one.
"""

import asyncio
import contextlib
import itertools

import aiohttp
from aiohttp import web

from tests.support import faults
from tests.support.web_apps import app_of, serve_app

TIMEOUT_S = 20.0
JSON = {"Content-Type": "application/json"}


class SpoiltApi:
    """The handlers of one door; only requests of a path suffer, where one is given."""

    def __init__(self, script, url, only=None):
        self._url = url
        self._only = only
        self._script = script
        self._numbers = itertools.count()

    async def hand_on(self, request):
        """Hand a request on, unless its fault is one that comes before."""
        is_chosen = self._only in (None, request.path)
        fault = self._script(next(self._numbers)) if is_chosen else ""
        reply = await faults.spoil(request, fault)
        if reply is not None:
            return reply
        try:
            body = await request.read()  # unpacked
        except ConnectionResetError:  # the environment was killed
            return web.Response(status=400)
        try:
            status, body = await self._ask(request, body)
        except (aiohttp.ClientError, asyncio.TimeoutError):
            return web.Response(status=502)
        if fault == "reply_lost":
            return faults.cut_connection(request)
        if fault == "faulted_after":
            return web.Response(status=500)
        return web.Response(body=body, status=status, content_type="application/json")

    async def _ask(self, request, body):
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        url = self._url + request.path_qs
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.request(request.method, url, data=body, headers=JSON) as served,
        ):
            return served.status, await served.read()

    def app(self):
        return app_of(self.hand_on)


@contextlib.asynccontextmanager
async def faulty_api(script, url, only):
    """Serve in this process; yield the door, with its `url`."""
    api = SpoiltApi(script, url, only)
    async with serve_app(api.app()) as api.url:
        yield api
