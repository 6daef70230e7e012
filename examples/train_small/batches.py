"""Take batches from the Atropos API, as a trainer does.

    source = BatchSource(url)
    source.register(shape)
    groups = source.next_batch()

Needs no torch: rows of groups come as numpy arrays.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MASKED = -100
"""What stands in a mask where a token is not trained on."""

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.5
ONE_REQUEST_S = 60.0


class NoBatches(RuntimeError):
    """The API gives no batches; the text says what to do."""


@dataclass(frozen=True)
class Group:
    """Rollouts of one item.

    Attributes:
        tokens: G lists of token ids, prompt and completion together.
        trained: G arrays of bool, as long as the rows: which tokens were generated.
        logprobs: G arrays of float32, as long as the rows: the log-probability that
            each generated token was sampled with. Elsewhere they mean nothing.
        scores: Shape (G,), finite.
        has_zero_advantage: Shape (G,), bool: the environment says that this rollout
            teaches nothing, because it was cut off for example.
    """

    tokens: list[list[int]]
    trained: list[np.ndarray]
    logprobs: list[np.ndarray]
    scores: np.ndarray
    has_zero_advantage: np.ndarray


@dataclass(frozen=True)
class BatchShape:
    """What a trainer asks for.

    Attributes:
        group_size: Rollouts of a group, at least 2.
        groups: Groups of a batch.
        max_token_len: A row is shorter than this, in tokens.
        steps: Batches that will be asked for; what the environments are told.
        first_step: What the environments are told, who continue from it.
        checkpoint_dir: What the environments are told: they keep theirs there, too.
        checkpoint_interval: Steps between two of theirs; 0 for none.
    """

    group_size: int
    groups: int
    max_token_len: int
    steps: int
    first_step: int = 0
    checkpoint_dir: str = ""
    checkpoint_interval: int = 0


def read_group(sent: Mapping[str, Any]) -> Group:
    """Read a group as the API sends it.

    Raises:
        ValueError: It cannot be trained on; the text says why.
    """
    rows, masks, logprobs = (
        sent["tokens"],
        sent["masks"],
        sent.get("inference_logprobs"),
    )
    if logprobs is None:
        raise ValueError("the group has no inference_logprobs")
    scores = np.asarray(sent["scores"], np.float64)
    overrides = sent.get("overrides") or [{}] * len(rows)
    lengths = [len(row) for row in rows]
    if not (
        len(scores) == len(overrides) == len(rows)
        and [len(row) for row in masks] == lengths
        and [len(row) for row in logprobs] == lengths
    ):
        raise ValueError("the group's tokens, masks, scores and so on differ in length")
    if not np.isfinite(scores).all():
        raise ValueError("a score of the group is not a finite number")
    return Group(
        tokens=rows,
        trained=[np.asarray(row) != MASKED for row in masks],
        logprobs=[np.asarray(row, np.float32) for row in logprobs],
        scores=scores,
        has_zero_advantage=np.array(
            [bool((o or {}).get("set_advantage_to_zero")) for o in overrides]
        ),
    )


class BatchSource:
    """The Atropos API at a URL.

    Args:
        url: Without a slash at its end.
        check: Called while it waits; raises what ends the waiting, such as the end of
            the process that makes the groups.
        give_up_s: How long the API may fail before an error.
        longest_wait_s: How long a batch may take to come before an error.
    """

    def __init__(
        self,
        url: str,
        *,
        check: Callable[[], None] = lambda: None,
        give_up_s: float = 60.0,
        longest_wait_s: float = 600.0,
    ) -> None:
        self._url = url
        self.check = check
        self._give_up_s = give_up_s
        self._longest_wait_s = longest_wait_s

    def register(self, shape: BatchShape) -> None:
        """Tell the API what a batch is, before any environment may send.

        The first trainer wins, and a later one is answered as if it had. Only `/info`
        tells.

        Raises:
            NoBatches: Another trainer was first, or the API does not answer.
        """
        wanted = {
            "batch_size": shape.group_size * shape.groups,
            "max_token_len": shape.max_token_len,
        }
        self._ask(
            "POST",
            "/register",
            {
                **wanted,
                "wandb_group": "train_small",
                "wandb_project": "train_small",
                "checkpoint_dir": shape.checkpoint_dir,
                "save_checkpoint_interval": shape.checkpoint_interval,
                "starting_step": shape.first_step,
                "num_steps": shape.first_step + shape.steps,
            },
        )
        found = self._ask("GET", "/info")
        if found != wanted:
            raise NoBatches(
                f"the Atropos API at {self._url} holds {found} instead of {wanted},"
                " from another trainer; start it anew"
            )
        # An environment may register only after a batch was asked for once.
        self._ask("GET", "/batch")

    def next_batch(self) -> list[Group]:
        """Wait until there is a batch, and return its groups.

        Raises:
            NoBatches: The API does not answer, has forgotten this trainer, or gives
                none for too long.
            ValueError: A group cannot be trained on.
        """
        wait_s = FIRST_WAIT_S
        deadline = time.monotonic() + self._longest_wait_s
        while True:
            answer = self._ask("GET", "/batch")
            if answer.get("status") == "error":
                raise NoBatches(
                    f"the Atropos API at {self._url} was started anew and knows no"
                    " trainer; start the training again, which continues"
                )
            sent: Sequence[Mapping[str, Any]] | None = answer.get("batch")
            if sent:
                return [read_group(group) for group in sent]
            if time.monotonic() > deadline:
                raise NoBatches(
                    f"no batch came for {self._longest_wait_s:g} s; groups whose"
                    " rewards are all equal are not sent, and a policy that is sure of"
                    " itself makes no others; see the log of serve"
                )
            self.check()
            time.sleep(wait_s)
            wait_s = min(LONGEST_WAIT_S, wait_s * 1.5)

    def _ask(
        self, method: str, path: str, values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask again and again while it fails, up to `give_up_s`."""
        body = None if values is None else json.dumps(values).encode()
        request = urllib.request.Request(  # noqa: S310 - the address of the API
            f"{self._url}{path}",
            body,
            {"Content-Type": "application/json"},
            method=method,
        )
        deadline = time.monotonic() + self._give_up_s
        while True:
            self.check()
            try:
                with urllib.request.urlopen(  # noqa: S310
                    request, timeout=ONE_REQUEST_S
                ) as reply:
                    answer: dict[str, Any] = json.load(reply)
                    return answer
            except (OSError, json.JSONDecodeError) as error:
                if time.monotonic() > deadline:
                    raise NoBatches(
                        f"{method} {self._url}{path} failed for {self._give_up_s:g} s"
                        f" ({error}); see the log of the Atropos API"
                    ) from error
            time.sleep(LONGEST_WAIT_S)
