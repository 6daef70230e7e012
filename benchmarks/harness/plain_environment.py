"""The null environment on Atropos' own host code: the limit without our mends.

    python benchmarks/harness/plain_environment.py serve --env.x ...

As `null_environment.py`, but derived from Atropos' `BaseEnv` directly.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from atroposlib.envs.base import BaseEnv, BaseEnvConfig, ScoredDataGroup

from rg_env.answers.item_messages import SYSTEM_PROMPT, build_messages
from rg_env.atropos import defaults

QUESTION = f"What is {' + '.join(['2'] * 132)}?"
"""The question of `null_environment.py`."""

ENTRY = {
    "question": QUESTION,
    "answer": "264",
    "metadata": {"source_dataset": "null"},
}


class PlainNullEnv(BaseEnv):  # type: ignore[misc]
    """One constant item, constant alternating scores, nothing of ours."""

    name = "plain"
    env_config_cls = BaseEnvConfig

    @classmethod
    def config_init(cls) -> tuple[BaseEnvConfig, Any]:
        """Return what our own command line starts from."""
        ours = defaults.env_config().model_dump()
        own = {name: ours[name] for name in BaseEnvConfig.model_fields}
        return BaseEnvConfig(**own), defaults.servers()

    async def setup(self) -> None:
        """Start nothing."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Evaluate nothing."""

    async def get_next_item(self) -> Any:
        """Return the one item."""
        return build_messages(QUESTION, SYSTEM_PROMPT), ENTRY, None

    async def collect_trajectories(
        self, item: Any
    ) -> tuple[ScoredDataGroup, list[Any]]:
        """Ask for a group of rollouts; their scores are 1, 0, 1, 0, ..."""
        size = self.config.group_size
        async with self.server.managed_server(tokenizer=self.tokenizer) as managed:
            await managed.chat_completion(
                messages=[dict(message) for message in item[0]],
                n=size,
                max_tokens=self.config.max_token_length - 1024,
                temperature=1.0,
            )
            nodes = managed.get_state()["nodes"]
        group: ScoredDataGroup = {
            "tokens": [node.tokens for node in nodes],
            "masks": [node.masked_tokens for node in nodes],
            "scores": [float(i % 2 == 0) for i in range(size)],
            "overrides": [{} for _ in nodes],
            "inference_logprobs": [node.logprobs for node in nodes],
        }
        return group, []


if __name__ == "__main__":
    PlainNullEnv.cli()
