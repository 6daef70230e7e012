"""Commands in a real terminal, which is closed or whose keys are pressed.

What a command leaves is searched for afterwards: files, and processes, also those in
sessions of their own, by the folder for temporary files that they have inherited.
"""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.support.parts import ENTRY, GUARD_S

LEFT_PATIENCE_S = 10.0
CTRL_C = b"\x03"
NOISE = ("Traceback", "Exception ignored", "Task exception", "never awaited", "leaked")
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


IN_FOREGROUND = ("env", "--default-signal=INT,HUP", "setsid", "--ctty")
"""Programs that make standard input the terminal of the command that follows them. A
`preexec_fn` would do it too, and may hang while other threads are at work."""


class Terminal:
    """A terminal in which one command runs, in an empty folder.

    Attributes:
        said: What it has printed so far.
        left: Command lines of its processes that did not end with it, at the exit.
        files: Files and empty folders where it ran, by path from there, likewise.
        temporary_files: The same in its folder for them.
    """

    def __init__(self, folder, *argv):
        self.work, self._scratch = folder / "work", folder / "tmp"
        for each in (self.work, self._scratch):
            each.mkdir(parents=True)
        self._keys, screen = pty.openpty()
        self.said = ""
        self._process = subprocess.Popen(
            [*IN_FOREGROUND, sys.executable, str(ENTRY), *map(str, argv)],
            cwd=self.work,
            env=os.environ | {"TMPDIR": str(self._scratch), "TERM": "xterm"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        os.close(screen)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Look for what it has left, with some patience, and end it."""
        deadline = time.monotonic() + LEFT_PATIENCE_S
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.left = [process.info["cmdline"] for process in left]
        self.files = _leaves(self.work)
        self.temporary_files = _leaves(self._scratch)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(GUARD_S)

    @property
    def maps(self):
        """What it has mapped to memory, its libraries among them."""
        return Path(f"/proc/{self._process.pid}/maps").read_text()

    @property
    def status(self):
        """The exit status, negative for the signal that ended it."""
        return self._process.returncode

    @property
    def text(self):
        """What it has said, without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.said)

    @property
    def noise(self):
        """What of `said` no user should have to read."""
        return [noise for noise in NOISE if noise in self.said]

    @property
    def shows_cursor(self):
        return self.said.rfind(SHOW_CURSOR) >= self.said.rfind(HIDE_CURSOR)

    def _read(self, patience_s):
        if not select.select([self._keys], [], [], patience_s)[0]:
            return
        try:
            self.said += os.read(self._keys, 65536).decode(errors="replace")
        except OSError:  # nobody has the other end any more
            time.sleep(patience_s)

    def wait_for(self, condition):
        """Wait until it has said a text, or a condition holds."""
        deadline = time.monotonic() + GUARD_S
        while not (condition(self) if callable(condition) else condition in self.said):
            assert time.monotonic() < deadline, f"no {condition!r}: {self.said}"
            assert self._process.poll() is None, f"it ended: {self.said}"
            self._read(0.05)

    def press(self, keys):
        os.write(self._keys, keys)

    def close(self):
        """Close the terminal, as its window is closed."""
        os.close(self._keys)
        self._process.wait(GUARD_S)

    def kill(self):
        self._process.kill()
        self.wait_for_end()

    def wait_for_end(self):
        deadline = time.monotonic() + GUARD_S
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end: {self.said}"
            self._read(0.05)
        self._read(0.05)
        os.close(self._keys)

    def _processes(self):
        found = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TMPDIR") == str(self._scratch):
                    found.append(process)
        return found


def _leaves(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    )
