"""Train the small tokenizer that the demo ships.

    python -m tools.train_tokenizer

It is a byte-level BPE of our own, so that the demo and the tests download nothing: any
text comes back exactly, and special tokens aside no text is out of its vocabulary. The
corpus is made here from a fixed seed: questions and answers of every task of the
library, and completions of the simulated policy. Two runs with the same library give
the same files.
It is none to train a model with.
"""

import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from rg_env.demo.chat_tokenizer import END, START, TOKENIZER_FOLDER
from rg_env.demo.policy import KeyEntry, PolicyProfile, sample_completion
from rg_env.tasks.datasets import usable_entries
from rg_env.tasks.library import describe

PAD = "<|pad|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{{ '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

VOCABULARY_SIZE = 4096
ENTRIES_PER_TASK = 12
SEED = 7

# Boards and grids repeat the same few signs; beyond this they would only crowd out the
# words of the other tasks.
LONGEST_TEXT = 1500


def corpus() -> Iterator[str]:
    """Yield the texts to train on: question, answer and a completion for each entry."""
    rng = random.Random(SEED)
    for task in describe().tasks:
        entries = usable_entries(task, {}, itertools.count(SEED))
        for made in itertools.islice(entries, ENTRIES_PER_TASK):
            question, answer = str(made["question"]), str(made["answer"])
            entry = KeyEntry(task, question, answer, None)
            yield question[:LONGEST_TEXT]
            yield answer[:LONGEST_TEXT]
            completion = sample_completion(entry, PolicyProfile(), rng)
            yield completion.text[:LONGEST_TEXT]


def train(texts: Iterator[str]) -> Tokenizer:
    """Train a byte-level BPE; every byte is in its alphabet, every digit a token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[START, END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "eos_token": END,
        "pad_token": PAD,
        "bos_token": None,
        "unk_token": None,
        "model_max_length": 1_000_000,
        "clean_up_tokenization_spaces": False,
    }
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    # codeio writes into the working folder while it makes an entry.
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        tokenizer = train(corpus())
        os.chdir(TOKENIZER_FOLDER)
    write_tokenizer(tokenizer, TOKENIZER_FOLDER)
    print(f"{tokenizer.get_vocab_size()} tokens written to {TOKENIZER_FOLDER}")
    return 0


if __name__ == "__main__":
    # Some tasks go by the hash of strings, which Python salts at its start.
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "tools.train_tokenizer"]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    raise SystemExit(main())
