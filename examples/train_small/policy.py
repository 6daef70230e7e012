"""A policy: the model with its tokenizer, which completes questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from examples.train_small.model import Transformer

END = 0
"""The token with which a completion begins and ends, and of which padding is."""

UNKNOWN = 1

COMMON = 0.02
"""Share of a task's questions that a word is in to become a token."""

WORD = re.compile(r" ?\b[a-zA-Z]+\b| \d\b")


class Tokenizer:
    """A token for how questions begin and end, for common words, and each character.

    A model of this size would have to learn by heart how longer tokens are spelled, so
    what items are made of comes letter by letter.

    Args:
        pieces: Texts of the tokens, most preferred first.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = list(pieces)
        self._ids = {piece: i for i, piece in enumerate(pieces, UNKNOWN + 1)}
        # A word of one letter more is another word.
        ends = {True: r"\b", False: ""}
        patterns = [
            ends[p.isalpha()] + re.escape(p) + ends[WORD.fullmatch(p) is not None]
            for p in pieces
        ]
        self._split = re.compile("|".join([*patterns, "."]), re.DOTALL)

    @classmethod
    def of(cls, questions: Iterable[Sequence[str]], answers: str) -> Tokenizer:
        """Make one from questions of each task, and from the characters of answers."""
        pieces = {"<answer>", "</answer>", *answers}
        for texts in questions:
            first = commonprefix(texts)  # noqa: RUF071 - by character
            ends = [text[len(first) :][::-1] for text in texts]
            last = commonprefix(ends)  # noqa: RUF071 - by character
            found = Counter(word for text in texts for word in {*WORD.findall(text)})
            common = (word for word, n in found.items() if n >= COMMON * len(texts))
            pieces.update([first, last[::-1]], common, *texts)
        return cls(sorted(pieces - {""}, key=lambda piece: (-len(piece), piece)))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        return [self._ids.get(p, UNKNOWN) for p in self._split.findall(text)]

    def padded(self, texts: Sequence[str], side: str) -> tuple[Tensor, Tensor]:
        """Return the token ids of texts, and what of them is padding, both (B, T)."""
        end = [] if side == "left" else [END]  # a completion ends, a prompt goes on
        rows = [torch.tensor(self.encode(text) + end) for text in texts]
        full = [torch.zeros(len(row), dtype=torch.bool) for row in rows]
        ids = pad_sequence(rows, True, END, side)
        return ids, pad_sequence(full, True, True, side)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids up to the first `END`."""
        ids = ids[: ids.index(END)] if END in ids else ids
        return "".join("?" if i == UNKNOWN else self.pieces[i - 2] for i in ids)


@dataclass(frozen=True)
class Rollouts:
    """G completions of each of B questions, of at most C tokens.

    Attributes:
        prompts: Token ids, padded on the left, (B, P).
        is_padding: Of the prompts, (B, P).
        ids: Of the completions with their `END`, padded with `END`, (B, G, C).
        is_token: Which of them are no padding, (B, G, C).
        texts: Of the completions, G for each question.
    """

    prompts: Tensor
    is_padding: Tensor
    ids: Tensor
    is_token: Tensor
    texts: list[list[str]]

    @property
    def has_ended(self) -> Tensor:
        """Whether a completion has come to its end, (B, G)."""
        return ((self.ids == END) & self.is_token).any(-1)


class Policy:
    """A model and its tokenizer.

    Args:
        tokenizer: Its number of pieces is part of the model.
        seed: Decides the weights.
    """

    learning_rate = 3e-4
    warm_learning_rate = 1e-3
    warm_steps = 2_000
    """Of the warm start, at most."""

    def __init__(self, tokenizer: Tokenizer, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.tokenizer = tokenizer
        self.model = Transformer(len(tokenizer.pieces) + 2)

    @classmethod
    def new(cls, items: Iterable[Any], completions: Iterable[str], seed: int) -> Policy:
        """Return one whose tokenizer knows the items of a warm start."""
        by_task: dict[str, list[str]] = {}
        for item in items:
            by_task.setdefault(item.task, []).append(item.question)
        return cls(Tokenizer.of(by_task.values(), "".join(completions)), seed)

    def save(self, path: Path) -> None:
        """Write the weights and the tokenizer."""
        whole = {"pieces": self.tokenizer.pieces, "model": self.model.state_dict()}
        torch.save(whole, path)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Return what was saved."""
        whole = torch.load(path, weights_only=True)
        policy = cls(Tokenizer(whole["pieces"]))
        policy.model.load_state_dict(whole["model"])
        return policy

    @torch.no_grad()
    def sample(
        self,
        questions: Sequence[str],
        count: int,
        max_new_tokens: int,
        rng: torch.Generator | None,
    ) -> Rollouts:
        """Complete each question `count` times with at most `max_new_tokens` tokens.

        Args:
            questions: B texts.
            count: Completions of each, G.
            max_new_tokens: Tokens of a completion, with its end.
            rng: Draws the tokens at temperature 1; None takes the likeliest.
        """
        prompts, is_padding = self.tokenizer.padded(questions, "left")
        _, prompt = self.model(prompts[:, None], is_padding)
        last = torch.full((len(prompts), count, 1), END)
        has_ended = torch.zeros(last.shape[:2], dtype=torch.bool)
        own = None
        ids = []
        flags = []
        for _ in range(max_new_tokens):
            logits, own = self.model(last, is_padding, prompt, own)
            told = logits[:, :, 0].log_softmax(-1)
            if rng is None:
                drawn = told.argmax(-1)
            else:
                chances = told.flatten(0, 1).exp()
                drawn = chances.multinomial(1, generator=rng).view_as(has_ended)
            drawn = drawn.masked_fill(has_ended, END)
            ids.append(drawn)
            flags.append(~has_ended)
            has_ended = has_ended | (drawn == END)
            last = drawn[..., None]
            if has_ended.all():
                break
        whole = torch.stack(ids, -1)
        texts = [[self.tokenizer.decode(row) for row in g] for g in whole.tolist()]
        return Rollouts(prompts, is_padding, whole, torch.stack(flags, -1), texts)

    def logprobs(self, prompts: Tensor, is_padding: Tensor, ids: Tensor) -> Tensor:
        """Return the log-probabilities of completions, (B, G, C), with gradients."""
        _, prompt = self.model(prompts[:, None], is_padding)
        begun = torch.cat([torch.full_like(ids[..., :1], END), ids[..., :-1]], -1)
        logits, _ = self.model(begun, is_padding, prompt)
        return logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
