"""A group: the rollouts of one item, on their way from the item to their ending."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from rg_env.rollouts.ledger import Ending


def listed(data: Any) -> list[dict[str, Any]]:
    """Return one group's data, or that of several of which some may be None."""
    several = data if isinstance(data, list) else [data]
    return [one for one in several if one is not None]


def rollouts_in(data: Any) -> int:
    """Return the rollouts in the data of a group, of several, of None."""
    return sum(len(one["tokens"]) for one in listed(data) if one)


@dataclasses.dataclass(eq=False)
class Group:
    """What belongs to one group; each step writes on it what the next one needs.

    The hooks of the framework take an item or a group's data, and their arguments are
    fixed. Those of ours find the rest with `Group.of`.

    Attributes:
        item: (messages, entry, dataset), or what a subclass samples.
        tries: How often groups of this item were lost before.
        data: What the trainer gets, as the newest hook returned it: one group, a list
            of several, or None where there is none.
        in_flight: Rollouts of `data` that have not ended.
        ending: How its rollouts ended, once it is known of all.
        worker: The task that works on it in `serve`.
        start_time: When it was started, a framework's name; the system's clock jumps.
        began_s: The same of a clock that does not jump.
    """

    item: Any
    tries: int = 0
    data: Any = None
    in_flight: int = 0
    ending: Ending | None = None
    worker: asyncio.Task[Any] | None = None
    start_time: float = dataclasses.field(default_factory=time.time)
    began_s: float = dataclasses.field(default_factory=time.monotonic)

    def __getitem__(self, name: str) -> Any:
        """Return item, worker or start_time, as the framework's `running_items` do."""
        return getattr(self, name)

    @classmethod
    def of(cls, item: Any) -> Group:
        """Return the group that the running hook works on.

        A new one of the item, where a hook is called from elsewhere.
        """
        current = _current.get()
        return (current and current()) or cls(item)

    @contextlib.contextmanager
    def in_hooks(self) -> Iterator[None]:
        """Be the group that `of` finds, in the hooks that are called inside."""
        token = _current.set(weakref.ref(self))
        try:
            yield
        finally:
            _current.reset(token)

    def keep(self, data: Any) -> None:
        """Take over what a hook returned; its rollouts are in flight from now on."""
        self.data, self.in_flight = data, rollouts_in(data)

    def again(self) -> Group:
        """Return a new group of the same item, as often tried."""
        return Group(self.item, self.tries)


_current: ContextVar[weakref.ref[Group] | None]
# Weak: a connection that is opened in a hook keeps the hook's context as long as it
# lives, and a group has much data.
_current = ContextVar("current_group", default=None)
