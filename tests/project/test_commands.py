"""Every command of the README, CONTRIBUTING and `make help` runs, as in a fresh clone.

`make commands` runs them, in their shortest form, in a copy of the project that has
nothing but its files and this environment: what a command needs besides, it installs.
A new command is to be run here, or to have its reason in `NOT_RUN`.
"""

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.documents import (
    CONTRIBUTING,
    README,
    ROOT,
    command_lines,
    text_of,
)
from tests.support.parts import FAST_TASKS

ENTRY = "reasoning_gym_environment.py"
GUARD_S = 900
PYTEST = ".venv/bin/python -m pytest"

ELSEWHERE = {
    "make test": ".ci/run",
    "make check": ".ci/run",
    "make commands": "this is it",
    "make oldest": ".ci/run",
    "make pictures": "needs a browser",
    "git submodule": "its effects are tried in tests/project/test_submodule.py",
    "pip install": "make installs the same",
    "source .venv/bin/activate": "changes a shell; what it finds is called by its path",
    f"{PYTEST} -m commands tests/adapters": "installs the packages of every trainer",
    ".venv/bin/pre-commit install": "changes a git repository; the hooks are .ci/run's",
    ".venv/bin/python -m tools.make_baselines TASK": "takes minutes for a task",
    "benchmarks/hostile.py": "measures how long answers take, for minutes",
}
"""Commands that are not run here, and why."""

SMALL_SERVER = """#!.venv-torch/bin/python
import os, sys
argv = [sys.executable, "-m", "tests.examples.small_server", sys.argv[2]]
os.execv(sys.executable, [*argv, *(w for w in sys.argv if "--port=" in w)])
"""
"""Takes the place of vLLM."""

SMALL_MODEL = """
from pathlib import Path
from examples.small_llama import make_model
make_model(Path("data/small"), [[{"role": "user", "content": "hi"}]])
"""
"""Its vocabulary is so small that completions end by chance."""

SMALL_GRPO = """
--use_vllm False --use_cpu True --bf16 False --max_steps 1 --report_to none
--max_completion_length 8 --gradient_accumulation_steps 1 --logging_steps 1
"""

SMALL_RUN = """
--launch.model=data/small --launch.python=.venv-torch/bin/python --launch.vllm_args=
--env.tasks=spell_backward --env.system_prompt=Answer. --env.max_token_length=512
--env.complexity_mode=None --env.ensure_scores_are_not_same=False --env.num_workers=1
--env.group_size=8 --env.batch_size=8 --env.total_steps=1
"""

HERE = set()
"""Commands that are run here."""

run = functools.partial(run_command, limit_s=GUARD_S)


def runs(*commands):
    """Mark a test as one that runs commands."""

    def mark(test):
        HERE.update(commands)
        for marker in (pytest.mark.commands, pytest.mark.processes):
            test = marker(test)
        return pytest.mark.timeout(GUARD_S)(test)

    return mark


def name_of(line):
    """Return what a command line is called here; None if it is no command."""
    if line.startswith(".venv/bin/"):
        return line
    words = [word for word in line.split() if not re.match(r"[A-Z_]+=", word)]
    if words[:1] == ["python"] and len(words) > 1:
        return words[2] if words[1] == ENTRY and len(words) > 2 else words[1]
    known = ("make", "git", "vllm", "wandb", "pip", "source")
    is_command = words[:1] == ["make"] or (len(words) > 1 and words[0] in known)
    return " ".join(words[:2]) if is_command else None


def documented():
    """Return the commands of both pages, and the targets that `make help` lists."""
    names = {name_of(line) for line in command_lines([README, CONTRIBUTING])}
    targets = re.findall(r"^([a-z-]+):.*## ", text_of(ROOT / "Makefile"), re.M)
    return names - {None} | {f"make {target}" for target in targets}


def test_every_documented_command_is_run_or_has_its_reason():
    commands = documented()
    assert {"make", "make demo", "launch", "process"} <= commands
    assert commands == HERE | {*ELSEWHERE}


@pytest.fixture
def clone(tmp_path):
    """Return a copy of what a clone would have, with a link to this environment."""
    folder = tmp_path / "clone"
    git = ["git", "ls-files", "-zco", "--exclude-standard"]
    for name in subprocess.check_output(git, cwd=ROOT, text=True).split("\0"):
        # What was deleted and not committed is listed; the submodule is a folder.
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for name in ("requirements.txt", "requirements-dev.txt", "constraints.txt"):
        os.utime(folder / name, (0, 0))  # or make would install this environment anew
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def entry(clone, line):
    """Run a command of the project; return what it says."""
    return run(clone, ".venv/bin/python", ENTRY, *shlex.split(line))


