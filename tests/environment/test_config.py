"""Settings are checked when they are set, by whichever way."""

import pytest
from parts import (
    env_config,
)

from reasoning_gym_environment import (
    ReasoningGymEnvConfig,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rollout_save_score_threshold", 1.1),
        ("group_size", 0),
        ("seed", -1),
        ("inference_weight", -1),
        ("inference_weight", float("nan")),
        ("complexity_mode", "hard"),
        ("min_batch_allocation", 2),
        ("temperature", -0.1),
        ("no_such_field", 1),
    ],
)
def test_a_value_out_of_range_is_refused_when_it_is_set(field, value):
    with pytest.raises(ValueError, match=field):
        ReasoningGymEnvConfig(**{field: value})


def test_a_value_out_of_range_is_refused_by_assignment_too():
    config = env_config()
    with pytest.raises(ValueError, match="group_size"):
        config.group_size = 0
