"""Numbers as text whose written exponent is worked out digit by digit."""

from __future__ import annotations

import re

_EXPONENT = re.compile(r"[eE][-+]?([\d_]*)")


def why_not_number(text: str, max_exponent_digits: int) -> str | None:
    """Return why a text is not made a fraction, None if it is.

    `Fraction("1e9999999")` computes ten to that power. Text that is no number is left
    to the library, which gives it nothing. Commas are dropped as the library does.
    """
    for match in _EXPONENT.finditer(text.replace(",", "")):
        if len(match[1]) > max_exponent_digits:
            return f"an exponent of more than {max_exponent_digits} digits"
    return None
