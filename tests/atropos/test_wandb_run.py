"""The table of rollouts for W&B."""

import pytest

from tests.support.parts import RIGHT, WRONG, build_env, rollout


@pytest.mark.slow
async def test_the_table_has_the_columns_of_the_original_and_the_newest_groups():
    env = build_env(num_rollouts_per_group_for_logging=9, num_rollouts_to_keep=2)
    env.config.use_wandb = True
    scored = await env.score([rollout(RIGHT), rollout(WRONG)])
    for _ in range(3):
        await env.add_rollouts_for_wandb(scored)
    table = (await env.create_rollout_table({}))["train/rollouts"]
    await env.close()
    assert table.columns == ["full_text", "score", "expected_answer", "task_name"]
    of_group = [[1.0, "4", "sums"], [0.0, "4", "sums"]]
    assert [row[1:] for row in table.data] == of_group * 2
