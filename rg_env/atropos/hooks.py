"""The framework's hooks that our loops call on the environment.

They are called on the object itself, so that what a subclass overrides is what runs.
"""

from __future__ import annotations

from typing import Any, Protocol

from rg_env.atropos.config import ReasoningGymEnvConfig


class GroupHooks(Protocol):
    """What takes an item all its way."""

    async def collect_trajectories(self, item: Any) -> tuple[Any, list[Any]]:
        """Return an item's group, None without one, and items to be asked again."""

    async def postprocess_histories(self, trajectories: Any) -> Any:
        """Return what is left of a group."""

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Deliver a group."""

    async def cleanup(self) -> None:
        """Do what is due after a group."""


class RunHooks(Protocol):
    """What begins a run and feeds it."""

    config: ReasoningGymEnvConfig
    curr_step: int

    async def setup(self) -> None:
        """Get ready to make items."""

    async def get_next_item(self) -> Any:
        """Return the next item, None where there is none now."""

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log the numbers of the run."""


class ProcessHooks(RunHooks, GroupHooks, Protocol):
    """What `process` calls."""


class ServeHooks(RunHooks, Protocol):
    """What the loop of `serve` calls."""

    server: Any

    async def setup_wandb(self) -> None:
        """Start W&B where the trainer's runs are."""

    async def register_env(self) -> None:
        """Register at the API."""

    async def get_server_info(self) -> None:
        """Take over what the trainer asks of groups."""

    async def get_status(self) -> None:
        """Renew the API's status of this environment."""

    async def env_step_checks(self) -> None:
        """Evaluate, save and log where the trainer's step asks for it."""

    async def add_train_workers(self) -> None:
        """Start the groups that are due."""
