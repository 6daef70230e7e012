"""What it takes for an item not to be asked.

The library makes entries whose answer is wrong, or is given away by their question. A
check looks at an entry where it was made, and one that is faulty is replaced by another
attempt at the same draw.

A check costs little beside making the entry, needs nothing but the entry, and is
certain: it says that an entry is faulty only where it can show it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

Entry = Mapping[str, Any]
"""An entry of the library: question, answer and metadata."""


@dataclasses.dataclass(frozen=True)
class ItemCheck:
    """Something that is wrong with some entries of a task.

    Attributes:
        task: The registered task.
        fault: What is wrong with them, in the words of a sentence "its ...".
        is_faulty: Whether an entry is one of them; may raise a LookupError, TypeError,
            ValueError or AttributeError where it is not what the task makes.
        always: Whether it is looked for also where the library's items are wanted as
            they are, because an entry with it is another one each time, or nobody can
            answer it.
    """

    task: str
    fault: str
    is_faulty: Callable[[Entry], bool]
    always: bool = False
