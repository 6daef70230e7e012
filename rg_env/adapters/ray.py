"""Calls of a function over the nodes of a Ray cluster.

Ray places the calls. One whose node is lost is called again on another node. The nodes
need reasoning-gym and msgspec; this package is sent to them.
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

# Under one call, before it is given up.
MOST_LOST_NODES = 10


class Cluster:
    """A connection to a cluster.

    Args:
        address: Of its head, such as `10.0.0.1:6379`; "auto" for the cluster that this
            machine belongs to, "local" for one on this machine alone.

    Attributes:
        cpus: Of all nodes, at the start.

    Raises:
        RunError: There is no cluster.
    """

    def __init__(self, address: str) -> None:
        # Code is sent as a module, so that nodes never run another version of it.
        package = str(Path(__file__).parents[1])
        how = {"runtime_env": {"py_modules": [package]}, "log_to_driver": False}
        try:
            ray.init(address, logging_level="warning", **how)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            raise RunError(f"no Ray cluster at {shown(address)}: {error}") from error
        self.cpus = int(ray.cluster_resources().get("CPU", 1))
        self.close = ray.shutdown

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call on some node, which takes one of its cores.

        The function is of a module of this package; arguments and result pickle.

        Raises:
            SettingError: The node has another reasoning-gym.
            RunError: Too many nodes were lost, or the cluster is.
            Exception: What the function has raised.
        """
        far = ray.remote(num_cpus=1, max_retries=MOST_LOST_NODES)(_called)
        here = metadata.version("reasoning-gym")
        result: T
        try:
            result, release = await far.remote(function, arguments)
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            raise RunError(f"a call was lost with its node: {error}") from error
        if release != here:
            text = f"a node has reasoning-gym {release}, this machine {here}"
            raise SettingError(f"--ray: {text}")
        return result


def _called(function: Callable[..., T], arguments: Sequence[Any]) -> tuple[T, str]:
    """Return the result of a call, and the version of the library it was made with."""
    return function(*arguments), metadata.version("reasoning-gym")
