"""What the questions of aiw tell."""

from rg_env.task_rules.logic.aiw import has_no_such_brother, women_around_matilda

COLLEAGUES = (
    "Alice has 4 male colleagues and she also has 6 female colleagues. Bob has 1 male"
    " colleagues and 4 female colleagues in total. She is colleague of Bob. How many"
    " female colleagues does Matilda have?"
)


def test_matilda_is_counted_in_no_circle_and_alice_in_hers():
    assert women_around_matilda(COLLEAGUES) == (6 - 1) + 1 + (4 - 1)


def test_another_riddle_is_not_about_matilda():
    assert women_around_matilda("Mary has 2 sisters and she also has") is None


def test_an_only_brother_has_no_brother():
    told = "Mary has {} sisters and she also has {} brothers. How many sisters does"
    assert has_no_such_brother(f"{told.format(3, 1)} David's brother have?")
    assert not has_no_such_brother(f"{told.format(1, 3)} David's brother have?")
    assert not has_no_such_brother(f"{told.format(3, 1)} Mary's brother have?")
