"""Tasks of which nothing but a common notation is known.

What else is known of a task needs a module of its own; see `rg_env.task_rules.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rg_env.task_rules.rules import Notation

COMMON_NOTATIONS: Mapping[str, Notation] = {}
"""Task to how its answers are written as its scorer reads them."""
