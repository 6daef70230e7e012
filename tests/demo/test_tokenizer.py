"""The shipped tokenizer: loaded offline, exact, with the chat format of the prompts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from rg_env.installation import TOKENIZER_FOLDER
from tests.support.text_models import build_prompt

TOKENIZER = AutoTokenizer.from_pretrained(str(TOKENIZER_FOLDER))
MESSAGES = [
    {"role": "system", "content": "Think, then answer."},
    {"role": "user", "content": "What is 17 + 25?\n"},
]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_decoded_exactly(text):
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text
    assert TOKENIZER.encode(text) == ids


def test_the_template_writes_what_build_prompt_writes():
    rendered = TOKENIZER.apply_chat_template(
        MESSAGES, tokenize=False, add_generation_prompt=True
    )
    assert rendered == build_prompt(MESSAGES)
