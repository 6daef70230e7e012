"""Roles of people and formulas, in other words and signs."""

import pytest

from rg_env.task_rules.table import rules_of

PEOPLE = {
    "answer": "Joseph is an angel, and Zoey is a devil.",
    "metadata": {
        "names": ["Joseph", "Zoey"],
        "knight_knave_terms": {"knight": "angel", "knave": "devil"},
    },
}


@pytest.mark.parametrize(
    "answer",
    [
        "- Joseph is an angel\n- Zoey is a devil",
        "1. Joseph: angel\n2. Zoey: devil",
        "Joseph is an angel, while Zoey is a devil.",
        "Joseph is an angel but Zoey is a devil",
        "Joseph: angel; Zoey: devil",
        "**Joseph** - Angel\n**Zoey** - Devil",
        "Joseph \u2192 angel, Zoey \u2192 devil",
        '{"Joseph": "angel", "Zoey": "devil"}',
    ],
)
def test_a_name_and_its_role_may_be_joined_in_any_way(answer):
    spelled = rules_of("knights_knaves").notation(answer, PEOPLE)
    assert spelled == "Joseph is a angel, and Zoey is a devil"


@pytest.mark.parametrize(
    "answer",
    [
        "angel: Joseph, devil: Zoey",
        "Joseph is an angel",
        "Joseph is not an angel, and Zoey is a devil",
        "Joseph is an angel or a devil, and Zoey is a devil",
        "Joseph is an angel, and Joseph is a devil",
        "Joseph and Zoey are angels",
    ],
)
def test_other_words_and_another_order_stay_as_they_are(answer):
    assert rules_of("knights_knaves").notation(answer, PEOPLE) == answer


@pytest.mark.parametrize(
    "answer",
    [
        *("(P & ~Q) -> (R | S)", "(P && !Q) => (R || S)"),
        *("(P and not Q) implies (R or S)", "(P AND NOT Q) IMPLIES (R OR S)"),
        r"(P \land \neg Q) \rightarrow (R \lor S)",
        *(r"(P \wedge \lnot Q) \to (R \vee S)", r"(P /\ ~Q) -> (R \/ S)"),
        "[P \u2227 \u00acQ] \u21d2 [R v S]",
        "\u2234 (P \u2227 \u00acQ) \u2192 (R \u2228 S)",
    ],
)
def test_a_connective_may_have_another_sign(answer):
    spelled = rules_of("propositional_logic").notation(answer, {})
    assert "".join(spelled.split()) == "(P\u2227\u00acQ)\u2192(R\u2228S)"


@pytest.mark.parametrize("sign", ["<->", "<=>", r"\leftrightarrow", "iff", "\u21d4"])
def test_an_equivalence_is_no_implication(sign):
    spelled = rules_of("propositional_logic").notation(f"P {sign} Q", {})
    assert "".join(spelled.split()) == "P\u2194Q"


@pytest.mark.parametrize("answer", ["P, Q", "P; Q", "If P then Q", "nothing", "PQ"])
def test_what_is_no_formula_becomes_none(answer):
    assert rules_of("propositional_logic").notation(answer, {}) == answer
