"""`run-api`: the framework's own API, which the trainer and `serve` meet at.

The same application as the framework's command of this name, which may be used as well;
see rg_env.trainer_api for what makes this one quicker.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Sequence
from typing import Any

from rg_env import ending
from rg_env.cli import option_types
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError
from rg_env.trainer_api import api_server

WAITING_CONNECTIONS = 2048
"""As many as the framework's command lets wait."""


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py run-api",
        description="Serve the Atropos API: the framework's own, with its replies"
        " encoded quickly.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--host",
        type=option_types.not_blank,
        default="0.0.0.0",  # noqa: S104 - as the framework's own command
        help="address to listen on; 127.0.0.1 for this machine alone",
    )
    parser.add_argument(
        "--port", type=option_types.port, default=8000, help="0 picks a free one"
    )
    return parser


def _listen(host: str, port: int) -> socket.socket:
    option_types.check_can_listen(host, port)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    try:
        return socket.create_server(
            (host, port), family=family, backlog=WAITING_CONNECTIONS
        )
    except OSError as error:
        raise SettingError(f"--port {port}: {error}") from error


async def _serve(listener: socket.socket) -> None:
    served = api_server.application()
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    print(f"Atropos API ready on http://{name}:{port}", flush=True)
    await api_server.serve(served, listener)


def run_api(env_cls: Any, argv: Sequence[str]) -> int:
    """Run the command until a signal ends it."""
    del env_cls
    options = build_parser().parse(argv)
    with _listen(options.host, options.port) as listener:
        ending.run(_serve(listener))
    return 0
