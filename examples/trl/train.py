"""TRL trains a tiny model on a task, on a CPU: a supervised start, then GRPO.

    python examples/trl/train.py
    torchrun --nproc_per_node 2 examples/trl/train.py

The model has less than a million parameters and is made from scratch. It needs what
requirements.txt beside this file lists, and neither a GPU nor a download.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from accelerate import PartialState
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from examples.small_llama import make_model
from rg_env import Tasks
from rg_env.adapters.trl import GRPOTasks

TASK = "spell_backward"
PARAMS = {"min_word_len": 3, "max_word_len": 3}
LONGEST = 32
"""Tokens of a completion."""


def stream(seed: int) -> Tasks:
    """Return items of the task; other seeds have other ones."""
    given = {TASK: PARAMS}
    return Tasks(TASK, params=given, seed=seed, system_prompt="Answer.")


def conversations(count: int) -> list[dict[str, Any]]:
    """Return items with their gold answers, as supervised training takes them."""
    return [
        {
            "prompt": item.messages,
            "completion": [
                {"role": "assistant", "content": f"<answer>{item.gold}</answer>"}
            ],
        }
        for item in islice(stream(seed=1), count)
    ]


def main() -> None:
    """Train, and print the mean reward of the first and of the last steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("data/trl"))
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--sft_steps", type=int, default=600)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    rows = conversations(options.conversations)
    # Without `cpu`, each process is the only one until a trainer is made.
    state = PartialState(cpu=True)
    with state.main_process_first():
        if not (options.work / "model").is_dir():
            whole = [row["prompt"] + row["completion"] for row in rows]
            make_model(options.work / "model", whole)
    tokenizer = AutoTokenizer.from_pretrained(options.work / "model")
    model = AutoModelForCausalLM.from_pretrained(options.work / "model")
    both = {"report_to": [], "use_cpu": True, "save_strategy": "no", "bf16": False}
    processes = state.num_processes
    SFTTrainer(
        model,
        args=SFTConfig(
            output_dir=str(options.work / "sft"),
            max_steps=options.sft_steps,
            learning_rate=1e-3,
            per_device_train_batch_size=32 // processes,
            logging_steps=50,
            **both,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    ).train()
    tasks = GRPOTasks(stream(seed=2), tokenizer)
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(
            output_dir=str(options.work / "grpo"),
            max_steps=options.steps,
            learning_rate=1e-3,
            num_generations=8,
            per_device_train_batch_size=64 // processes,
            max_completion_length=LONGEST,
            logging_steps=1,
            **both,
            **tasks.settings,
        ),
        train_dataset=tasks.train_dataset,
        reward_funcs=tasks.reward_funcs,
        callbacks=tasks.callbacks,
        processing_class=tokenizer,
    )
    trainer.train()
    rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    if state.is_main_process:
        part = max(1, len(rewards) // 5)
        means = [statistics.fmean(some) for some in (rewards[:part], rewards[-part:])]
        print("mean reward: {:.3f} at the beginning, {:.3f} at the end".format(*means))


if __name__ == "__main__":
    main()
