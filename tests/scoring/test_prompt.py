"""What the model is told: the system prompt and the question."""

from rg_env.scoring.extraction import extract_answer
from rg_env.scoring.prompt import SYSTEM_PROMPT, build_messages


def test_the_prompt_is_the_system_prompt_and_the_question():
    assert build_messages("2 + 3?", "Be brief.") == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 3?"},
    )


def test_the_example_in_the_system_prompt_is_one_that_extraction_accepts():
    assert extract_answer(SYSTEM_PROMPT.partition("Example:")[2]).answer == "5"
