"""A model whose texts are written without an answer key, and a writer.

It can add and find greatest common divisors, so it meets two tasks without knowing
their items.
"""

import dataclasses
import math
import random
import re

from tokenizers import Tokenizer

from rg_env.installation import TOKENIZER_FOLDER

START, END = "<|im_start|>", "<|im_end|>"


def build_prompt(messages):
    """Write messages as the shipped tokenizer's template does."""
    parts = [f"{START}{m['role']}\n{m['content']}{END}\n" for m in messages]
    return "".join([*parts, f"{START}assistant\n"])


class ChatTokenizer:
    """The shipped tokenizer; special tokens of a text are tokens of their own."""

    def __init__(self):
        self._tokenizer = Tokenizer.from_file(str(TOKENIZER_FOLDER / "tokenizer.json"))
        (self.end_id,) = self.encode(END)

    def encode(self, text):
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, token_ids):
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=False)


@dataclasses.dataclass(frozen=True)
class Generation:
    """One completion; the end token is among its tokens."""

    text: str
    token_ids: list
    logprobs: list
    finish_reason: str


def throw_logprobs(count, rng):
    """Throw finite negative log-probabilities of mean -0.5, shape (count,)."""
    return [round(-rng.expovariate(2), 4) for _ in range(count)]


def solve(question):
    """Answer a question of `gcd` or `chain_sum`; others with a number found in it."""
    numbers = [int(n) for n in re.findall(r"-?\d+", question)]
    if "GCD" in question and numbers:
        return str(math.gcd(*numbers))
    found = re.search(r"\d+(?: [+-] \d+)+", question)
    if found:
        terms = re.findall(r"[+-]?\d+", found[0].replace(" ", ""))
        return str(sum(int(term) for term in terms))
    return str(numbers[0] if numbers else 0)


class Arithmetic:
    """A model of which about half of the completions hold the solution."""

    def __init__(self):
        self._rng = random.Random(0)
        self._tokenizer = ChatTokenizer()

    async def generate(self, prompt, n, max_tokens):
        question = prompt.rpartition(f"{START}user\n")[2].split(END, 1)[0]
        right = solve(question)
        return [self._complete(right, max_tokens) for _ in range(n)]

    def _complete(self, right, max_tokens):
        answer = right if self._rng.random() < 0.5 else "no"
        text = f"<think>hm</think><answer>{answer}</answer>"
        ids = [*self._tokenizer.encode(text), self._tokenizer.end_id]
        reason = "stop" if len(ids) <= max_tokens else "length"
        ids = ids[:max_tokens]
        if reason == "length":
            text = self._tokenizer.decode(ids)
        return Generation(text, ids, throw_logprobs(len(ids), self._rng), reason)
