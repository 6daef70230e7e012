"""Put a model into a folder, which vLLM serves and the trainer writes new weights into.

    python examples/trainer/prepare.py Qwen/Qwen3-0.6B data/policy

An output embedding that is tied to the input's becomes a weight of its own, because
vLLM 0.32.0 on CPUs goes on with the first output embedding when a tied one is renewed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def prepare(name: str, folder: Path) -> None:
    """Write a model and its tokenizer into a folder, in the precision that it has.

    Args:
        name: Of the Hugging Face hub, or a folder.
        folder: Made where it is not there.

    Raises:
        OSError: There is no such model.
        ValueError: The same.
    """
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto")
    config = model.config.get_text_config()
    if config.tie_word_embeddings:
        head = model.get_output_embeddings()
        head.weight = torch.nn.Parameter(head.weight.detach().clone())
        config.tie_word_embeddings = model.config.tie_word_embeddings = False
    new = folder.with_name(f"{folder.name}.new")  # a kill leaves no half of a model
    shutil.rmtree(new, ignore_errors=True)
    AutoTokenizer.from_pretrained(name).save_pretrained(new)
    model.save_pretrained(new)
    new.rename(folder)


def main() -> int:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description="Put a model into a folder.")
    parser.add_argument("name", help="of the Hugging Face hub, or a folder")
    parser.add_argument("folder", type=Path, help="is made")
    options = parser.parse_args()
    if options.folder.exists():
        parser.error(f"{options.folder} is there; remove it, or go on with it")
    try:
        prepare(options.name, options.folder)
    except (OSError, ValueError) as error:
        parser.error(f"{options.name} cannot be loaded: {error}")
    print(f"{options.name} is in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
