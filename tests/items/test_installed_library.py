"""A library that workers cannot be forked with, as every command meets it."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from rg_env.errors import LibraryError
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.pool_errors import PreloadError
from rg_env.workers.worker_pool import MAX_ATTEMPTS, WorkerPool
from tests.support.parts import TOKENIZER, run_main

pytestmark = pytest.mark.processes

BROKEN = {
    "it cannot be imported": ("syntax error", "reasoning-gym cannot be imported from"),
    "it ends the process": ("import os; os._exit(7)", "ended with status 7"),
}

COMMANDS = {
    "tasks": [],
    "show": ["gcd"],
    "doctor": [],
    "simulated-server": ["--port=0"],
    "process": [
        *(f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"),
        "--openai.model_name=m",
    ],
}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Return the file of a library that workers find before the installed one."""
    package = tmp_path / "reasoning_gym"
    package.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("rg_env.workers.worker_pool.ForkServer", ForkServer)
    return package / "__init__.py"


def refusal(preload=worker_jobs.PRELOAD):
    pool = WorkerPool(1, preload=preload)
    try:
        with pytest.raises(LibraryError) as caught:
            asyncio.run(read_library(pool))
    finally:
        pool.close()
    return str(caught.value)


@pytest.mark.parametrize("case", BROKEN)
def test_a_library_that_stops_the_preloading_is_one_sentence(case, library):
    text, expected = BROKEN[case]
    library.write_text(text)
    said = refusal()
    assert expected in said
    assert "\n" not in said


def test_what_workers_may_not_read_is_named_with_a_remedy(library):
    file = library.parents[1] / "preloaded_file.py"
    file.write_text("raise PermissionError(13, 'Permission denied', '/x')")
    said = refusal(("preloaded_file",))
    assert said.startswith("workers cannot be started (PermissionError: [Errno 13] ")
    assert said.endswith("to write to the folder for temporary files (TMPDIR)")


def test_a_defect_of_ours_while_preloading_is_not_blamed_on_the_library(
    monkeypatch, tmp_path
):
    (tmp_path / "preloaded_defect.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("rg_env.workers.worker_pool.ForkServer", ForkServer)
    pool = WorkerPool(1, preload=["preloaded_defect"])
    try:
        with pytest.raises(PreloadError) as caught:
            asyncio.run(read_library(pool))
    finally:
        pool.close()
    assert caught.value.kind == "ZeroDivisionError"
    assert "preloaded_defect.py" in caught.value.detail


def test_a_kill_while_the_library_is_imported_is_no_refusal_but_status_1(
    library, tmp_path, monkeypatch, capsys
):
    tries = tmp_path / "tries"
    library.write_text(
        f"import os; open({str(tries)!r}, 'a').write('x'); os.kill(os.getpid(), 9)"
    )
    monkeypatch.chdir(tmp_path)
    assert run_main(["process", *COMMANDS["process"]]) == 1
    assert tries.read_text() == MAX_ATTEMPTS * "x"
    assert "workers was ended by signal 9 (Killed)" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broken_library_ends_a_command_in_one_sentence_and_status_2(
    command, library, tmp_path, monkeypatch, capsys
):
    library.write_text("syntax error")
    monkeypatch.chdir(tmp_path)
    assert run_main([command, *COMMANDS[command]]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line]
    errors = list(itertools.dropwhile(lambda line: " INFO " in line, said))
    assert len(errors) == 1
    assert errors[0].startswith("error: reasoning-gym cannot be imported")
