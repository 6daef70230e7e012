"""Make what train_small.py needs, once, and start it.

    make train-small
    make train-small ARGS="--tasks chain_sum --server vllm"

Its options are those of train_small.py. PyTorch and transformers go into an environment
of their own (.venv-vllm), and vLLM with them where `--server vllm` asks for it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from examples.train_small.options import read_options
from examples.vllm_on_cpu import VLLM, VllmError, make_python
from rg_env import ending


def main() -> NoReturn:
    """Make the environment; then this process becomes the training."""
    ending.stop_at_interrupt()
    argv = sys.argv[1:]
    is_vllm = read_options(argv).server == "vllm"  # or it ends here, with a sentence
    needs = [HERE / "requirements.txt"] + [VLLM] * is_vllm
    try:
        python = make_python(*needs)
    except VllmError as error:
        sys.exit(f"error: {error}")
    program = [str(python), str(HERE / "train_small.py")]
    program += ["--plugin-python", sys.executable, *argv]
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
