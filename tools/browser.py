"""Chromium without a window, driven through its pipe; pages are opened from the disk.

with Browser(tmp_path) as browser:
    browser.open(page)
    browser.run("document.title")
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
GUARD_S = 60.0
OPTIONS = (
    *("--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--force-color-profile=srgb"),
    "--disable-dev-shm-usage",
)

SAYING = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
"""Events of the console; one without a level is an error."""


def find_browser() -> str:
    """Return the path of a browser, or raise `FileNotFoundError`."""
    for path in filter(None, map(shutil.which, BROWSERS)):
        return path
    raise FileNotFoundError(
        f"no browser is on PATH: looked for {', '.join(BROWSERS)}; install chromium"
    )


class Browser:
    """One page of one browser.

    Attributes:
        errors: What its console has said of errors, warnings left out.
        requests: Every address that it asked for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "browser"
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._number, self._rest = 0, b""
        self._session: str | None = None

    def __enter__(self) -> Browser:
        self._pipe, other_end = socket.socketpair()
        self._pipe.settimeout(GUARD_S)
        words = [find_browser(), *OPTIONS, f"--user-data-dir={self._folder}"]
        if os.geteuid() == 0:  # as root it does not start with its sandbox
            words.append("--no-sandbox")
        end = other_end.fileno()
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{end} 4>&{end}', "bash", *words],
            pass_fds=(end,),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        other_end.close()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._pipe.close()

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol of the developer tools; return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._pipe.sendall(json.dumps(message).encode() + b"\0")
        while True:
            found = self._message()
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self._note(found.get("method"), found.get("params", {}))

    def _message(self) -> Any:
        while b"\0" not in self._rest:
            part = self._pipe.recv(2**20)
            assert part, "the browser has gone"
            self._rest += part
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Page.javascriptDialogOpening":
            raise AssertionError(f"a dialog: {params['message']}")
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        level = params.get("type") or params.get("entry", {"level": "error"})["level"]
        if event in SAYING and level == "error":
            self.errors.append(str(params))

    def open(self, page: Path) -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.as_uri())
        ready = "document.body?.dataset.ready > 0"
        self.wait(f"location.protocol === 'file:' && {ready}")

    def run(self, expression: str) -> Any:
        """Return the value of an expression, awaited."""
        found = self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        end = time.monotonic() + GUARD_S
        while not self.run(expression):
            assert time.monotonic() < end, (expression, self.errors)
            time.sleep(0.02)

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path: Path) -> None:
        taken = self.call("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(taken["data"]))
