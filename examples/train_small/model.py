"""Make a small language model from scratch, with a tokenizer that is there.

    python model.py FOLDER TOKENIZER [SEED]

It knows nothing yet.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from examples.train_small.options import HEAD_WIDTH

logging.disable_progress_bar()

LONGEST = 4096
"""Tokens of a prompt and its completion together."""


def make_model(
    folder: Path,
    tokenizer_folder: Path,
    seed: int = 0,
    *,
    width: int = 128,
    layers: int = 4,
) -> int:
    """Write a new model and its tokenizer into a folder.

    Args:
        folder: Made where it is not there.
        tokenizer_folder: Of the tokenizer.
        seed: Decides the weights.
        width: Of the hidden states; a multiple of `HEAD_WIDTH`.
        layers: At least 1.

    Returns:
        The number of its parameters.
    """
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    heads = width // HEAD_WIDTH
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=LONGEST,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,  # see examples/trainer/prepare.py
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def main() -> None:
    """Read the command line and make it."""
    folder, tokenizer = map(Path, sys.argv[1:3])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    print(f"{make_model(folder, tokenizer, seed):,} parameters in {folder}")


if __name__ == "__main__":
    main()
