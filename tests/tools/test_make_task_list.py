"""The list of tasks for what is known without an import is that of the library."""

from rg_env.tasks import library
from rg_env.tasks.library_import import TASK_LIST
from tools import make_task_list


def test_the_list_is_as_its_tool_writes_it_of_the_installed_library():
    written = TASK_LIST.read_text(encoding="utf-8")
    assert written == make_task_list.list_text(library.describe())