@runs("make train-small", "launch", "examples/trl/grpo.py")
def test_small_models_are_trained_in_an_environment_made_anew(clone, monkeypatch):
    run(clone, "make", ".venv-torch/.installed")
    with ThreadPoolExecutor() as beside:
        learning = beside.submit(run, clone, "make", "train-small", "ARGS=60000")
        install = (".venv-torch/bin/pip", "install", "--quiet", "--no-compile")
        needed = ("-r", "examples/trainer/requirements.txt")
        run(clone, *install, *needed, ".[trl]", "aiohttp", "orjson")
        run(clone, ".venv-torch/bin/python", "-c", SMALL_MODEL)
        monkeypatch.setenv("MODEL", "data/small")
        grpo = (".venv-torch/bin/python", "examples/trl/grpo.py", *SMALL_GRPO.split())
        step = beside.submit(run, clone, *grpo)
        vllm = clone / ".venv-torch" / "bin" / "vllm"
        vllm.write_text(SMALL_SERVER)
        vllm.chmod(0o755)
        said = entry(clone, f"launch --config examples/launch.yaml {SMALL_RUN}")

    scores = re.findall(r"held-out score: ([\d.]+)", learning.result())
    before, after = map(float, scores)
    assert after > before + 0.05
    assert "reasoning_gym/score/" in step.result()
    assert "step 1 of 1" in said
    logs = clone / "data" / "launch"
    end_of_training = f"done; {logs / 'policy'} holds the trained model"
    assert end_of_training in text_of(logs / "trainer.log"), said


@runs("show", ".venv/bin/python -m tools.make_pages")
def test_a_rule_is_tried_and_the_pages_are_made(clone):
    assert "score" in entry(clone, "show gcd --answer 2 --no_fixes")
    run(clone, ".venv/bin/python", "-m", "tools.make_pages")
    for page in ("settings", "scoring", "trivial_baselines"):
        made = clone / "docs" / f"{page}.md"
        assert text_of(made) == text_of(ROOT / "docs" / f"{page}.md")


TESTS = sorted(
    line for line in documented() if line.startswith(PYTEST) and line not in ELSEWHERE
)


@runs(*TESTS)
def test_the_tests_that_contributing_names_are_there(clone):
    chosen = [line for line in TESTS if " -k " in line]
    whole = {path for line in TESTS if line not in chosen for path in line.split()[3:]}
    for line in (*chosen, " ".join([PYTEST, *whole])):
        run(clone, *shlex.split(line), "--collect-only")  # `make test` runs them


@runs("make demo", "report")
def test_the_demo_runs_and_its_dump_files_are_shown(clone):
    assert "Open them in a browser:" in run(clone, "make", "demo", "ARGS=--steps 1")
    entry(clone, "report data_dumps")
    assert (clone / "report" / "index.html").is_file()


@runs("make lock")
def test_the_pins_are_made(clone):
    before = text_of(clone / "constraints.txt")
    assert "constraints.txt: " in run(clone, "make", "lock")
    assert text_of(clone / "constraints.txt") == before


@runs("process", "evaluate")
def test_rows_are_written_and_a_model_is_measured(clone):
    settings = "--openai.base_url=simulated --env.complexity_mode=None --env.tasks="
    settings += ",".join(FAST_TASKS)
    rows = "process --config examples/process.yaml --env.total_steps=1"
    entry(clone, f"{rows} {settings}")
    assert len(text_of(clone / "data" / "sft.jsonl").splitlines()) == 1
    shortest = "--env.num_eval_samples_per_task=1 --env.use_wandb=False"
    assert "arithmetic" in entry(clone, f"evaluate {settings} {shortest}")


@runs("make bench")
def test_throughput_is_measured(clone):
    shortest = "ARGS=--apis quick --rounds 1 --latencies 0 --seconds 1"
    assert "groups/s" in run(clone, "make", "bench", shortest)


@runs("tasks", "doctor")
def test_the_tasks_are_listed_and_the_installation_is_checked(clone):
    assert "spell_backward" in entry(clone, "tasks")
    entry(clone, "doctor gcd --items 1")


@runs("make", "make help", "make quick", "make clean")
def test_the_words_of_make_do_what_they_say(clone):
    assert run(clone, "make") == run(clone, "make", "help")
    said = run(clone, "make", "quick", "ARGS=tests/test_errors.py")
    assert " passed" in said
    run(clone, "make", "clean")
    assert not (clone / ".venv").is_symlink()
    assert Path(sys.prefix).is_dir()
