"""A policy without torch, which answers every question by the same odds.

    python -m tests.examples.policies FOLDER --port 9004

serves it by the small server.
"""

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.examples import small_server
from tests.support.text_models import ChatTokenizer

TOKENIZER = ChatTokenizer()
BEFORE = TOKENIZER.encode("<answer>")
AFTER = TOKENIZER.encode("</answer><|im_end|>")
DIGITS = [TOKENIZER.encode(str(digit))[0] for digit in range(1, 10)]
WEIGHTS = "model.safetensors"


class AnswerPolicy:
    """Writes `<answer>` with a digit, which it draws and learns by one logit each."""

    def __init__(self):
        self.logits = np.zeros(len(DIGITS))
        self._gradient = np.zeros(len(DIGITS))

    def sample(self, prompt, n, max_tokens, temperature, end_id, seed):
        rng = np.random.default_rng(seed)
        made = []
        chances = np.exp(self.logits / temperature)
        for _ in range(n):
            digit = int(rng.choice(len(chances), p=chances / chances.sum()))
            ids = [*BEFORE, DIGITS[digit], *AFTER]
            told = np.zeros(len(ids))
            told[len(BEFORE)] = self._told()[digit]
            made.append((ids[:max_tokens], told[:max_tokens].tolist()))
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

    def backward(self, rows, trained, derivative, temperatures=None):
        told = self._told()
        picked = [
            DIGITS.index(token) if place == len(BEFORE) else None
            for row, mask in zip(rows, trained, strict=True)
            for place, token in enumerate(np.array(row)[mask].tolist())
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


def load_policy(folder):
    policy = AnswerPolicy()
    policy.load(folder)
    return policy


if __name__ == "__main__":
    small_server.main(AnswerPolicy())
