"""Entries that are solved by copying their question or by a fixed text."""

from __future__ import annotations

from rg_env.tasks.item_checks.item_check import ItemCheck

CHECKS: tuple[ItemCheck, ...] = ()
"""In the order of the tasks' names."""
