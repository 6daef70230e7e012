"""The supervised start and the tokenizer that is made for it."""

import json

import pytest
from transformers import AutoTokenizer

from examples.train_small.warm_start import (
    WarmStartPlan,
    read_conversations,
    warm_start,
)
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from tests.examples.policies import AnswerPolicy

QUICK = WarmStartPlan(steps=200, target=0.9, learning_rate=20.0, look_every=10)


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


def started(gold, folder, plan=QUICK, tell=lambda state: None):
    conversations = conversations_of(gold)
    return warm_start(
        AnswerPolicy(), conversations, plan, folder / "start", seed=0, tell=tell
    )


def test_the_start_ends_when_enough_of_what_was_kept_back_is_right(gold, tmp_path):
    told = []
    state = started(gold, tmp_path, tell=lambda state: told.append(state.step))
    assert state.right == 1.0
    assert 0 < state.step < QUICK.steps
    assert told == list(range(10, state.step + 1, 10))
