"""codeio: one object alone."""

from __future__ import annotations

import pytest

from tests.support.fixed_scores import both_scores


@pytest.mark.parametrize(
    ("gold", "answer", "fixed"),
    [
        ('{"a": 5}', '{"a": -5}', 0.0),
        ('{"a": 5}', '{"a": 0, "a": 5}', 0.0),
        ('{"a": 5}', '```json\n{"a": 5}\n```', None),
        ('{"a": 5}', '{"a": 6}', None),
        ('{"a": 5}', '{"a": 5} or {"a": 6}', 0.0),
        ("5", "5", 1.0),
        ("5", "-5", 0.0),
    ],
)
def test_an_object_is_paid_alone(gold: str, answer: str, fixed: float | None) -> None:
    entry = {"answer": gold, "metadata": {}}
    installed, paid = both_scores("codeio", entry, answer)
    assert paid == (installed if fixed is None else fixed)
