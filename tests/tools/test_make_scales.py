"""When a probed level is used, and when it is left out."""

import pytest

from tools.make_scales import ProbeTally


def tally(*, made, each_ms=1.0, **lost):
    result = ProbeTally()
    result.begun = 20
    result.made_ms += [each_ms] * made
    for trouble, count in lost.items():
        result.counts[trouble]["said"] = count
    return result


@pytest.mark.parametrize(
    "usable", [tally(made=20), tally(made=19, hung=1), tally(made=20, each_ms=7_000.0)]
)
def test_rare_trouble_leaves_a_level_usable(usable):
    assert usable.reason_against() is None


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (tally(made=18, hung=2), "2 of 20 items were not ready after said"),
        (tally(made=14, lost=6), "6 of 20 items cannot be made: said"),
        (tally(made=1, refused=19), "19 of 20 items are not asked: said"),
        (tally(made=20, faults=3), "3 of 20 items are wrong: said"),
        (tally(made=20, each_ms=9_000.0), "an item takes 9 s"),
    ],
)
def test_a_level_with_frequent_trouble_is_skipped_in_plain_words(trouble, words):
    assert trouble.reason_against() == words
