"""A policy without torch that knows the form of an answer and learns which to give.

    python -m tests.examples.answer_policy FOLDER --port 9004

What it writes is `<answer>` with a digit, which it draws by one logit each; all else is
certain. `python -m` serves it by the program of the small server.
"""

import sys

import numpy as np

from examples.train_small import small_server
from rg_env.simulation.chat_tokenizer import ChatTokenizer

TOKENIZER = ChatTokenizer()
BEFORE, AFTER = TOKENIZER.encode("<answer>"), TOKENIZER.encode("</answer><|im_end|>")
DIGITS = [TOKENIZER.encode(str(digit))[0] for digit in range(1, 10)]
WEIGHTS = "weights.npy"


class AnswerPolicy:
    """Draws a digit by the same logits for every prompt; at first the last one a little
    more often than others, and always where the likeliest is asked for.
    """

    learning_rate = 1.0

    def __init__(self):
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

    def log_probabilities(self, rows, chosen=None):
        result = [np.zeros(len(row), np.float32) for row in rows]
        for values, row in zip(result, rows, strict=True):
            for place, digit in self._answers(row):
                values[place] = self._told()[digit]
        return result

    def step(self, rows, weights):
        gradient = np.zeros(len(DIGITS))
        for row, row_weights in zip(rows, weights, strict=True):
            for place, digit in self._answers(row):
                gradient[digit] += row_weights[place]
                gradient -= row_weights[place] * np.exp(self._told())
        self._logits += self.learning_rate * gradient
        return float(np.linalg.norm(gradient))

    def save(self, folder, *, with_optimiser=False):
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / WEIGHTS, self._logits)

    def load(self, folder):
        self._logits = np.load(folder / WEIGHTS)

    def _told(self):
        return self._logits - np.log(np.exp(self._logits).sum())

    def _answers(self, row):
        """Yield where a digit follows the opening tag, and which."""
        for place in range(len(BEFORE), len(row)):
            is_opened = list(row[place - len(BEFORE) : place]) == BEFORE
            if is_opened and row[place] in DIGITS:
                yield place, DIGITS.index(row[place])


def load_policy(folder, device):
    policy = AnswerPolicy()
    policy.load(folder)
    return policy


if __name__ == "__main__":
    sys.exit(small_server.main(make_policy=load_policy))
