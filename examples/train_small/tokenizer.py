"""A tokenizer for a small model: a word where every question has it, else letters.

    python tokenizer.py CONVERSATIONS SOURCE FOLDER

What a question repeats becomes a token, word by word, so that prompts are short. Of all
else, the words and numbers that an item is made of, a token is a letter or a digit. A
small model would have to learn by heart how each longer token is spelled, which takes
it longer than all that is shown here.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from transformers import AutoTokenizer

MOST_TOKENS = 4096


def make_tokenizer(conversations: Path, source: Path, folder: Path) -> int:
    """Write the tokenizer of some conversations into a folder.

    Args:
        conversations: What gold_conversations.py has written.
        source: Of a tokenizer whose special tokens and chat template it gets.
        folder: Made where it is not there.

    Returns:
        The number of its tokens.
    """
    base = AutoTokenizer.from_pretrained(source)
    rows = [
        json.loads(line)
        for line in conversations.read_text(encoding="utf-8").splitlines()
    ]
    texts = (base.apply_chat_template(row["messages"], tokenize=False) for row in rows)
    # What stands once in each question of a task is found so often; a pair of letters
    # in the words of its items is not.
    often = min(Counter(row["task"] for row in rows).values())
    made = base.train_new_from_iterator(
        texts, vocab_size=MOST_TOKENS, min_frequency=often, show_progress=False
    )
    made.save_pretrained(folder)
    return len(made)


if __name__ == "__main__":
    print(make_tokenizer(*map(Path, sys.argv[1:4])), "tokens")
