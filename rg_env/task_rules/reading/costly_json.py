"""JSON whose content is compared in more than linear time.

Text that is no JSON is left to the library, which gives it nothing.
"""

from __future__ import annotations

USUAL_GOLD_WEIGHT = 1_000
_WEIGHT_OF_A_NODE = 8
_OPENING, _CLOSING = frozenset("[{"), frozenset("]}")


def _depth(text: str) -> int:
    """Return the deepest nesting of brackets, those inside strings included."""
    depth = deepest = 0
    for char in text:
        if char in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSING:
            depth -= 1
    return deepest


def _weight(text: str) -> int:
    """Return about how many characters the labels of its tree have together."""
    nodes = sum(text.count(char) for char in ",[{")
    return len(text) + _WEIGHT_OF_A_NODE * nodes


def why_not_compared(
    text: str, gold: str | None, max_work: int, max_depth: int
) -> str | None:
    """Return why a JSON object is not compared with the gold, None if it is.

    The library computes a tree edit distance whose nodes cost an edit distance: the
    product of both sizes, and more with depth.

    Args:
        text: The answer.
        gold: The gold answer; None for one of the usual size.
        max_work: Largest product of the two weights.
        max_depth: Deepest nesting.
    """
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < 0:
        return None  # the library compares nothing else
    weight = USUAL_GOLD_WEIGHT if gold is None else _weight(gold)
    if _weight(text[start : end + 1]) * weight > max_work:
        return "too large to be compared with the gold answer"
    return "nested too deeply" if _depth(text) > max_depth else None


def why_not_plan(text: str, safe_chars: int, max_string_chars: int) -> str | None:
    """Return why the strings of a plan are not matched, None if they are.

    The library's expression for `move(box, place)` is quadratic in one string.

    Args:
        text: The answer.
        safe_chars: A text up to this length holds no string worth a look.
        max_string_chars: Longest string in a longer one.
    """
    if len(text) <= safe_chars:
        return None
    if "\\" in text:
        return "a backslash in a long plan"
    if max(map(len, text.split('"'))) > max_string_chars:
        return f"a string of more than {max_string_chars} characters"
    return None
