"""How late a process that has nothing else to do is woken: the machine's own share.

    python -m benchmarks.harness.control REPORT

It sleeps as the probe in the environment does and writes what the probe writes. On a
machine whose cores are all busy it is late too, and no environment can be better.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.harness.probe import TICK_S, WRITE_EVERY_S
from rg_env.demo.child_process import announce, end_with_parent


def main() -> None:
    """Sleep and write until the standard input closes."""
    end_with_parent()
    with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
        announce("http:", "control")  # it is ready; there is no URL
        while True:
            delays, written = [], time.monotonic()
            while time.monotonic() - written < WRITE_EVERY_S:
                began = time.monotonic()
                time.sleep(TICK_S)
                now = time.monotonic()
                delays.append((round(now, 4), round(1e3 * (now - began - TICK_S), 3)))
            report.write(json.dumps({"delays": delays}) + "\n")
            report.flush()


if __name__ == "__main__":
    main()
