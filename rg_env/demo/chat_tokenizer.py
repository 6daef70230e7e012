"""The small tokenizer that is shipped, and the chat format of its prompts.

The format is ChatML without a BOS token. Contents are not escaped: a message that
itself holds `<|im_end|>` is cut there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

TOKENIZER_FOLDER = Path(__file__).resolve().parent / "tokenizer"

START, END = "<|im_start|>", "<|im_end|>"


def build_prompt(messages: Sequence[tuple[str, str]]) -> str:
    """Write (role, content) pairs as a prompt with an opened assistant message."""
    body = "".join(f"{START}{role}\n{content}{END}\n" for role, content in messages)
    return f"{body}{START}assistant\n"


def extract_last_user_message(prompt: str) -> str:
    """Return the last user message of a prompt; one without is taken whole."""
    _, head, content = prompt.rpartition(f"{START}user\n")
    return content.split(END, 1)[0] if head else prompt


def load_tokenizer() -> Tokenizer:
    """Load the tokenizer that is shipped, trained on questions of every task."""
    return Tokenizer.from_file(str(TOKENIZER_FOLDER / "tokenizer.json"))


class ChatTokenizer:
    """Texts to tokens and back, special tokens included; `end_id` ends a completion."""

    def __init__(self) -> None:
        self._tokenizer = load_tokenizer()
        self._size = self._tokenizer.get_vocab_size()
        (self.end_id,) = self.encode(END)

    def encode(self, text: str) -> list[int]:
        """Encode a text; special tokens in it become their own ids."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Decode tokens; raises `ValueError` if an id is outside the vocabulary."""
        if token_ids and not 0 <= min(token_ids) <= max(token_ids) < self._size:
            raise ValueError(f"token ids lie in [0, {self._size}): another tokenizer?")
        text: str = self._tokenizer.decode(list(token_ids), skip_special_tokens=False)
        return text
