"""Calls functions on the nodes of a Ray cluster.

Ray schedules the calls. If a node is lost, its calls run again on other nodes. The
nodes need reasoning-gym and msgspec; this package is sent to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from rg_env.errors import RunError, SettingError, shown

T = TypeVar("T")

# A call fails when more nodes than these were lost during it.
MAX_LOST_NODES = 10

# Calls in flight for each core, so that none is idle.
CALLS_PER_CORE = 4


class Cluster:
    """A connection to a cluster.

    Args:
        address: The address of the head, such as `10.0.0.1:6379`; "auto" for the
            cluster that this machine belongs to, "local" for a new one of this machine.

    Attributes:
        max_calls: The number of calls that keep all nodes busy.
        samples_per_call: The number of samples in a call of `rescore`.

    Raises:
        RunError: There is no cluster.
    """

    samples_per_call = 100

    def __init__(self, address: str) -> None:
        # Sent to the nodes, so that none runs another version of this package.
        package = str(Path(__file__).parents[1])
        try:
            ray.init(
                address,
                logging_level="warning",
                log_to_driver=False,
                runtime_env={"py_modules": [package]},
            )
        except (RayError, OSError, RuntimeError, ValueError) as error:
            raise RunError(f"no Ray cluster at {shown(address)}: {error}") from error
        cores = int(ray.cluster_resources().get("CPU", 1))
        self.max_calls = cores * CALLS_PER_CORE
        self.close = ray.shutdown

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call, which uses one core of some node.

        The function must be in a module of this package. Its arguments and its result
        are pickled.

        Raises:
            SettingError: The node has another version of reasoning-gym.
            RunError: Too many nodes were lost, or the cluster was.
            Exception: The function raised it.
        """
        remote = ray.remote(num_cpus=1, max_retries=MAX_LOST_NODES)(_run_on_node)
        version = metadata.version("reasoning-gym")
        result: T
        try:
            result, node_version = await remote.remote(function, arguments)
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            raise RunError(f"a call was lost with its node: {error}") from error
        if node_version != version:
            raise SettingError(
                f"--ray: a node has reasoning-gym {node_version},"
                f" this machine {version}"
            )
        return result


def _run_on_node(function: Callable[..., T], arguments: Sequence[Any]) -> tuple[T, str]:
    """Return the result of a call, and the version of reasoning-gym on the node."""
    return function(*arguments), metadata.version("reasoning-gym")
