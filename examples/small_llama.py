"""A Llama of less than a million parameters, which knows nothing yet.

    python examples/small_llama.py FOLDER

makes it with the tokenizer of the demo.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from rg_env.installation import TOKENIZER_FOLDER

MAX_TOKENS = 4096
"""In the vocabulary, and of a prompt and its completion together."""


def make_model(folder: Path, conversations: Sequence[Any] = ()) -> None:
    """Write a new model and its tokenizer into a folder.

    Args:
        folder: Made where it is not there.
        conversations: Lists of messages about items of one task. With them, the words
            that all of them repeat become tokens, and all else is letter by letter: a
            small model would have to learn by heart how longer tokens are spelled.
            Without them, the tokenizer is that of the demo.
    """
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER_FOLDER)
    if conversations:
        tokenizer = tokenizer.train_new_from_iterator(
            (tokenizer.apply_chat_template(c, tokenize=False) for c in conversations),
            vocab_size=MAX_TOKENS,
            min_frequency=len(conversations),
            show_progress=False,
        )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=MAX_TOKENS,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,  # see examples/trainer/prepare.py
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    make_model(Path(sys.argv[1]))
