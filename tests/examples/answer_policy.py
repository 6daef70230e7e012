"""A policy without torch that knows the form of an answer and learns which to give.

    python -m tests.examples.answer_policy FOLDER --port 9004

What it writes is `<answer>` with a digit, which it draws by one logit each; all else is
certain. `python -m` serves it by the program of the small server.
"""

import sys

import numpy as np
from safetensors.numpy import load_file, save_file

from examples.train_small import small_server
from rg_env.demo.chat_tokenizer import ChatTokenizer

TOKENIZER = ChatTokenizer()
BEFORE, AFTER = TOKENIZER.encode("<answer>"), TOKENIZER.encode("</answer><|im_end|>")
DIGITS = [TOKENIZER.encode(str(digit))[0] for digit in range(1, 10)]
WEIGHTS = "model.safetensors"


class AnswerPolicy:
    """Draws a digit by the same logits for every prompt; at first the last one a little
    more often than others, and always where the likeliest is asked for.
    """

    def __init__(self):
        self._gradient = np.zeros(len(DIGITS))
        self._logits = np.zeros(len(DIGITS))
        self._logits[-1] = 0.1

    def sample(self, prompts, max_tokens, temperature, stop_ids, seed):
        rng = np.random.default_rng(seed)
        made = []
        for _ in prompts:
            if temperature:
                chances = np.exp(self._told() / temperature)
                digit = rng.choice(len(DIGITS), p=chances / chances.sum())
            else:
                digit = int(self._told().argmax())
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

    def log_probabilities(self, digits):
        return self._told()[list(digits)]

    def step(self, learning_rate):
        self._logits -= learning_rate * self._gradient
        return float(np.linalg.norm(self._gradient))

    def save_weights(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_file({"logits": self._logits}, folder / WEIGHTS)

    save = save_weights

    def load(self, folder):
        self._logits = load_file(folder / WEIGHTS)["logits"]

    def _told(self):
        return self._logits - np.log(np.exp(self._logits).sum())

    def _answers(self, row):
        """Yield where a digit follows the opening tag, and which."""
        for place in range(len(BEFORE), len(row)):
            is_opened = list(row[place - len(BEFORE) : place]) == BEFORE
            if is_opened and row[place] in DIGITS:
                yield place, DIGITS.index(row[place])


def load_policy(folder, device=None):
    policy = AnswerPolicy()
    policy.load(folder)
    return policy


if __name__ == "__main__":
    sys.exit(small_server.main(make_policy=load_policy))
