"""Names of tasks that are refused before the library is imported."""

import pytest

from rg_env.errors import SettingError
from rg_env.settings.environment_settings import choosing_tasks
from rg_env.settings.setting_types import ChoosesTasks
from rg_env.tasks import library_import
from rg_env.tasks.library_import import TASKS, is_release_of_list
from rg_env.tasks.selection import refuse_unlisted


def test_the_installed_release_is_that_of_the_list():
    assert is_release_of_list()


def test_another_release_has_the_last_word(monkeypatch):
    monkeypatch.setattr(library_import, "LIBRARY_VERSION", "0.1.0")
    assert not is_release_of_list()


def test_another_copy_on_the_path_has_the_last_word(tmp_path, monkeypatch):
    (tmp_path / "reasoning_gym").mkdir()
    (tmp_path / "reasoning_gym" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "reasoning_gym", raising=False)
    assert not is_release_of_list()


def test_a_checkout_in_the_submodule_has_the_last_word(tmp_path, monkeypatch):
    (tmp_path / "reasoning_gym").mkdir()
    (tmp_path / "reasoning_gym" / "__init__.py").touch()
    monkeypatch.setattr(library_import, "SUBMODULE", tmp_path)
    assert not is_release_of_list()


@pytest.mark.parametrize("field", choosing_tasks(ChoosesTasks.BY_NAME))
def test_an_unknown_task_is_refused_with_the_nearest(field):
    value = {"gdc": 1} if field.startswith("task_") else ["gdc"]
    with pytest.raises(SettingError, match=f"env.{field}: .*'gdc'; did you mean 'gcd'"):
        refuse_unlisted({field: value})


def test_every_task_a_pattern_and_the_mixture_are_let_pass():
    names = [*TASKS, "*_sorting", "composite"]
    refuse_unlisted({"tasks": names, "task_levels": dict.fromkeys(names)})
