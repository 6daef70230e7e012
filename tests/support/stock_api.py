"""The framework's own Atropos API as a child process.

python -m tests.support.stock_api --port 0
"""

import argparse
import asyncio
import socket

from rg_env.demo.child_process import running_program
from rg_env.serving import serve
from tests.support.web_apps import announce


def running_api(port=0, log_path=None):
    argv = f"--port={port}"
    return running_program("tests.support.stock_api", argv, log_path=log_path)


if __name__ == "__main__":
    from atroposlib.api import app

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port))
    announce(f"http://127.0.0.1:{listener.getsockname()[1]}", "Atropos API")
    asyncio.run(serve(app, listener))
