"""GRPO on one GPU: MODEL names a model, options are those of TRL's GRPOConfig."""

import os

from transformers import AutoTokenizer, HfArgumentParser
from trl import GRPOConfig, GRPOTrainer

from rg_env import Tasks
from rg_env.adapters.trl import GRPOTasks

model = os.environ.get("MODEL", "Qwen/Qwen3-0.6B")
stream = Tasks("gcd", "*_sorting", levels="curriculum", target_accuracy=0.5)
tasks = GRPOTasks(stream, AutoTokenizer.from_pretrained(model))
parser = HfArgumentParser(GRPOConfig)
sizes = {"gradient_accumulation_steps": 8, "max_completion_length": 2048}
parser.set_defaults(use_vllm=True, max_steps=500, **sizes, **tasks.settings)
(args,) = parser.parse_args_into_dataclasses()
trainer = GRPOTrainer(model, tasks.reward_funcs, args, tasks.train_dataset)
trainer.add_callback(tasks)
trainer.train()
