"""Policies without torch, whose next token depends on no prompt.

    python -m tests.examples.policies FOLDER --port 9004

serves one by the program of the small server.
"""

import shutil
import sys
import threading
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from examples.train_small import small_server
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER, ChatTokenizer

TOKENIZER = ChatTokenizer()
VOCABULARY = 4096
BEFORE, AFTER = TOKENIZER.encode("<answer>"), TOKENIZER.encode("</answer><|im_end|>")
DIGITS = [TOKENIZER.encode(str(digit))[0] for digit in range(1, 10)]
WEIGHTS = "model.safetensors"


class UnigramPolicy:
    """Draws each token by the same logits.

    Attributes:
        calls: What `sample` was asked for: how many prompts, and the limit.
        may_sample: While it is not set, `sample` waits.
    """

    def __init__(self, logits):
        self.logits = np.asarray(logits, dtype=np.float64)
        self.calls = []
        self.may_sample = threading.Event()
        self.may_sample.set()

    def sample(self, prompts, max_tokens, temperature, stop_ids, seed):
        self.calls.append((len(prompts), max_tokens, temperature))
        rng = np.random.default_rng(seed)
        told = self._told()
        made = []
        for _ in prompts:
            ids = []
            while len(ids) < max_tokens and not stop_ids.intersection(ids):
                ids.append(self._draw(rng, temperature))
            made.append((ids, [float(told[token]) for token in ids]))
        assert self.may_sample.wait(60)
        return made

    def log_probabilities(self, places):
        return self._told()[list(places)]

    def save_weights(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_file({"logits": self.logits}, folder / WEIGHTS)

    save = save_weights

    def load(self, folder):
        self.logits = load_file(folder / WEIGHTS)["logits"]

    def _told(self):
        return self.logits - np.log(np.exp(self.logits).sum())

    def _draw(self, rng, temperature):
        if not temperature:
            return int(self._told().argmax())
        chances = np.exp(self._told() / temperature)
        return int(rng.choice(len(chances), p=chances / chances.sum()))


class AnswerPolicy(UnigramPolicy):
    """Writes `<answer>` with a digit, which it draws and learns by one logit each.

    At first the last digit comes a little more often than others, and always where the
    likeliest is asked for.
    """

    def __init__(self):
        super().__init__([0.0] * (len(DIGITS) - 1) + [0.1])
        self._gradient = np.zeros(len(DIGITS))

    def sample(self, prompts, max_tokens, temperature, stop_ids, seed):
        rng = np.random.default_rng(seed)
        made = []
        for _ in prompts:
            digit = self._draw(rng, temperature)
            ids = [*BEFORE, DIGITS[digit], *AFTER]
            told = np.zeros(len(ids))
            told[len(BEFORE)] = self._told()[digit]
            made.append((ids[:max_tokens], told[:max_tokens].tolist()))
        return made

    def backward(self, rows, trained, derivative, temperatures=None):
        told = self._told()
        picked = [
            dict(self._answers(row)).get(place)
            for row, mask in zip(rows, trained, strict=True)
            for place in np.flatnonzero(mask)
        ]
        logprobs = np.array([0.0 if d is None else told[d] for d in picked])
        values = derivative(range(len(rows)), logprobs)
        self._gradient = np.zeros(len(DIGITS))
        for digit, value in zip(picked, values, strict=True):
            if digit is not None:
                self._gradient[digit] += value
                self._gradient -= value * np.exp(told)
        return float(-(np.exp(told) * told).sum())

    def step(self, learning_rate):
        self.logits = self.logits - learning_rate * self._gradient
        return float(np.linalg.norm(self._gradient))

    def _answers(self, row):
        """Yield where a digit follows the opening tag, and which."""
        for place in range(len(BEFORE), len(row)):
            is_opened = list(row[place - len(BEFORE) : place]) == BEFORE
            if is_opened and row[place] in DIGITS:
                yield place, DIGITS.index(row[place])


def policy_of(**logits):
    """Return a policy of some words; all other tokens are as good as impossible."""
    values = np.full(VOCABULARY, -60.0)
    for word, logit in logits.items():
        token = TOKENIZER.end_id if word == "end" else TOKENIZER.encode(word)[0]
        values[token] = logit
    return UnigramPolicy(values)


def write_folder(folder, policy):
    """Write what a server needs: the tokenizer and the weights."""
    shutil.copytree(TOKENIZER_FOLDER, folder, dirs_exist_ok=True)
    policy.save_weights(Path(folder))


def load_policy(folder, device=None):
    policy = AnswerPolicy()
    policy.load(folder)
    return policy if len(policy.logits) == len(DIGITS) else UnigramPolicy(policy.logits)


if __name__ == "__main__":
    sys.exit(small_server.main(make_policy=load_policy))
