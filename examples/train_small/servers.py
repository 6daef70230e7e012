"""Inference servers that a trainer gives its new weights.

    VllmServer     a stock `vllm serve` of this machine, without a GPU
    SmallServer    small_server.py, where vLLM cannot be had
    OtherServer    a vLLM that somebody else has started, wherever it is

All read their weights from a folder. New ones are put there file by file, each whole,
and the server is told to read them: `reload_weights` in vLLM's development mode
(`VLLM_SERVER_DEV_MODE=1`). vLLM is paused for it, and what it has begun is finished:
else completions would be of two versions, and prompts that are kept in its cache of the
old one, which it does not empty while there are requests (`{"success": false}`).

A model whose embeddings are tied cannot be trained with vLLM 0.32.0 on CPUs: it goes on
with the first output embedding. So they are untied (model.py), which costs memory.

What changes on a GPU (`--device cuda`, and a vLLM of your own, named by its URL):

    start      VLLM_SERVER_DEV_MODE=1 vllm serve FOLDER --gpu-memory-utilization 0.4
               with the folder that the trainer writes weights into (`serving` in its
               `--work`), which both have to see: one machine, or a shared file system.
    memory     AdamW in float32 takes 16 bytes a parameter (weight, gradient, two
               moments), a reference for `--kl` 4 more, vLLM in bfloat16 2. The rest of
               vLLM's share is for keys and values: 128 kB a token for a Llama of 8
               billion parameters. Where both are on one GPU, the share is what the
               trainer leaves.
    batch      A forward pass keeps what its gradient needs, and logits of tokens x
               vocabulary x 4 bytes. Where memory ends, halve `tokens_at_once` in
               torch_policy.py: the step stays the same.
    precision  vLLM in bfloat16 and a trainer in float32 differ in their
               log-probabilities, which the ratio's statistics show. That nothing else
               differs is seen with `--dtype float32`.
    transfer   A folder goes at the speed of its disk: 16 GB for 8 billion parameters in
               bfloat16, twice that in float32. vLLM's own transfer goes from GPU to GPU
               (`--weight-transfer-config '{"backend": "nccl"}'`, or `ipc` on one GPU):
               `/init_weight_transfer_engine` once, and then, between `/pause` and
               `/resume`, `/start_weight_update`, `/update_weights` and
               `/finish_weight_update`. It would take the place of `save_whole` and of
               `reload_weights` below; the rest stays.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples.train_small.policy import MODEL_NAME, Policy, save_whole
from examples.vllm_on_cpu import (
    LOOK_EVERY_S,
    START_WITHIN_S,
    Vllm,
    free_port,
    is_well,
)
from rg_env.errors import RunFailed
from rg_env.simulation.child_process import ChildProgram

logger = logging.getLogger("rg_env.train_small")

SMALL_SERVER = "examples.train_small.small_server"

REPLY_WITHIN_S = 600
"""What was begun is finished before new weights are taken."""

RESET_TRIES = 20
RESET_PAUSE_S = 0.1


class ServerFailed(RunFailed):
    """An inference server did not do what it was told."""


class InferenceServer:
    """What all servers have; how they are waited for is their own.

    Args:
        url: Its root, without `/v1`.
        folder: It reads its weights from here.

    Attributes:
        url: Without a slash at its end.
        model_name: In requests.
    """

    model_name = MODEL_NAME

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self._folder = folder

    def start(self) -> None:
        """Begin to start it; nothing for one that runs."""

    def ready(self) -> None:
        """Wait until it answers.

        Raises:
            RunFailed: It does not.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Raise `RunFailed` if it has ended; somebody else's is not looked at."""

    def kill(self) -> None:
        """End it and what it has started; nothing for one that is somebody else's."""

    def hand_over(self, policy: Policy) -> float:
        """Have it go on with a policy's weights; completions are of one version each.

        Args:
            policy: Of the same form as the weights that the server has.

        Returns:
            How long it took, in seconds.

        Raises:
            ServerFailed: It has not taken them, and may have the old ones or none.
        """
        began = time.monotonic()
        save_whole(policy, self._folder)
        with self._paused():
            self._reload()
        return time.monotonic() - began

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """Have it finish what it has begun, and begin nothing meanwhile."""
        yield

    def _reload(self) -> None:
        self._post("/collective_rpc", {"method": "reload_weights"})
        for _ in range(RESET_TRIES):
            if self._post("/reset_prefix_cache").get("success"):
                return
            time.sleep(RESET_PAUSE_S)
        raise ServerFailed(
            f"{self.url} has new weights and keeps prompts of the old ones in its cache"
        )

    def _post(self, path: str, body: Any = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - of HTTP, as the user named it
            self.url + path,
            json.dumps({} if body is None else body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=REPLY_WITHIN_S
            ) as reply:
                answer: dict[str, Any] = json.load(reply)
                return answer
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            advice = "; start it with VLLM_SERVER_DEV_MODE=1" * (error.code == 404)
            raise ServerFailed(
                f"{self.url}{path} answers {error.code} {said[:300]}{advice}"
            ) from error
        except (OSError, ValueError) as error:
            raise ServerFailed(f"{self.url}{path} fails: {error}") from error


class _PausedServer(InferenceServer):
    """A vLLM: it would go on with new weights in the middle of a completion."""

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        try:
            self._post("/pause?mode=wait")
            yield
        finally:
            self._post("/resume")


class OtherServer(_PausedServer):
    """A vLLM that somebody else starts, on the folder that is told; see above."""

    def ready(self) -> None:
        """Wait until it answers, and look what its model is called.

        Raises:
            ServerFailed: It does not answer, or has not the folder's model.
        """
        if not is_well(self.url):
            logger.info(
                "waiting for %s; start it with VLLM_SERVER_DEV_MODE=1 vllm serve %s",
                *(self.url, self._folder),
            )
        deadline = time.monotonic() + START_WITHIN_S
        while not is_well(self.url):
            if time.monotonic() > deadline:
                raise ServerFailed(f"no inference server answers at {self.url}/health")
            time.sleep(LOOK_EVERY_S)
        with urllib.request.urlopen(  # noqa: S310 - of HTTP, as the user named it
            f"{self.url}/v1/models", timeout=REPLY_WITHIN_S
        ) as reply:
            (model,) = json.load(reply)["data"][:1]
        self.model_name = model["id"]
        root = Path(model.get("root") or self._folder)
        if root.exists() and root.resolve() != self._folder.resolve():
            raise ServerFailed(
                f"{self.url} serves {root}, where new weights never come; start it with"
                f" VLLM_SERVER_DEV_MODE=1 vllm serve {self._folder}"
            )
        if not root.exists():  # another machine's name for it, or of the hub
            logger.warning("%s serves %s: is that %s?", self.url, root, self._folder)


class VllmServer(_PausedServer):
    """A stock vLLM of this machine.

    Args:
        python: Of an environment that has it.
        folder: Of the model and its tokenizer.
        log: What it says is appended to this file.
    """

    def __init__(self, python: Path, folder: Path, log: Path) -> None:
        variables = {"VLLM_SERVER_DEV_MODE": "1"}
        self._vllm = Vllm(python, folder, MODEL_NAME, log, variables=variables)
        super().__init__(self._vllm.url, folder)

    def start(self) -> None:
        """Begin to start it."""
        logger.info("starting vLLM")
        self._vllm.start()

    def ready(self) -> None:
        """Wait until it answers, which takes 20 to 60 s; see `Vllm.ready`."""
        self._vllm.ready()

    def check(self) -> None:
        """Raise `VllmFailed` if it has ended."""
        self._vllm.check()

    def kill(self) -> None:
        """Kill it and what it has started."""
        self._vllm.kill()


class SmallServer(InferenceServer):
    """The small server, in a process that does not outlive us.

    Args:
        folder: Of the model and its tokenizer.
        log: What it says; a file that is written anew at each start.
        argv: Further options of small_server.py.
        module: What is run: small_server.py, or one that calls its `main`.
    """

    def __init__(
        self, folder: Path, log: Path, *argv: str, module: str = SMALL_SERVER
    ) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}", folder)
        self._log, self._module = log, module
        self._argv = (str(folder), "--port", str(port), *argv)
        self._program: ChildProgram | None = None

    def start(self) -> None:
        """Begin to start it."""
        logger.info("starting the small inference server")
        self._program = ChildProgram(
            self._module,
            *self._argv,
            log_path=self._log,
            # The other core is the trainer's.
            variables={"OMP_NUM_THREADS": "1"},
        )

    def ready(self) -> None:
        """Wait until it answers, which takes some seconds.

        Raises:
            RunFailed: It ended, or does not answer.
        """
        if self._program is None:
            raise ServerFailed("the small server was not started")
        self._program.wait_for_url()

    def check(self) -> None:
        """Raise `ChildError` if it has ended."""
        if self._program is not None:
            self._program.check()

    def kill(self) -> None:
        """End it."""
        if self._program is not None:
            self._program.stop()
            self._program = None


def make_server(name: str, folder: Path, log: Path, device: str) -> InferenceServer:
    """Return a server, which does not run yet.

    Args:
        name: `vllm`, `small`, or a URL.
        folder: It reads its weights from here.
        log: What it says, where it is ours.
        device: Of the small server.
    """
    if name == "vllm":
        return VllmServer(Path(sys.executable), folder, log)
    if name == "small":
        return SmallServer(folder, log, "--device", device)
    return OtherServer(name, folder)
