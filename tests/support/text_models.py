"""A model whose texts are written without an answer key, and a writer.

It can add and find greatest common divisors, so it meets two tasks without knowing
their items.
"""

import dataclasses
import functools
import math
import random
import re

from tokenizers import Tokenizer

from rg_env.installation import TOKENIZER_FOLDER

MAX_KNOWN_TEXTS = 512

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


def cut_text(tokenizer, text, max_tokens):
    """Return what a text is as a completion: text, tokens and reason of the end."""
    ids = [*tokenizer.encode(text), tokenizer.end_id]
    is_whole = len(ids) <= max_tokens
    ids = ids[:max_tokens]
    readable = tokenizer.decode(ids[:-1] if is_whole else ids)
    return readable, ids, "stop" if is_whole else "length"


class TextModel:
    """A model whose texts are those of a function of a question and their number."""

    def __init__(self, texts):
        self._texts = texts
        self._rng = random.Random(0)
        cut = functools.partial(cut_text, ChatTokenizer())
        self._cut = functools.lru_cache(maxsize=MAX_KNOWN_TEXTS)(cut)

    async def generate(self, prompt, n, max_tokens):
        question = prompt.rpartition(f"{START}user\n")[2].split(END, 1)[0]
        made = []
        for text in self._texts(question, n):
            readable, ids, reason = self._cut(text, max_tokens)
            logprobs = throw_logprobs(len(ids), self._rng)
            made.append(Generation(readable, ids, logprobs, reason))
        return made


def solve(question):
    """Answer a question of `gcd` or `chain_sum`; others with a number found in it."""
    numbers = [int(n) for n in re.findall(r"-?\d+", question)]
    if "GCD" in question and numbers:
        return str(math.gcd(*numbers))
    found = re.search(r"(\d+(?: [+-] \d+)+)", question)
    if found:
        terms = found.group(1).split(" ")
        signs = [1, *(1 if sign == "+" else -1 for sign in terms[1::2])]
        return str(sum(s * int(n) for s, n in zip(signs, terms[::2], strict=True)))
    return str(numbers[0] if numbers else 0)


class Arithmetic:
    """About half of its completions hold the solution."""

    def __init__(self):
        self._rng = random.Random(0)

    def __call__(self, question, n):
        right = solve(question)
        answers = [right if self._rng.random() < 0.5 else "no" for _ in range(n)]
        return [f"<think>hm</think><answer>{answer}</answer>" for answer in answers]
