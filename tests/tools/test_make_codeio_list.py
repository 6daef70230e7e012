"""The list of codeio's programs that are not used is what running them finds."""

from __future__ import annotations

import json

import pytest

from rg_env.task_rules.code import codeio
from tools import make_codeio_list as tool

A = ("in", "out", "out", 0.0)
B = ("in", "other", "other", 0.0)


@pytest.mark.parametrize(
    ("by_process", "kind"),
    [
        ([[A, A], [A, A]], None),
        ([[A, A], [A]], None),
        ([[A, B], [A, A]], codeio.CHANGES),
        ([[A], [("another", "out", "out", 0.0)]], codeio.CHANGES),
        ([[A, ("in", "out", "other", 0.0)], [A, A]], codeio.RANDOM),
        ([[("in", "out", None, 0.0)], [("in", None, "out", 0.0)]], None),
        ([[("in", "out", "out", 1.0)], [("in", "out", "out", 1.0)]], codeio.SLOW),
        ([[("in", "out", "out", 1.0)], [A]], None),
        ([], None),
    ],
)
def test_a_program_is_told_by_the_outcomes_of_its_runs(by_process, kind):
    assert tool.kind_of(by_process) == kind


def listed() -> dict[str, str]:
    table = json.loads(codeio.UNUSED.read_text(encoding="utf-8"))
    return {digest: kind for kind, digests in table.items() for digest in digests}


def test_a_program_that_reads_the_clock_is_on_the_list_whatever_it_does():
    for program in tool.programs():
        if tool.READS_MORE.search(program["code_sample"]):
            digest = codeio.digest_of(program["code_sample"])
            assert listed()[digest] == codeio.CHANGES


@pytest.mark.processes
def test_what_runs_find_is_on_the_list():
    numbers = range(50, 110)
    by_process = [tool.outcomes_of(each, numbers, 3) for each in (0, 1)]
    made = tool.programs()
    found = {}
    for number in numbers:
        kind = tool.kind_of([outcomes[number] for outcomes in by_process])
        if kind in (codeio.CHANGES, codeio.RANDOM):
            found[codeio.digest_of(made[number]["code_sample"])] = kind
    assert set(found.values()) == {codeio.CHANGES, codeio.RANDOM}
    assert found.items() <= listed().items()
