"""`run-api` serves the Atropos API, and says in one sentence why it cannot."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from rg_env.cli.command import url_of
from tests.support.parts import ENTRY, GUARD_S, run_main

IP6 = Path("/proc/net/if_inet6")
HOSTS_OF_IP6 = ["::1"] if IP6.exists() and IP6.read_text() else []


@pytest.mark.processes
@pytest.mark.parametrize("host", ["127.0.0.1", *HOSTS_OF_IP6])
def test_it_says_where_it_listens_and_answers_there_until_a_signal_ends_it(host):
    with subprocess.Popen(
        [sys.executable, ENTRY, "run-api", "--host", host, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{url}/status", timeout=GUARD_S) as reply:
            assert json.load(reply) == {"current_step": 0, "queue_size": 0}
        process.terminate()
        assert process.wait(GUARD_S) == 128 + signal.SIGTERM


def test_a_port_in_use_is_named_with_what_to_do(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert run_main(["run-api", "--host", "127.0.0.1", "--port", port]) == 2
    assert f"--port {port}: nothing can listen there" in capsys.readouterr().err


@pytest.mark.parametrize("host", [" ", "no.such.host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_here_is_refused(host, capsys):
    assert run_main(["run-api", "--host", host, "--port", "0"]) == 2
    assert "--host" in capsys.readouterr().err


def test_an_address_of_the_sixth_version_stands_in_brackets():
    assert url_of("::1", 80) == "http://[::1]:80"
