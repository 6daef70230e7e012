"""The demo's tokenizer: loaded offline, exact, with the chat format of the prompts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER, build_prompt

TOKENIZER = AutoTokenizer.from_pretrained(str(TOKENIZER_FOLDER))
MESSAGES = [("system", "Think, then answer."), ("user", "What is 17 + 25?\n")]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_exactly_with_nothing_before_or_after_it(text):
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text
    assert TOKENIZER.encode(text) == ids


def test_the_template_writes_what_build_prompt_writes():
    messages = [{"role": role, "content": content} for role, content in MESSAGES]
    rendered = TOKENIZER.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    assert rendered == build_prompt(MESSAGES)
