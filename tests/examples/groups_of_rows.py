"""Groups for the trainer, made of random rows."""

import numpy as np
from hypothesis import strategies as st

from examples.trainer.grpo import Group


def group_of(scores, zero=None, size=6, seed=0):
    """Return a group whose rows have three prompt tokens and some generated ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 4 + size, len(scores))
    return Group(
        tokens=[rng.integers(0, 99, length).tolist() for length in lengths],
        trained=[np.arange(length) >= 3 for length in lengths],
        logprobs=[-rng.random(length).astype(np.float32) for length in lengths],
        scores=np.array(scores, float),
        has_zero_advantage=np.array(zero or [False] * len(scores)),
    )


@st.composite
def batches(draw):
    """Draw groups, and the log-probabilities that their trained tokens have now."""
    size = draw(st.integers(2, 4))
    scores = st.lists(st.sampled_from([0, 0.25, 1.0]), min_size=size, max_size=size)
    groups = [
        group_of(draw(scores), seed=draw(st.integers(0, 10**6)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sampled = [
        row[mask]
        for group in groups
        for row, mask in zip(group.logprobs, group.trained, strict=True)
    ]
    now = np.concatenate(sampled).astype(float)
    return groups, now + rng.normal(0, 0.3, len(now))
