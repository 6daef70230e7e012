"""`run-api`: the framework's own API, which the trainer and `serve` meet at.

The same application as the framework's command of this name, which may be used as well;
see rg_env.atropos.run_api for what makes this one quicker. That command listens to
every machine; this one to its own, unless it is told otherwise.
"""

from __future__ import annotations

import sys

import click

from rg_env.atropos import run_api as api
from rg_env.cli import listening
from rg_env.cli.command import Command
from rg_env.cli.main import main
from rg_env.demo.child_process import end_with_parent

WAITING_CONNECTIONS = 2048
"""As many as the framework's command lets wait."""

RISK = "each can register, take batches and send groups that are trained on"


@click.command("run-api", cls=Command, example="run-api --port 8000")
@listening.HOST
@listening.port_option(8000)
@listening.SECRET_FILE
@listening.ALLOWED_HOSTS
def run_api(
    host: str, port: int, secret_file: str | None, allowed_hosts: list[str] | None
) -> int:
    """Run the Atropos API. It is the framework's own API with faster encoding."""
    with listening.listen(host, port, WAITING_CONNECTIONS) as listener:
        names = [host, *(allowed_hosts or ())]
        served = listening.checked(api.application(), secret_file, names)
        host, port = listener.getsockname()[:2]
        ready = f"Atropos API ready on {listening.url_of(host, port)}"
        who = listening.who_reaches(host, port, secret_file, RISK)
        listening.serve(served, listener, ready, who)
    return 0


if __name__ == "__main__":  # of the demo
    end_with_parent()
    sys.exit(main(None, ["run-api", *sys.argv[1:]]))
