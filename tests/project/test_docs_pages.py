"""The pages hang together: length, contents, links, and every name in them exists."""

import ast
import contextlib
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from tests.support.documents import (
    DOCUMENTS,
    PAGES,
    README,
    ROOT,
    anchor,
    blocks,
    codes,
    headings,
    name_of,
    prose_of,
    text_of,
)

ALLOWED_LINKS = (
    "https://github.com/NousResearch/atropos",
    "https://github.com/open-thought/reasoning-gym",
    "https://github.com/apple/ml-multilingual-reasoning-gym",
    "https://arxiv.org/",
    "https://huggingface.co/",
    "http://localhost:",
    "http://127.0.0.1:",
)

WRITTEN_BY_RUNS = """.venv data data_dumps env_checkpoints report compute_score.py
evaluate_config.yaml metrics.json metrics.jsonl samples.jsonl history.jsonl"""
"""What a path in a document may begin with that is not in the repository."""

ELSEWHERE = {
    "environments/reasoning_gym_environment/",  # in a checkout of Atropos
    "reasoning-gym/",  # the submodule's, which is empty until it is asked for
    "rg_env/x/y.py",  # any module
    "tests/x/test_y.py",
}

FRAMEWORK = Path(importlib.util.find_spec("atroposlib").origin).parent
FILES = [
    str(path)
    for folder in (ROOT / "rg_env", ROOT / "tests", FRAMEWORK)
    for path in folder.rglob("*.py")
]
"""What a page may name by the end of its path."""

LINK = re.compile(r"\]\(([^)]+)\)")
PATH = re.compile(r"(?:[\w.-]+/)*(?:[\w-]+\.(?:jsonl?|md|py|sh|toml|txt|yaml)|[\w-]+/)")
DOTTED = re.compile(r"\b(?:rg_env|benchmarks|tests|tools)(?:\.\w+)+")


def links_of(page):
    """Return the links of a page to other places of the repository, as (file, anchor).

    The file is None for a place in the page itself.
    """
    parts = [link.partition("#") for link in LINK.findall(text_of(page))]
    return [
        ((page.parent / file).resolve() if file else None, part)
        for file, _, part in parts
        if not file.startswith("http")
    ]


def test_every_page_is_reached_from_the_readme():
    reached, new = set(), {README}
    while new:
        reached |= new
        linked = {file for page in new for file, _ in links_of(page)}
        new = {p for p in linked & set(PAGES) if p.exists()} - reached
    assert reached == set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page):
    missing = []
    for file, part in links_of(page):
        target = page if file is None else file
        anchors = (
            {anchor(heading) for _, heading in headings(target)}
            if target.is_file() and target.suffix == ".md"
            else set()
        )
        if not target.is_file() or (part and part not in anchors):
            missing.append((name_of(target), part))
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_no_document_names_another_site_or_a_path_of_a_machine(path):
    links = re.findall(r"https?://[^\s)\"'`$]+", text_of(path))
    assert [link for link in links if not link.startswith(ALLOWED_LINKS)] == []
    roots = r"(?<![\w.$}/])/(?:home|root|tmp|work|mnt|opt|srv|Users|var)\b"
    assert re.findall(roots, text_of(path)) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_named_in_a_page_exists(page):
    named = {
        path
        for path in codes(prose_of(page))
        if PATH.fullmatch(path) and path.split("/")[0] not in WRITTEN_BY_RUNS.split()
    }
    places = (ROOT, page.parent)
    missing = [
        p
        for p in named - ELSEWHERE
        if not any((place / p).exists() for place in places)
    ]
    assert [p for p in missing if not any(f.endswith(f"/{p}") for f in FILES)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_module_and_name_in_it_exists(page):
    for dotted in set(DOTTED.findall(text_of(page))):
        parts = dotted.split(".")
        while not is_module(parts):
            assert parts.pop(), dotted
        names = dotted.split(".")[len(parts) :]
        assert names_of(".".join(parts)).issuperset(names), dotted


def names_of(module):
    """Return the names in a module, also where the package it adapts to is missing."""
    with contextlib.suppress(ModuleNotFoundError):
        return set(dir(importlib.import_module(module)))
    tree = ast.parse(Path(importlib.util.find_spec(module).origin).read_text())
    return {node.name for node in tree.body if hasattr(node, "name")}


def is_module(parts):
    path = ROOT.joinpath(*parts)
    return path.with_suffix(".py").is_file() or (path.is_dir() and len(parts) > 1)


SAMPLES = [*blocks("python"), *(p.read_text() for p in ROOT.glob("examples/**/*.py"))]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda text: text[:60])
def test_samples_and_examples_import_what_exists(sample):
    for node in ast.walk(ast.parse(sample)):
        if isinstance(node, ast.ImportFrom):
            # In a checkout of Atropos the entry has a longer name.
            module = node.module.removeprefix("atropos.environments.")
            package = module.partition(".")[0]
            if package == "examples" or not importlib.util.find_spec(package):
                continue  # torch or a trainer may not be installed
            for name in (each.name for each in node.names):
                if name not in names_of(module):
                    assert importlib.util.find_spec(f"{module}.{name}")


# -- defects of the framework ----------------------------------------------------------

MENDS = re.compile(r"Mends ((?:B\d+(?:, | and )?)+) of docs/host_defects\.md")


def test_every_defect_has_a_number_a_test_and_a_module_that_mends_it():
    page = text_of(ROOT / "docs" / "host_defects.md")
    items = re.findall(r"^- \*\*(B\d+)\*\* (.+(?:\n  .+)*)", page, re.M)
    assert [number for number, _ in items] == [f"B{i + 1}" for i in range(len(items))]
    written = text_of(*(ROOT / "tests").rglob("*.py"))
    for number, text in items:
        tests = re.findall(r"`(test_\w+)`", text)
        assert tests and all(f"def {test}(" in written for test in tests), number
    sources = [ROOT / "reasoning_gym_environment.py", *(ROOT / "rg_env").rglob("*.py")]
    mended = " ".join(MENDS.findall(" ".join(text_of(*sources).split())))
    assert set(re.findall(r"B\d+", mended)) == {number for number, _ in items}
