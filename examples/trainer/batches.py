"""Take batches from the Atropos API, as a trainer does.

    source = BatchSource(url, shape)
    groups = source.next_batch(step)

Needs no torch: rows of groups come as numpy arrays.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from examples.trainer.grpo import Group
from examples.trainer.policy import TrainingError

logger = logging.getLogger(__name__)
# Its lines at INFO have the whole URL, of which the path may be a secret of `run-api`.
logging.getLogger("httpx").setLevel(logging.WARNING)

MASKED = -100
"""What stands in a mask where a token is not trained on."""

FIRST_WAIT_S = 0.02
MAX_WAIT_S = 0.5
REQUEST_TIMEOUT_S = 60.0
REMIND_EVERY_S = 60.0


@dataclass(frozen=True)
class BatchShape:
    """What a trainer asks for.

    Attributes:
        group_size: Rollouts of a group, at least 2.
        groups: Groups of a batch.
        max_token_len: A row is shorter than this, in tokens.
        checkpoint_dir: The environments keep their checkpoints there, too.
        checkpoint_interval: Steps between two of theirs; 0 for none.
    """

    group_size: int
    groups: int
    max_token_len: int
    checkpoint_dir: str = ""
    checkpoint_interval: int = 0


def read_group(sent: Mapping[str, Any]) -> Group:
    """Read a group as the API sends it.

    Raises:
        TrainingError: It cannot be trained on; the text says why.
    """
    rows = sent["tokens"]
    masks = sent["masks"]
    logprobs = sent.get("inference_logprobs")
    if logprobs is None:
        raise TrainingError("a group came without inference_logprobs")
    scores = np.asarray(sent["scores"], np.float64)
    overrides = sent.get("overrides") or [{}] * len(rows)
    temperature = (sent.get("generation_params") or {}).get("temperature", 1.0)
    lengths = [[len(row) for row in part] for part in (rows, masks, logprobs)]
    if not len(scores) == len(overrides) == len(rows) or lengths != lengths[:1] * 3:
        raise TrainingError("a group's tokens, masks, scores, ... differ in length")
    if not np.isfinite(scores).all():
        raise TrainingError("a score of a group is not a finite number")
    if not temperature > 0:
        raise TrainingError(f"a group was sampled with temperature {temperature}")
    trained = [np.asarray(row) != MASKED for row in masks]
    for mask in trained:
        mask[:1] = False  # nothing is before the first token
    return Group(
        tokens=rows,
        trained=trained,
        logprobs=[np.asarray(row, np.float32) for row in logprobs],
        scores=scores,
        has_zero_advantage=np.array(
            [bool((o or {}).get("set_advantage_to_zero")) for o in overrides]
        ),
        temperature=float(temperature),
    )


class BatchSource:
    """The Atropos API at a URL. It may come later than the trainer, and start anew.

    Args:
        url: Without a slash at its end.
        shape: Of the batches.
        check: Called while it waits; raises what ends the waiting.
    """

    def __init__(
        self, url: str, shape: BatchShape, *, check: Callable[[], None] = lambda: None
    ) -> None:
        self._url = url
        self._shape = shape
        self.check = check
        self._name = str(httpx.URL(url).copy_with(path="/"))  # without a secret
        self._is_registered = False

    def next_batch(self, step: int) -> list[Group]:
        """Wait until there is a batch, and return its groups.

        Args:
            step: Steps done; what environments that register now continue from.

        Raises:
            TrainingError: Another trainer has the API, or a group cannot be trained
                on.
        """
        wait_s = FIRST_WAIT_S
        began = time.monotonic()
        remind_at = began + REMIND_EVERY_S
        while True:
            if not self._is_registered:
                self._register(step)
            answer = self._ask("/batch")
            if sent := answer.get("batch"):
                return [read_group(group) for group in sent]
            if answer.get("status") == "error":
                logger.warning("the Atropos API was started anew")
                self._is_registered = False
            elif time.monotonic() > remind_at:
                remind_at += REMIND_EVERY_S
                logger.warning(
                    "no batch for %.0f s: see what serve says; groups of equal rewards,"
                    " which teach nothing, are not sent",
                    time.monotonic() - began,
                )
            time.sleep(wait_s)
            wait_s = min(MAX_WAIT_S, wait_s * 1.5)

    def _register(self, step: int) -> None:
        """Tell the API what a batch is, before any environment may send.

        The first trainer wins, and a later one is answered as if it had. Only `/info`
        tells.
        """
        shape = self._shape
        wanted = {
            "batch_size": shape.group_size * shape.groups,
            "max_token_len": shape.max_token_len,
        }
        told = {
            "wandb_group": "trainer",
            "wandb_project": "trainer",
            "checkpoint_dir": shape.checkpoint_dir,
            "save_checkpoint_interval": shape.checkpoint_interval,
            "starting_step": step,
            "num_steps": -1,
        }
        self._ask("/register", wanted | told)
        found = self._ask("/info")
        if found != wanted:
            raise TrainingError(
                f"the Atropos API at {self._name} holds {found} instead of {wanted}, of"
                " another trainer or another start of this one; start it anew"
            )
        self._is_registered = True

    def _ask(
        self, path: str, values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Get a page, or post values to it, until it answers."""
        method = "GET" if values is None else "POST"
        remind_at = 0.0
        while True:
            self.check()
            try:
                reply = httpx.request(
                    method, self._url + path, json=values, timeout=REQUEST_TIMEOUT_S
                )
                if reply.is_server_error:  # it was reset, and knows no trainer
                    return {"status": "error"}
                if reply.is_client_error:
                    raise TrainingError(
                        f"{self._name} is not the Atropos API: {method} {path} has"
                        f" status {reply.status_code} {reply.text[:200]}"
                    )
                answer: dict[str, Any] = reply.json()
            except (httpx.TransportError, ValueError) as error:
                if time.monotonic() > remind_at:
                    remind_at = time.monotonic() + REMIND_EVERY_S
                    logger.warning(
                        "waiting for the Atropos API at %s (%s)", self._name, error
                    )
                time.sleep(MAX_WAIT_S)
            else:
                return answer
