"""All limits on retries and waiting, and the function that retries.

The limits are in one place because they depend on each other: what one layer gives up,
the next layer tries again, and an item that all layers give up is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def tried_again(
    call: Callable[[], Awaitable[T]],
    may_repeat: Callable[[Exception], bool],
    note: Callable[[Exception], object],
    *,
    tries: int | None = None,
    first_pause_s: float = 0.0,
    longest_pause_s: float = 0.0,
) -> T:
    """Return what a call returns, repeated after growing pauses as long as it fails.

    Args:
        call: Makes one try.
        may_repeat: Says whether another try can help after an exception.
        note: Told of each exception after which another try is made.
        tries: At most so many; None for no bound.
        first_pause_s: The first pause, give or take a half; each next one is twice it.
        longest_pause_s: The longest, give or take a half.

    Raises:
        Exception: What the last try raised.
    """
    pause_s = first_pause_s
    for number in itertools.count(1):
        try:
            return await call()
        except Exception as error:
            if number == tries or not may_repeat(error):
                raise
            note(error)
        # With jitter, so that those that wait do not all try at the same moment.
        await asyncio.sleep(min(pause_s, longest_pause_s) * random.uniform(0.5, 1.5))
        pause_s *= 2
    raise AssertionError("there is no last number")


# -- a request to an inference server --------------------------------------------------

COMPLETION_TRIES = 3
"""Requests for one group, each for the choices that are missing, before it failed."""

COMPLETION_FIRST_PAUSE_S = 0.5
COMPLETION_LONGEST_PAUSE_S = 10.0

LONGEST_WAIT_FOR_SERVER_S = 60.0
"""For a server to query. A group that waited longer could be cancelled, and its item be
lost after a few times; one that failed because none is there is free to come back."""

LOOK_FOR_SERVER_S = (0.05, 0.2)
"""By chance in between, so that all that wait do not query at one moment."""

# -- the probe of a server, before it has given a completion ---------------------------

PROBE_WITHIN_S = 120.0
"""For a few short completions, which wait behind what the server has begun."""

PROBE_SILENT_AFTER_S = 5.0
"""Without a word to a request before that is said."""

REFUSALS_BEFORE_FIRST_ANSWER = 6
"""Requests refused, or answered with something else, without a reason that we know
before the start ends: more than one item's tries, as an item may be the reason."""

# -- an inference server that fails, and is left out for a while -----------------------

CIRCUIT_FAILURES_IN_A_ROW = 3
CIRCUIT_FIRST_PAUSE_S = 1.0
CIRCUIT_LONGEST_PAUSE_S = 10.0
"""Between two probes of a server that is left out, or is not there yet."""

BUSY_REST_S = 1.0
"""A busy server that does not say for how long rests for so long."""
BUSY_LONGEST_REST_S = 60.0

HEALTH_EVERY_S = 1.0
HEALTH_MISSES_IN_A_ROW = 3
"""Health checks without an answer after which what hangs at the server is given up."""

# -- all inference servers together: an outage -----------------------------------------

OUTAGE_AFTER_S = 2.0
"""Nothing but failures for so long is an outage."""

OUTAGE_LOOK_EVERY_S = 1.0
OUTAGE_FIRST_PAUSE_S = 0.5
OUTAGE_LONGEST_PAUSE_S = 30.0

OUTAGE_SAY_AGAIN_S = 60.0
"""Between two lines about one outage."""

# -- an item ---------------------------------------------------------------------------

SCORING_TRIES = 2
"""Scorings of one group by a broken worker pool before the group is lost."""

ITEM_TRIES = 5
"""Groups of one item that may be lost before the item is."""

EVALUATION_TRIES = 3
"""Failures of one evaluation item before it counts as failed."""

LONG_PROMPTS_IN_A_ROW = 200
"""Items whose prompt leaves no room before the run ends."""

UNSCORED_TRIES = 4
UNSCORED_PAUSE_S = 0.5
"""Scorings of a completion for a trainer that has no completion without a score, and
the first pause between them; each next one is so much longer."""

REPEATS_IN_A_ROW = 1000
"""Draws that give a question again before `export` writes fewer items."""

FRUITLESS_GROUPS_IN_A_ROW = 200
"""Groups in a row that give no row before `process` ends with a failure."""

ERROR_PAUSE_S = 1.0
"""After an error of ours, so that a fault that repeats does not spin."""

# -- the Atropos API -------------------------------------------------------------------

API_REQUEST_TIMEOUT_S = 60.0
API_FIRST_PAUSE_S = 0.5
API_LONGEST_PAUSE_S = 10.0

API_POLL_S = 1.0
"""Between two questions to an API that waits for its trainer."""

LOOKS_AT_ANOTHER_PROGRAM = 3
"""Front pages in a row that are not the API's before the start ends."""

FORGOTTEN_AFTER_TRIES = 3
"""Status requests refused in a row before the API counts as having forgotten us."""

SEND_TRIES_IF_REFUSED = 3
"""A group that was spoiled on its way, or met a proxy, is accepted the next time."""

SEND_GIVE_UP_AFTER_S = 120.0
"""For a group at which an API fails that answers everything else."""

LOOK_EVERY_S = 15.0
"""Between two looks of `serve` at who holds up a batch."""

LOOKS = 4
"""In a row at which an environment had no group before its registration is ended; see
`registrations`, whose promise to those that live needs this many."""

# -- W&B -------------------------------------------------------------------------------

WANDB_STARTS_WITHIN_S = 30.0
"""Where there is no network; W&B itself would try for a minute and a half."""

# -- the end ---------------------------------------------------------------------------

IN_FLIGHT_GRACE_S = 2.0
"""What groups in flight get at the end to be answered, scored and sent."""

CLOSE_GRACE_S = 2.0
"""What a cancelled task, or the API, gets to end."""

END_WITHIN_S = 9.0
"""From a signal to the end of the process, whatever hangs; `docker stop` waits 10 s."""

# -- the programs of `launch` ----------------------------------------------------------

LAUNCH_ASK_EVERY_S = 0.5
LAUNCH_ASK_TIMEOUT_S = 5.0
"""The timeout of the request that finds out whether a program is ready."""

RESTART_FIRST_PAUSE_S = 1.0
"""Before a program that has died is started again; doubled each time."""

MOST_RESTARTS, MOST_FAILED_STARTS, RESTARTS_WITHIN_S = 5, 1, 600.0
"""A program that dies more often in this time ends the run; the second is of a server
that ends by itself before it was ever ready."""

PROGRAM_ENDS_WITHIN_S = 30.0
"""What a program gets to end in, before it is killed; the trainer gets all its time."""
