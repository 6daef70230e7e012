"""How many groups may be in flight. Pure arithmetic over the API's status.

Source: atroposlib 0.4.0, BaseEnv.add_train_workers() and env_manager(); differs:
workers that are running are never cancelled because of a number computed here.

Mends B20 of docs/host_defects.md: the API's step runs ahead of the trainer, so the
content of its queue decides when the run ends.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class FlightLimits:
    """What bounds the groups in flight.

    Attributes:
        max_workers: Groups in flight that the settings allow.
        group_size: Rollouts of a group.
        batch_size: The trainer's batch, in rollouts.
        own_batch_size: The part of it that this environment may fill, in rollouts.
        max_batches_offpolicy: Batches that may wait for the trainer; 0 for no bound.
        min_batch_allocation: The least share of a batch, in [0, 1], or None.
    """

    max_workers: int
    group_size: int
    batch_size: int
    own_batch_size: int
    max_batches_offpolicy: int
    min_batch_allocation: float | None


def groups_for_own_share(limits: FlightLimits, status: Mapping[str, int]) -> int:
    """Return the groups that keep this environment's minimum share of the queue full.

    An environment with a minimum must go on while others fill the queue, because the
    API makes no batch without it.
    """
    if limits.min_batch_allocation is None:
        return 0
    pack = status["max_group_size"]
    share = limits.min_batch_allocation * limits.batch_size
    # The API allots a batch in packs of the largest group size of any environment.
    packs = math.ceil(share * limits.max_batches_offpolicy / pack)
    wanted = (packs + pack // limits.group_size) * pack
    queued = status["self_queue_size"] * limits.group_size
    return max(0, math.ceil((wanted - queued) / limits.group_size))


def groups_to_the_end(
    limits: FlightLimits, status: Mapping[str, int], total_steps: int
) -> int:
    """Return how many groups the queue lacks until it holds the end of the run.

    That is one batch past the last step, as the framework counts: a trainer that reads
    a batch ahead would wait for it for ever.
    """
    steps = total_steps + 1 - status["current_step"]
    return math.ceil(steps * limits.batch_size / limits.group_size) - int(
        status["queue_size"]
    )


def groups_to_start(
    limits: FlightLimits,
    status: Mapping[str, int],
    querying: int,
    in_flight: int,
    total_steps: int,
) -> int:
    """Return how many groups may be started now, at least 0.

    Args:
        limits: What bounds them.
        status: The API's newest status.
        querying: Groups whose completions an inference server is generating. Only these
            count against `max_workers`, so servers never wait for scoring and sending.
        in_flight: All groups that were started and not sent yet; at most twice
            `max_workers`.
        total_steps: The run's last step. No groups are started beyond it, because no
            trainer would fetch them.
    """
    room = min(limits.max_workers - querying, 2 * limits.max_workers - in_flight)
    if limits.max_batches_offpolicy > 0:
        queue_groups = (
            limits.max_batches_offpolicy * limits.own_batch_size // limits.group_size
        )
        room = min(room, queue_groups - status["queue_size"] - in_flight)
    room = max(room, groups_for_own_share(limits, status) - in_flight)
    return max(0, min(room, groups_to_the_end(limits, status, total_steps) - in_flight))
