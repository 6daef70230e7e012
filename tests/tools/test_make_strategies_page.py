"""The page on trivial baselines is what its script writes."""

from tools import make_strategies_page


def test_the_page_is_that_of_the_shipped_baselines() -> None:
    written = make_strategies_page.PAGE.read_text(encoding="utf-8")
    said = "run tools.make_strategies_page"
    assert written == make_strategies_page.page(), said
