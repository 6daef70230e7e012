"""The normalized answer: what is formatting for a task, and what is not."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules

RULES = ScoringRules()


@pytest.mark.parametrize(("task", "normalized"), [("codeio", '"5"'), ("lcm", "5")])
def test_a_quoted_number_is_a_text_in_json_and_formatted_elsewhere(task, normalized):
    entry = {"question": "", "answer": "5"}
    assert RULES.normalizer(task, entry)('"5"') == normalized


def test_the_right_answer_is_its_own_normalized_form():
    assert RULES.normalizer("codeio", {"answer": '"5."'})('"5."') == '"5."'


def test_where_exact_answers_count_an_answer_is_its_own_normalized_form():
    exact = ScoringRules(normalize_answers=False)
    assert exact.normalizer("lcm", {"answer": "5"})("**5**") == "**5**"
