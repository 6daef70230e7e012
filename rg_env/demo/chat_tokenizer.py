"""The small tokenizer that is shipped, for everything that is simulated here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from rg_env.demo.chatml import END

TOKENIZER_FOLDER = Path(__file__).resolve().parent / "tokenizer"


def load_tokenizer(folder: Path = TOKENIZER_FOLDER) -> Tokenizer:
    """Load the tokenizer of a folder that holds a `tokenizer.json`.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It has no `<|im_end|>`, so it is not one of the demo's format.
    """
    path = folder / "tokenizer.json"
    advice = "train one with `python -m tools.train_tokenizer --output FOLDER`"
    if not path.is_file():
        raise FileNotFoundError(f"no tokenizer at {path}; {advice}")
    tokenizer = Tokenizer.from_file(str(path))
    if tokenizer.token_to_id(END) is None:
        raise ValueError(f"{path}: expected a tokenizer with {END}; {advice}")
    return tokenizer


class ChatTokenizer:
    """Texts to tokens and back, special tokens included.

    Args:
        folder: Of the tokenizer.

    Attributes:
        end_id: The token that ends a completion.
    """

    def __init__(self, folder: Path = TOKENIZER_FOLDER) -> None:
        self._tokenizer = load_tokenizer(folder)
        self._size = self._tokenizer.get_vocab_size()
        (self.end_id,) = self.encode(END)

    def encode(self, text: str) -> list[int]:
        """Encode a text; special tokens in it become their own ids."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Decode tokens, special ones included.

        Raises:
            ValueError: An id is outside the vocabulary.
        """
        if token_ids and not 0 <= min(token_ids) <= max(token_ids) < self._size:
            raise ValueError(
                f"token ids lie in [0, {self._size}), found {min(token_ids)} to"
                f" {max(token_ids)}; the prompt was encoded with another tokenizer than"
                " the simulated server's"
            )
        text: str = self._tokenizer.decode(list(token_ids), skip_special_tokens=False)
        return text
