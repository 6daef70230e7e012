"""The container: what can be known of its image without making it."""

from __future__ import annotations

import fnmatch
import json

from tests.support.documents import README, ROOT, text_of

LINES = text_of(ROOT / "Dockerfile").replace("\\\n", " ").splitlines()
IGNORED = text_of(ROOT / ".dockerignore").split()


def words_of(instruction: str) -> list[list[str]]:
    """Return the words of each such line, options left out."""
    lines = [line.split() for line in LINES if line.startswith(f"{instruction} ")]
    return [[w for w in line[1:] if not w.startswith("--")] for line in lines]


def test_every_path_that_it_copies_exists_and_is_not_ignored() -> None:
    paths = [path for *sources, _ in words_of("COPY") for path in sources]
    assert {"Makefile", "requirements.txt", "."} <= {*paths}
    assert [path for path in paths if not (ROOT / path).exists()] == []
    needed = [*paths[:-1], "reasoning_gym_environment.py", "rg_env", "examples"]
    assert [p for p in needed if any(fnmatch.fnmatch(p, i) for i in IGNORED)] == []


def test_what_it_runs_is_a_command_of_the_readme() -> None:
    (command,) = words_of("CMD")
    assert " ".join(json.loads(" ".join(command))) in text_of(README)
