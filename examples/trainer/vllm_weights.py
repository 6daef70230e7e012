"""Hand weights over to a stock vLLM that runs: through the folder that it serves.

    VLLM_SERVER_DEV_MODE=1 vllm serve FOLDER ...

New weights are written beside it. Then vLLM is paused, they take the place of the old
ones, each file whole, and vLLM is told to read them (`reload_weights` of its
development mode). What it has begun is finished first: else completions would be of two
versions, and its prefix cache of the old one, which it does not empty while there are
requests. The folder changes only while vLLM is paused: whoever ends the training while
it waits for vLLM finds both at the same step.

With vLLM on another machine the folder is on a file system that both see.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from examples.trainer.policy import Policy, TrainingError

logger = logging.getLogger(__name__)

POLL_S = 1.0
REMIND_EVERY_S = 60.0
TIMEOUT_S = 10.0
RELOAD_TIMEOUT_S = 600.0
"""Of a request; what takes longer is asked again, so that a server that ends while it
waits for us, as we for it, is let go."""

RESET_TRIES = 20
RESET_PAUSE_S = 0.1

AWAY = (502, 503, 504)
"""What a server, or a proxy before it, answers while it starts or ends."""


class VllmWeights:
    """The weights of a vLLM. It may come later than the trainer, and start anew.

    Args:
        url: Its root, without `/v1`.
        folder: Of the model that it serves.
        check: Called while it is waited for; raises what ends the waiting.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.url = url.rstrip("/")
        self._folder = folder
        self.check = check
        self._is_known = False
        """Whether the server that runs now was looked at."""

    def hand_over(self, policy: Policy) -> None:
        """Have vLLM go on with a policy's weights, and wait where it is not there.

        Args:
            policy: Of the same form as the model in the folder.

        Raises:
            TrainingError: It has not taken them, or cannot; the text says what to do.
        """
        new = self._folder.with_name(f"{self._folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)  # of a start that was killed
        policy.save_weights(new)
        remind_at = 0.0
        try:
            while (missed := self._take(new)) is not None:
                self.check()
                if time.monotonic() > remind_at:
                    remind_at = time.monotonic() + REMIND_EVERY_S
                    logger.warning(
                        "waiting for vLLM at %s (%s); %s",
                        *(self.url, missed, self._how_to_start()),
                    )
                time.sleep(POLL_S)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _take(self, new: Path) -> Exception | None:
        """Have vLLM take the weights in a folder, which goes as they take their place.

        Returns:
            None, or why vLLM is not there.
        """
        try:
            if not self._is_known:
                self._look()
            with self._paused():
                if new.is_dir():  # else vLLM has ended since, and is back
                    for file in sorted(new.iterdir()):  # each whole
                        file.replace(self._folder / file.name)
                    new.rmdir()
                self._reload()
        except httpx.HTTPError as error:
            self._is_known = False
            return error
        return None

    def _look(self) -> None:
        """Refuse a server to which weights cannot be handed over."""
        self._ask("/health")
        start = self._how_to_start()
        if not self._send("/is_paused").is_success:
            raise TrainingError(f"{self.url} takes no weights: {start}")
        (model,) = self._ask("/v1/models")["data"][:1]
        root = Path(model.get("root") or self._folder)
        if not root.exists():  # another machine's name for it, or one of the hub
            logger.warning("%s serves %s: is that %s?", self.url, root, self._folder)
        elif root.resolve() != self._folder.resolve():
            raise TrainingError(
                f"{self.url} serves {root}, where no new weights come: {start}"
            )
        self._is_known = True

    def _how_to_start(self) -> str:
        return f"start it with VLLM_SERVER_DEV_MODE=1 vllm serve {self._folder}"

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """Have it finish what it has begun, and begin nothing meanwhile."""
        try:
            while not self._has_paused():
                self.check()
            yield
        finally:
            self._ask("/resume", {})

    def _has_paused(self) -> bool:
        try:
            self._ask("/pause?mode=wait", {})
        except httpx.ReadTimeout:  # it still generates
            return False
        return True

    def _reload(self) -> None:
        how = {"method": "reload_weights"}
        self._ask("/collective_rpc", how, timeout_s=RELOAD_TIMEOUT_S)
        for _ in range(RESET_TRIES):
            if self._ask("/reset_prefix_cache", {}).get("success"):
                return
            time.sleep(RESET_PAUSE_S)
        raise TrainingError(
            f"{self.url} has new weights and keeps prompts of the old ones in its cache"
        )

    def _ask(
        self, path: str, body: Any = None, timeout_s: float = TIMEOUT_S
    ) -> dict[str, Any]:
        """Get a page, or post to it.

        Raises:
            httpx.HTTPError: Nothing answers, or not in time.
            TrainingError: It is an error.
        """
        reply = self._send(path, body, timeout_s)
        if reply.is_error:
            raise TrainingError(
                f"{self.url}{path} has status {reply.status_code} {reply.text[:300]}"
            )
        try:
            return reply.json() if reply.content else {}
        except ValueError as error:
            raise TrainingError(f"{self.url}{path} is no page of vLLM") from error

    def _send(
        self, path: str, body: Any = None, timeout_s: float = TIMEOUT_S
    ) -> httpx.Response:
        method = "GET" if body is None else "POST"
        url = self.url + path
        reply = httpx.request(method, url, json=body, timeout=timeout_s)
        if reply.status_code in AWAY:
            reply.raise_for_status()
        return reply
