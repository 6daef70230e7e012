"""The page on the library: its samples run, and its tables have what there is."""

import inspect

import pytest

import rg_env
from rg_env.library import installed_library
from rg_env.settings.environment_settings import CheckedSettings
from tests.support.documents import README, ROOT, blocks, codes, table, text_of

PAGE = ROOT / "docs" / "library.md"


@pytest.mark.processes
def test_each_of_its_samples_runs_alone(pool, monkeypatch, capsys):
    monkeypatch.setattr(installed_library, "_pools", {(): pool})
    said = []
    for sample in blocks("python", [PAGE]):
        exec(sample, {})
        said.append(capsys.readouterr().out)
    assert said[0].count("[0.0, 1.0]") == len(said) - 1 == 3
    assert "None Counter({'returned': 1, 'raised': 1})" in said[3]


def test_the_example_of_the_readme_is_the_file():
    assert text_of(ROOT / "examples/trl/grpo.py") in blocks("python", [README])


def test_its_names_are_those_of_the_package():
    named = [codes(row[0])[0].partition("(")[0] for row in table("Name", [PAGE])]
    assert sorted(named) == sorted(rg_env.__all__)


def test_its_arguments_are_those_of_tasks_and_of_settings():
    rows = table("Argument", [PAGE])
    arguments = [code for row in rows for code in codes(row[0])]
    parameters = list(inspect.signature(rg_env.Tasks).parameters)
    assert arguments == ["*patterns", *parameters[1:]]
    settings = {codes(row[1])[0] for row in rows}
    assert settings <= set(CheckedSettings.model_fields)
