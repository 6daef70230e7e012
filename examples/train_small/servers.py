"""The inference server of a run: a stock vLLM, or the small one in its place."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.train_small.recipe import MODEL_NAME
from examples.trainer.vllm_weights import VllmWeights
from examples.vllm_on_cpu import Vllm
from rg_env.demo.child_process import ChildProgram

SMALL_SERVER = "examples.train_small.small_server"


@dataclass(frozen=True)
class Server:
    """An inference server that runs.

    Attributes:
        weights: Are handed over to it.
        check: Raises `RunError` if it has ended.
        kill: Ends it and what it has started.
    """

    weights: VllmWeights
    check: Callable[[], None]
    kill: Callable[[], None]


def start_vllm(folder: Path, log: Path) -> Server:
    """Start a stock vLLM of this machine, which takes 20 to 60 s.

    Args:
        folder: Of the model and its tokenizer.
        log: What it says is appended to this file.
    """
    variables = {"VLLM_SERVER_DEV_MODE": "1"}
    vllm = Vllm(Path(sys.executable), folder, MODEL_NAME, log, variables=variables)
    with contextlib.ExitStack() as failed:
        failed.callback(vllm.kill)
        vllm.start()
        vllm.ready()
        failed.pop_all()
    weights = VllmWeights(vllm.url, folder, vllm.check)
    return Server(weights, vllm.check, vllm.kill)


def start_small(folder: Path, log: Path, module: str = SMALL_SERVER) -> Server:
    """Start the small server, in a process that does not outlive us.

    Args:
        folder: Of the model and its tokenizer.
        log: What it says; a file that is written anew at each start.
        module: What is run: small_server.py, or one that calls its `main`.

    Raises:
        RunError: It ended, or does not answer.
    """
    program = ChildProgram(module, str(folder), log_path=log)
    with contextlib.ExitStack() as failed:
        failed.callback(program.stop)
        url = program.wait_for_url()
        failed.pop_all()
    weights = VllmWeights(url, folder, program.check)
    return Server(weights, program.check, program.stop)


START = {"vllm": start_vllm, "small": start_small}
