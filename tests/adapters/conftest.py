"""What the tests of the adapters share; it is copied with them, so it stands alone."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rg_env.library import installed_library
from rg_env.workers.worker_pool import WorkerPool

LIMIT_S = 120.0


@pytest.fixture(scope="module")
def own_pool():
    """Worker processes that end with the tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed_library, "_pools", {})
        yield
        for pool in installed_library._pools.values():
            pool.close()


@pytest.fixture
def lost_workers(own_pool, monkeypatch):
    closed = WorkerPool(1)
    closed.close()
    monkeypatch.setattr(installed_library, "_pools", {(): closed})


class Chat(http.server.BaseHTTPRequestHandler):
    """A model that writes what `texts` says by question, and fails at others."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.texts.get(body["messages"][-1]["content"])
        if known is None:
            self.send_error(501)
            return
        message = {"role": "assistant", **known}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "p"}
        data = json.dumps({**reply, "choices": choices, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def serve_chat():
    """From the message of each question to the URL of a model that writes it."""
    with contextlib.ExitStack() as running:

        def start(texts):
            handler = type("Handler", (Chat,), {"texts": texts})
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            threading.Thread(target=server.serve_forever).start()
            running.callback(server.server_close)
            running.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}/v1"

        yield start


@pytest.fixture(scope="session")
def command():
    """Runs a command of a package in a folder, with further variables."""

    def run(folder, name, *options, **variables):
        done = subprocess.run(
            [str(Path(sys.executable).with_name(name)), *options],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return run
