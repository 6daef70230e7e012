"""Settings are checked when they are set, by whichever way."""

import pytest

from reasoning_gym_environment import ReasoningGymEnvConfig
from rg_env.errors import SettingError
from tests.support.parts import build_env, env_config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rollout_save_score_threshold", 1.1),
        ("group_size", 0),
        ("seed", -1),
        ("inference_weight", float("nan")),
        ("min_batch_allocation", 2),
        ("no_such_field", 1),
        ("total_steps", 0),
        ("max_token_length", 10**30),
        ("eval_max_token_length", 1),
        ("eval_level", 1.1),
        ("eval_preset", "rg-mid"),
        ("eval_system_prompt", " "),
        ("temperature", 1e9),
        ("scoring_deadline_s", float("inf")),
        ("task_weights", {"gcd": float("nan")}),
        ("tasks", []),
        ("wandb_name", "a/b"),
        ("wandb_name", "a" * 101),
        ("rollout_server_url", "localhost:8000"),
        ("data_dumps_dir", ""),
        ("task_choice", "best"),
    ],
)
def test_a_value_out_of_range_is_refused_when_it_is_set(field, value):
    with pytest.raises(ValueError, match=field):
        ReasoningGymEnvConfig(**{field: value})


def test_a_preset_has_no_level():
    with pytest.raises(ValueError, match="eval_level: cannot be combined with eval_p"):
        ReasoningGymEnvConfig(eval_preset="rg-easy", eval_level=0.5)


def test_a_published_prompt_that_the_library_lacks_is_refused():
    requests = build_env(eval_system_prompt="published")._requests
    with pytest.raises(SettingError, match="eval_system_prompt"):
        requests.take_published_prompt("")


def test_a_value_out_of_range_is_refused_by_assignment_too():
    config = env_config()
    with pytest.raises(ValueError, match="group_size"):
        config.group_size = 0
