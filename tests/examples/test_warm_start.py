"""The supervised start and the tokenizer that is made for it."""

import json

import pytest
from transformers import AutoTokenizer

from examples.train_small.tokenizer import make_tokenizer
from examples.train_small.warm_start import (
    STATE_FILE,
    WarmStartPlan,
    read_conversations,
    warm_start,
)
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER
from tests.examples.answer_policy import AnswerPolicy

QUICK = WarmStartPlan(seconds=20.0, target=0.9, learning_rate=20.0, look_every_s=0.05)


def conversation(question, answer, task="gcd"):
    said = {"role": "assistant", "content": f"<answer>{answer}</answer>"}
    return {"task": task, "messages": [{"role": "user", "content": question}, said]}


@pytest.fixture
def gold(tmp_path):
    """Conversations whose right answer is always the same digit."""
    path = tmp_path / "gold.jsonl"
    rows = [conversation(f"The digit of {i}?", 7) for i in range(300)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def conversations_of(gold):
    return read_conversations(gold, AutoTokenizer.from_pretrained(TOKENIZER_FOLDER))


def test_the_start_ends_when_enough_of_what_was_kept_back_is_right(gold, tmp_path):
    policy, told = AnswerPolicy(), []
    state = warm_start(
        policy, conversations_of(gold), QUICK, tmp_path, seed=0, tell=told.append
    )
    assert state.right == 1.0
    assert state.seconds < QUICK.seconds
    assert len(told) == state.step


def test_a_start_that_was_ended_goes_on_where_it_was(gold, tmp_path):
    class Ended(Exception):
        pass

    def end(state):
        if state.right:
            raise Ended

    conversations = conversations_of(gold)
    with pytest.raises(Ended):
        warm_start(AnswerPolicy(), conversations, QUICK, tmp_path, seed=0, tell=end)
    kept = json.loads((tmp_path / STATE_FILE).read_text())
    told = []
    state = warm_start(
        AnswerPolicy(), conversations, QUICK, tmp_path, seed=0, tell=told.append
    )
    # It was good enough, and a policy that had lost its weights would not be.
    assert (state.step, told) == (kept["step"], [])
    assert state.right == 1.0


def test_what_a_question_repeats_is_a_word_and_all_else_is_letters(tmp_path):
    words = [f"{a}{b}zebra{c}" for a in "qwert" for b in "xyuio" for c in "asdfg"]
    rows = [conversation(f"Spell backward: {w}", w[::-1]) for w in words]
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    make_tokenizer(path, TOKENIZER_FOLDER, tmp_path / "tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
    pieces = [tokenizer.decode([i]) for i in tokenizer.encode("Spell backward: owl")]
    assert pieces[:3] == ["Spell", " backward", ":"]
    assert pieces[-2:] == ["w", "l"]
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.chat_template
