"""The demo's tokenizer: loaded offline, exact, with the chat format of the prompts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from rg_env.demo.chat_tokenizer import (
    TOKENIZER_FOLDER,
    build_prompt,
    extract_last_user_message,
)
from tools.train_tokenizer import train, write_tokenizer

TOKENIZER = AutoTokenizer.from_pretrained(str(TOKENIZER_FOLDER))
MESSAGES = [
    {"role": "system", "content": "Think, then answer."},
    {"role": "user", "content": "What is 17 + 25?\n"},
]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_exactly(text):
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


def test_nothing_is_put_before_or_after_a_text():
    assert TOKENIZER.encode("gcd") == TOKENIZER.encode("gcd", add_special_tokens=False)
    assert TOKENIZER.bos_token is None


def test_the_end_token_is_the_one_that_closes_a_message():
    assert TOKENIZER.convert_ids_to_tokens(TOKENIZER.eos_token_id) == "<|im_end|>"
    assert TOKENIZER.pad_token_id not in (None, TOKENIZER.eos_token_id)


def test_the_template_writes_what_build_prompt_writes():
    pairs = [(message["role"], message["content"]) for message in MESSAGES]
    rendered = TOKENIZER.apply_chat_template(
        MESSAGES, tokenize=False, add_generation_prompt=True
    )
    assert rendered == build_prompt(pairs)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["user", "system"]), st.text("ab\n<|"))))
def test_the_last_user_message_comes_back_out_of_a_prompt(messages):
    messages = [*messages, ("user", "the question\nin two lines")]
    prompt = build_prompt(messages)
    assert extract_last_user_message(prompt) == "the question\nin two lines"


def test_a_prompt_without_template_is_taken_whole():
    assert extract_last_user_message("What is 1 + 1?") == "What is 1 + 1?"


def test_training_twice_on_one_corpus_writes_the_same_files(tmp_path):
    corpus = ["How many letters are in strawberry?", "<answer>10</answer>"] * 5
    written = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        write_tokenizer(train(iter(corpus)), folder)
        written.append([file.read_bytes() for file in sorted(folder.iterdir())])
    assert written[0] == written[1]
