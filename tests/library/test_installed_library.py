"""The description of the library, the validity of its scales, and a broken one."""

import asyncio
import contextlib
import dataclasses

import pytest

from rg_env.errors import LibraryError
from rg_env.library import registry, scales
from rg_env.library.installed_library import read_library, read_scales
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.worker_pool import MAX_ATTEMPTS, WorkerPool
from tests.support.parts import TOKENIZER, run_main

pytestmark = pytest.mark.processes

# -- the shipped tables ----------------------------------------------------------------

SHIPPED = scales.load_shipped()


def read(pool, *tasks):
    return asyncio.run(read_scales(pool, registry.describe(), tasks))


def test_the_shipped_scales_are_valid_for_the_library_they_were_made_from(pool, logged):
    found, reasons = read(pool, *SHIPPED.scales, "acre")
    assert found == SHIPPED.scales
    assert list(reasons) == ["acre"]  # it has no curriculum
    assert registry.describe().version == SHIPPED.library_version
    assert logged.text == ""


def test_tasks_that_have_changed_keep_the_librarys_defaults_and_are_named_in_one_line(
    pool, logged, monkeypatch
):
    changed = dict(SHIPPED.scales)
    changed["chain_sum"] = dataclasses.replace(changed["chain_sum"], digests=("other",))
    del changed["lcm"]  # as if the table did not know it
    table = scales.ShippedScales("0.0.1", changed)
    monkeypatch.setattr(scales, "load_shipped", lambda: table)
    found, reasons = read(pool, "chain_sum", "gcd", "lcm")
    assert found == {"gcd": SHIPPED.scales["gcd"]}
    assert reasons["lcm"] == "its curriculum is not that of reasoning-gym 0.0.1"
    (record,) = logged.records
    assert record.getMessage().endswith("default parameters: chain_sum, lcm")


# -- a library that workers cannot be forked with --------------------------------------

PROCESS = [
    *("process", f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"),
    "--openai.model_name=m",
]


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Return the file of a library that workers find before the installed one."""
    package = tmp_path / "reasoning_gym"
    package.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("rg_env.workers.worker_pool.ForkServer", ForkServer)
    return package / "__init__.py"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os; os._exit(7)", "the process that starts workers ended with status"),
        ("raise PermissionError(13, 'Permission denied', '/x')", "PermissionError: [E"),
    ],
)
def test_a_failure_of_preloading_is_one_sentence(broken, text, reason):
    (broken.parents[1] / "preloaded_file.py").write_text(text)
    pool = WorkerPool(1, preload=["preloaded_file"])
    with contextlib.closing(pool), pytest.raises(LibraryError) as caught:
        asyncio.run(read_library(pool))
    sentence = str(caught.value)
    assert sentence.startswith(f"workers cannot be started ({reason}")
    assert sentence.endswith("to write to the folder for temporary files (TMPDIR)")
    assert "\n" not in sentence


def test_a_kill_while_the_library_is_imported_ends_with_status_1(
    broken, tmp_path, capsys
):
    tries = tmp_path / "tries"
    broken.write_text(
        f"import os; open({str(tries)!r}, 'a').write('x'); os.kill(os.getpid(), 9)"
    )
    assert run_main(PROCESS) == 1
    assert tries.read_text() == MAX_ATTEMPTS * "x"
    assert "workers was ended by signal 9 (Killed)" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["tasks"], PROCESS])
def test_a_broken_library_ends_a_command_in_one_sentence_and_status_2(
    command, broken, capsys
):
    broken.write_text("syntax error")
    assert run_main(command) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: reasoning-gym cannot be used (SyntaxError")
