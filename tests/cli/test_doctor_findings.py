"""What `doctor` found, as a table and as JSON."""

import json

from rich.console import Console

from rg_env.cli.doctor_command import findings_json, table
from rg_env.items.task_check import TaskFindings

PASSED = TaskFindings("gcd", "arithmetic", [], [], make_ms=1.25, score_ms=0.5)
FAILED = TaskFindings("maze", "games", ["gold scores 0.00"], ["slow"], None, None)


def test_failed_tasks_come_first_and_say_what_is_wrong():
    console = Console(width=100, no_color=True)
    with console.capture() as said:
        console.print(table([PASSED, FAILED]))
    said_lines = said.get().splitlines()
    lines = [line for line in said_lines if "maze" in line or "gcd" in line]
    assert "maze" in lines[0] and "gold scores 0.00; slow" in lines[0]
    assert "gcd" in lines[1] and "1.2" in lines[1] and "passed" in lines[1]


def test_json_holds_every_finding_and_how_many_tasks_passed():
    versions = {"reasoning_gym": "0.1.25"}
    found = json.loads(json.dumps(findings_json([PASSED, FAILED], versions)))
    assert found["versions"] == {"reasoning_gym": "0.1.25"}
    assert found["passed"] == 1
    assert found["tasks"][1]["faults"] == ["gold scores 0.00"]
    assert found["tasks"][0]["make_ms"] == 1.25
