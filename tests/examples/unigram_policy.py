"""A policy without torch whose next token depends on none before it.

    python -m tests.examples.unigram_policy FOLDER --port 9004

The second serves it by the program of the small server.
"""

import shutil
import sys
import threading
from pathlib import Path

import numpy as np

from examples.train_small import small_server
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER, ChatTokenizer

TOKENIZER = ChatTokenizer()
VOCABULARY = 4096
WEIGHTS = "weights.npy"


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
                if temperature == 0:
                    ids.append(int(told.argmax()))
                else:
                    chances = np.exp(told / temperature)
                    ids.append(int(rng.choice(len(told), p=chances / chances.sum())))
            made.append((ids, [float(told[token]) for token in ids]))
        assert self.may_sample.wait(60)
        return made

    def log_probabilities(self, tokens):
        return self._told()[tokens]

    def save_weights(self, folder):
        folder.mkdir(exist_ok=True)
        np.save(folder / WEIGHTS, self.logits)

    def load(self, folder):
        self.logits = np.load(folder / WEIGHTS)

    def _told(self):
        return self.logits - np.log(np.exp(self.logits).sum())


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


def load_policy(folder):
    policy = UnigramPolicy(np.zeros(VOCABULARY))
    policy.load(folder)
    return policy


if __name__ == "__main__":
    sys.exit(small_server.main(make_policy=load_policy))
