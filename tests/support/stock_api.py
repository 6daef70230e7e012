"""The framework's own Atropos API as a child process, and an API with a trainer.

python -m tests.support.stock_api --port 0
"""

import argparse
import asyncio
import contextlib
import dataclasses
import socket

from rg_env.demo.child_process import running_program
from rg_env.demo.stand_in_trainer import ENDLESS, StandInTrainer
from rg_env.errors import RunError
from rg_env.serving import serve
from tests.support.web_apps import announce


def running_api():
    return running_program("tests.support.stock_api", "--port=0")


@contextlib.asynccontextmanager
async def trained_api(config, on_step=len, *, api):
    """Run an API, and a trainer with these settings; yield the URL and the trainer."""
    async with api as url:
        trainer = StandInTrainer(dataclasses.replace(config, api_url=url), on_step)
        training = asyncio.create_task(trainer.run(ENDLESS))
        try:
            yield url, trainer
        finally:
            training.cancel()
            with contextlib.suppress(asyncio.CancelledError, RunError):
                await training


if __name__ == "__main__":
    from atroposlib.api import app

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port))
    announce(f"http://127.0.0.1:{listener.getsockname()[1]}", "Atropos API")
    asyncio.run(serve(app, listener))
