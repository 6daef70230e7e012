"""The benchmark of throughput measures what it says and leaves nothing behind."""

import argparse
import asyncio
import json
import subprocess
import sys

import psutil
import pytest

from benchmarks import throughput
from tests.support.documents import ROOT

SLOW_ONCE = """
import asyncio, sys, time

async def main():
    await asyncio.sleep(0.05)
    time.sleep(0.3)
    await asyncio.sleep(1.0)
    print(sys.argv[1:])

asyncio.run(main())
"""


@pytest.mark.processes
def test_the_probe_runs_a_file_as_python_does_and_sees_its_loop_stand_still(tmp_path):
    program = tmp_path / "program.py"
    report = tmp_path / "report"
    program.write_text(SLOW_ONCE)
    probe = [sys.executable, ROOT / "benchmarks" / "loop_probe.py", report]
    argv = [*probe, program, "serve", "--x=1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "['serve', '--x=1']\n"
    late = [
        ms for line in report.read_text().splitlines() for _, ms in json.loads(line)
    ]
    assert 250 < max(late) < 5_000
    assert sorted(late)[len(late) // 2] < 250


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    pairs = [(10.0, 20.0), (30.0, 40.0), (90.0, 100.0)]
    runs = [
        {"name": name, "api": "quick", "latency_ms": 0.0}
        | dict.fromkeys(throughput.MEASURES, value)
        for pair in pairs
        for name, value in zip(("ours", "other"), pair, strict=True)
    ]
    assert list(throughput.table(runs).columns[1].cells) == ["30.0", "40.0", "0.75"]


@pytest.mark.processes
@pytest.mark.slow
def test_groups_reach_the_trainer_and_nothing_is_left():
    before = set(psutil.Process().children(recursive=True))
    options = argparse.Namespace(against=None, apis=["quick"], latencies=[0.0])
    options.rounds = 1
    options.seconds = 1.0
    runs = []
    asyncio.run(throughput.run_all(options, runs))
    (run,) = runs
    assert min(run[measure] for measure in throughput.MEASURES) > 0
    assert set(psutil.Process().children(recursive=True)) <= before
