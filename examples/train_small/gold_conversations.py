"""Write conversations that end with the right answer, for a warm start.

    python gold_conversations.py SETTINGS COUNT OUTPUT

The items are those that the environment would ask in training with these settings (a
YAML file with the section `env`), so none is an evaluation item. A line of OUTPUT holds
`messages` and `task`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reasoning_gym_environment import ReasoningGymEnv
from rg_env import ending

ANSWER = "<answer>{}</answer>"
WAIT_S = 0.01


async def write(settings: Mapping[str, Any], count: int, output: TextIO) -> None:
    """Write `count` conversations."""
    config, servers = ReasoningGymEnv.config_init()
    env = ReasoningGymEnv(config.model_copy(update=settings), servers, slurm=False)
    try:
        await env.setup()
        while count:
            item = await env.get_next_item()
            if item is None:
                await asyncio.sleep(WAIT_S)
                continue
            messages, entry, _ = item
            gold = {"role": "assistant", "content": ANSWER.format(entry["answer"])}
            task = entry["metadata"]["source_dataset"]
            row = {"task": task, "messages": [*messages, gold]}
            output.write(json.dumps(row) + "\n")
            count -= 1
    finally:
        await env.close()


if __name__ == "__main__":
    given = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))["env"]
    with Path(sys.argv[3]).open("w", encoding="utf-8") as lines:
        ending.run(write(given, int(sys.argv[2]), lines))
