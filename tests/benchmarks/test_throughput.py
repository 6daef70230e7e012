"""The throughput harness measures what it says and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading

import psutil
import pytest
from rich.console import Console

from benchmarks import throughput
from benchmarks.harness import report
from benchmarks.harness.children import start_watched
from benchmarks.harness.run import loop_delays
from benchmarks.harness.setting import Contestant, Setting, command_line
from tests.support.parts import until
from tests.support.processes import left_alive

# -- the probe and the processes -------------------------------------------------------

ENVIRONMENT = """
import asyncio, os, subprocess, sys, time, types

class BaseEnv: pass
host = types.SimpleNamespace(BaseEnv=BaseEnv)
sys.modules["atroposlib.envs.base"] = host

class Env(BaseEnv):
    async def get_next_item(self):
        await asyncio.sleep(0)
        entry = {"question": "2 + 2?", "answer": "4"}
        return [], entry | {"metadata": {"source_dataset": "sums"}}, None

async def main():
    await Env().get_next_item()
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    await asyncio.sleep(0.05)
    time.sleep(0.3)
    await asyncio.sleep(0.05)
    print(sys.argv[1:], flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What is found of an environment that is slow once and leaves a child behind."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "env.py").write_text(ENVIRONMENT)
    log, report_file = folder / "env.log", folder / "probe.jsonl"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "tell"))
    listener.listen()
    told = []

    def listen():
        connection, _ = listener.accept()
        with connection, connection.makefile() as lines:
            told.extend(map(json.loads, lines))

    async def run():
        env = await start_watched(
            folder / "env.py",
            ["serve", "--x=1"],
            folder,
            log,
            folder / "tell",
            report_file,
        )
        await until(lambda: log.stat().st_size and report_file.exists(), "it runs")
        env.check()
        env.tree.sample()
        child = env.tree.children
        return await env.stop(), child

    listening = threading.Thread(target=listen)
    listening.start()
    end, children = asyncio.run(run())
    listening.join()
    listener.close()
    return {
        "end": end,
        "children": children,
        "told": told,
        "log": log.read_text(),
        "report": report_file,
    }


@pytest.mark.processes
def test_the_probe_runs_a_file_as_python_does(watched):
    assert watched["log"].splitlines() == ["['serve', '--x=1']"]


@pytest.mark.processes
def test_the_probe_sees_a_loop_that_stands_still(watched):
    delays = loop_delays([watched["report"]], 0.0, float("inf"))
    assert delays["max"] > 250
    assert delays["p50"] < 250


@pytest.mark.processes
def test_the_probe_tells_the_answer_of_an_item(watched):
    assert watched["told"] == [{"question": "2 + 2?", "answer": "4"}]


@pytest.mark.processes
def test_what_an_environment_leaves_behind_is_counted_and_ended(watched):
    assert watched["end"]["left_behind"] == 1
    assert len(watched["children"]) == 1
    assert not left_alive(watched["children"])


# -- settings and the report -----------------------------------------------------------


def test_only_files_that_know_shards_are_given_them(tmp_path):
    setting = Setting(latency_ms=0, tokens=300, instances=2)

    def line(shards):
        contestant = Contestant("x", tmp_path, shards)
        return " ".join(command_line(setting, contestant, "api", "server", 1))

    assert "--env.shard_index 1 --env.num_shards 2" in line(shards=True)
    assert "shard" not in line(shards=False)


def test_turns_alternate_within_a_setting():
    options = throughput.build_parser().parse_args(["--latencies=0,50"])
    names = [(who.name, one.latency_ms) for _, one, who in throughput.plan(options)]
    turns = ("ours", "null", "ours, stock API", "null, stock API") * 2
    assert names == [(name, ms) for ms in (0.0, 50.0) for name in turns]


def test_each_contestant_meets_the_api_that_its_name_says():
    options = throughput.build_parser().parse_args(["--apis=stock,quick"])
    found = {c.name: c.is_api_quick for c in throughput.contestants(options)}
    assert found == {
        "ours, stock API": False,
        "null, stock API": False,
        "ours": True,
        "null": True,
    }


def test_an_unknown_api_is_refused():
    options = throughput.build_parser().parse_args(["--apis=other"])
    with pytest.raises(SystemExit, match="--apis: 'other'"):
        throughput.contestants(options)


def run_of(who, turn, groups_per_s):
    zeros = dict.fromkeys(("p50", "p99", "max", "mean", "calls"), 0.0)
    of_group = dict.fromkeys(("main", "children", "api", "server", "harness"), 1.0)
    memory = dict.fromkeys(("peak_pss", "final_pss"), 1234.5)
    return {
        "title": "3000 ms, 300 tokens, 4 instances",
        "contestant": who,
        "round": turn,
        "groups_per_s": groups_per_s,
        "server_idle": 0.999,
        "first_group_s": 10.0,
        "busy_with_others": 0.5,
        "cpu_ms_per_group": of_group,
        "loop_ms": zeros,
        "memory_mib": memory,
    }


RUNS = [
    run_of(who, turn, groups_per_s)
    for turn, pair in enumerate([(10.0, 20.0), (30.0, 40.0), (90.0, 100.0)])
    for who, groups_per_s in zip(("ours", "null"), pair, strict=True)
]


def test_ratios_are_medians_of_the_rounds_own_ratios():
    title = RUNS[0]["title"]
    assert report.ratio(RUNS, title, "ours", "null", "groups/s") == 0.75
    assert report.median(RUNS, title, "ours", "groups/s") == 30.0


def test_the_tables_show_every_number_in_80_columns():
    console = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    console.print(report.tables(RUNS))
    console.file.close()
    text = console.export_text()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


# -- all of it -------------------------------------------------------------------------


@pytest.mark.processes
def test_the_null_environment_reaches_the_api_and_nothing_is_left(tmp_path):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    argv = ["--contestants=null", "--apis=quick", "--latencies=0"]
    argv += ["--rounds=1", "--seconds=1"]
    status = throughput.main([*argv, f"--json={tmp_path / 'found.json'}"])
    assert status == 0
    (run,) = json.loads((tmp_path / "found.json").read_text())["runs"]
    assert run["groups"] > 0
    assert run["faults"] == {}
    assert run["unknown_questions"] == 0
    assert run["end"][0]["left_behind"] == 0
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before
