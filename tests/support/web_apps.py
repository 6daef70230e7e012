"""An aiohttp application that is served while a context or a process lasts.

python -m tests.support.web_apps PORT
"""

import asyncio
import contextlib
import os
import sys

from aiohttp import web

MAX_BODY_BYTES = 64 * 1024**2


def app_of(handler):
    """Return an application in which one handler answers every request."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_route("*", "/{path:.*}", handler)
    return app


@contextlib.asynccontextmanager
async def serve_app(app, port=0):
    """Serve an application while the context lasts; yield the base URL."""
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=1.0,  # a waiting answer must not hold up the end
        handler_cancellation=True,  # when its client goes away
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def announce(url, name):
    """Tell the parent where this process listens."""
    print(f"{name} ready on {url}", flush=True)
    os.dup2(2, 1)  # nobody reads the pipe any more, and a full one would stop us


async def serve_announced(app, name, port):
    """Serve an application, and say where, until this is cancelled."""
    async with serve_app(app, port) as url:
        announce(url, name)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve_announced(web.Application(), "nothing", int(sys.argv[1])))
