"""How many workers a pool has where nobody says it."""

from __future__ import annotations

import os

FEWEST_WORKERS, MOST_WORKERS = 2, 8
"""One is kept free for scoring."""


def default_pool_size() -> int:
    """Return half the number of cores, within the bounds."""
    return max(FEWEST_WORKERS, min(MOST_WORKERS, (os.cpu_count() or 1) // 2))
