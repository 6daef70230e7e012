"""`run-api` serves the Atropos API until it is ended, or says why it cannot."""

import asyncio
import signal
import socket
import subprocess
import sys

import pytest

from rg_env.cli import server_commands
from rg_env.cli.server_commands import with_client_check
from rg_env.errors import SettingError
from tests.support.parts import ENTRY, GUARD_S, run_main
from tests.support.real_api import RealApi, registered


def test_a_port_in_use_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert run_main(["run-api", "--host", "127.0.0.1", "--port", port]) == 2
    assert f"--port {port}: nothing can listen there" in capsys.readouterr().err


@pytest.mark.parametrize(("host", "count"), [("127.0.0.1", 0), ("0.0.0.0", 1)])
def test_it_warns_if_other_machines_reach_it_without_a_secret(
    host, count, monkeypatch, logged
):
    monkeypatch.setattr(server_commands, "_serve", lambda *_: 0)
    assert run_main(["run-api", "--host", host, "--port", "0"]) == 0
    assert logged.text.count("--secret_file FILE requires a secret") == count


@pytest.mark.parametrize("text", [b"too-short", b"with/slash/0123456789", b"\xff"])
def test_a_file_without_a_usable_secret_is_refused_and_not_repeated(tmp_path, text):
    path = tmp_path / "secret"
    path.write_bytes(text)
    with pytest.raises(SettingError, match=r"--secret_file .*openssl rand") as error:
        with_client_check(None, "::1", str(path), "")
    assert text.decode(errors="replace") not in str(error.value)


@pytest.mark.processes
def test_serve_and_a_trainer_use_an_api_with_a_secret(tmp_path):
    secret = "0123456789abcdef" * 2
    (tmp_path / "secret").write_text(secret)
    options = ["--host=::1", "--port=0", f"--secret_file={tmp_path / 'secret'}"]

    async def run(url):
        async with registered(url):
            pass

    with subprocess.Popen(
        [sys.executable, ENTRY, "run-api", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().split()[-1]
        api = RealApi(f"{url}/{secret}")
        assert api.query("GET", "/status") == {"current_step": 0, "queue_size": 0}
        api.start_trainer()
        asyncio.run(run(api.url))
        assert api.connected() == 0
        with pytest.raises(SettingError, match="status 401: send the secret") as error:
            asyncio.run(run(f"{url}/{secret[:-1]}"))
        process.terminate()
        rest = process.communicate(timeout=GUARD_S)[0]
    assert process.returncode == 128 + signal.SIGTERM
    assert secret[:-1] not in f"{url}{rest}{error.value}"
