"""Types of settings: what they take, and the sentence for what they refuse."""

from __future__ import annotations

import pytest

from rg_env.errors import SettingError
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.program_settings import LaunchSettings
from rg_env.settings.setting_types import build, check_url


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:9004/v1",
        "http://[::1]:9004/v1",
        "http://node_7.cluster.:9000/a/b%20c",
    ],
)
def test_an_address_is_taken(text):
    assert check_url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "9004", "localhost:9004", "//localhost:9004/v1"),
        *("ftp://localhost:9004", " http://a:1 ", "http://a:99999", "http://[::1"),
        *("http://a/v1?x=1", "http://a/v1,http://b/v1"),
        "http://me:secret@host/v1",
    ],
)
def test_what_is_no_address_is_refused_without_a_password(text):
    with pytest.raises(ValueError, match="expected an address like") as refused:
        check_url(text)
    assert "secret" not in str(refused.value)


REFUSED = {
    "an unknown name": ({"group_sise": 3}, "unknown option .* 'group_size'"),
    "a flag for a number": ({"seed": True}, "env.seed: True is not allowed"),
    "no prompt": ({"system_prompt": []}, "env.system_prompt: .* at least 1 item"),
    "a prompt that is no text": (
        {"system_prompt": ["Answer.", 5]},
        "env.system_prompt.1: 5 is not allowed: .* valid string",
    ),
    "no number": ({"group_size": "many"}, "env.group_size: 'many' is .* integer"),
    "a number out of its range": ({"top_p": 0}, "top_p: 0 is not .*greater than 0"),
    "what is no number": ({"temperature": float("nan")}, "env.temperature: nan"),
    "no weight": ({"inference_weight": -1}, "inference_weight: -1 is not .*than 0"),
    "no groups": ({"total_steps": 0}, "expected a number above 0, or -1"),
    "the place in a map": (
        {"task_weights": {"gcd": -1}},
        "env.task_weights.gcd: -1 is not allowed",
    ),
    "a level in a map": (
        {"task_levels": {"gcd": "rondom"}},
        "env.task_levels.gcd: 'rondom' is not allowed; .*'random'",
    ),
    "no task at all": ({"tasks": []}, "env.tasks"),
    "a path in a name": ({"wandb_name": "a/b"}, "env.wandb_name"),
    "a long name": ({"wandb_name": "a" * 101}, "at most 100 characters"),
    "a shard that is not there": (
        {"num_shards": 3, "shard_index": 3},
        "env.shard_index: 3 is not allowed; .*num_shards, which is 3",
    ),
    "one setting too many": (
        {"eval_level": 0.5, "eval_preset": "rg-easy"},
        "env.eval_level: cannot be combined with eval_preset",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_value_is_one_sentence_that_begins_with_the_setting(
    case,
):
    values, expected = REFUSED[case]
    with pytest.raises(SettingError, match=expected) as refused:
        build("env", CheckedSettings, values)
    assert str(refused.value).startswith("env")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"vllm_args": "--x 'y"}, "No closing quotation"),
        ({"trainer": "train {step}"}, "only {api}, {server}.* in braces"),
        ({"trainer": " "}, "launch.trainer"),
    ],
)
def test_a_command_line_that_cannot_be_started_is_refused(values, expected):
    with pytest.raises(SettingError, match=expected):
        build("launch", LaunchSettings, values)


def test_a_value_that_is_assigned_is_checked_too():
    settings = CheckedSettings()
    with pytest.raises(ValueError, match="group_size"):
        settings.group_size = 0
