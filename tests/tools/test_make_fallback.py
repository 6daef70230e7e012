"""The list of tasks for a broken install is that of the installed library."""

from pathlib import Path

from rg_env.tasks import fallback_tasks, library
from tools import make_fallback


def test_the_fallback_list_is_what_is_installed():
    described = library.describe()
    assert list(described.tasks) == list(fallback_tasks.TASKS)
    assert described.version == fallback_tasks.LIBRARY_VERSION


def test_the_fallback_list_is_as_its_script_writes_it():
    written = Path(fallback_tasks.__file__).read_text(encoding="utf-8")
    assert written == make_fallback.fallback_source(library.describe())
