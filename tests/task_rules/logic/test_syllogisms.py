"""What follows from two categorical statements, with and without empty terms."""

import itertools

import pytest

from rg_env.task_rules.logic.syllogisms import follows

TERMS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("premises", "conclusion", "is_valid"),
    [
        (["All a are b", "All b are c"], "All a are c", True),
        (["No a are b", "All c are b"], "No c are a", True),
        (["Some a are b", "All b are c"], "Some c are a", True),
        (["Some a are not b", "All c are b"], "Some a are not c", True),
        (["All a are b", "Some b are c"], "Some a are c", False),
        (["All a are b", "All c are b"], "All a are c", False),
        (["No a are b", "No b are c"], "No a are c", False),
    ],
)
def test_a_conclusion_follows_by_either_reading_or_by_none(
    premises, conclusion, is_valid
):
    assert follows(premises, conclusion, False) == is_valid
    assert follows(premises, conclusion, True) == is_valid


def test_of_all_some_follows_only_where_there_are_such_things():
    premises = ["All a are b", "All b are c"]
    assert not follows(premises, "Some c are a", False)
    assert follows(premises, "Some c are a", True)


def holds(text: str, there: set[tuple[bool, ...]]) -> bool:
    how, subject, *_, predicate = text.split()
    a, b = TERMS.index(subject), TERMS.index(predicate)
    both = any(kind[a] and kind[b] for kind in there)
    rest = any(kind[a] and not kind[b] for kind in there)
    if how == "Some":
        return rest if "not" in text else both
    return not (rest if how == "All" else both)


@pytest.mark.parametrize("are_there", [False, True])
def test_it_is_what_trying_all_worlds_says(are_there):
    kinds = list(itertools.product((False, True), repeat=3))
    worlds = [
        {kind for kind, is_there in zip(kinds, chosen, strict=True) if is_there}
        for chosen in itertools.product((False, True), repeat=8)
    ]
    if are_there:
        worlds = [w for w in worlds if all(any(k[i] for k in w) for i in range(3))]
    forms = ("All {} are {}", "No {} are {}", "Some {} are {}", "Some {} are not {}")
    for one, two, end in itertools.product(forms, repeat=3):
        premises = [one.format("a", "b"), two.format("b", "c")]
        conclusion = end.format("c", "a")
        expected = all(
            holds(conclusion, world)
            for world in worlds
            if all(holds(premise, world) for premise in premises)
        )
        assert follows(premises, conclusion, are_there) is expected


def test_another_statement_is_refused():
    with pytest.raises(ValueError, match="no categorical statement"):
        follows(["Most a are b"], "All a are b", True)
