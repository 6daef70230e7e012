"""The page on scoring is what its script writes."""

from rg_env.tasks import library
from tools import make_scoring_page


def test_the_page_is_that_of_the_tables_and_of_the_installed_library() -> None:
    written = make_scoring_page.PAGE.read_text(encoding="utf-8")
    assert written == make_scoring_page.page(), "run tools.make_scoring_page"


def test_the_page_names_every_task_with_the_base_scorer() -> None:
    _, _, section = make_scoring_page.page().partition("## The base scorer (33 tasks)")
    names = section.partition("## Fixes")[0].replace(",", " ").replace(".", " ").split()
    tasks = library.describe().tasks
    assert {t for t in tasks if library.has_base_scorer(t)} <= set(names)
