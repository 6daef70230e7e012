"""Types of settings, and the sentence for a refused value."""

from __future__ import annotations

import pytest
import yaml

from rg_env.errors import SettingError
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_and_launch_settings import CheckedServer, LaunchSettings
from rg_env.settings.setting_checks import build, check_url

ADDRESSES = "http://localhost:9004/v1 http://[::1]:9004/v1 http://n_7.c.:9000/a/b%20c"
NO_ADDRESSES = """ 9004 localhost:9004 //localhost:9004/v1 ftp://localhost:9004
http://a:99999 http://[::1 http://a/v1?x=1 http://a/v1,http://b/v1
http://me:secret@host/v1 me:secret@host http://me:a/secret@host http://host/?key=secret
http://host#secret"""


@pytest.mark.parametrize("text", ADDRESSES.split())
def test_a_url_is_accepted(text):
    assert check_url(text) == text


@pytest.mark.parametrize("text", ["", " http://a:1 ", *NO_ADDRESSES.split()])
def test_an_invalid_url_is_refused_without_its_secrets(text):
    with pytest.raises(ValueError, match="expected an address like") as refused:
        check_url(text)
    assert "secret" not in str(refused.value)


REFUSED = r"""
env    | {group_sise: 3}                    | env: unknown option .* 'group_size'
env    | {seed: true}                       | env.seed: True is not allowed
env    | {system_prompt: 5}                 | env.system_prompt: 5 is not allowed
env    | {system_prompt: []}                | env.system_prompt: .* at least 1 item
env    | {system_prompt: [Answer., 5]}      | env.system_prompt.1: 5 .* valid string
env    | {group_size: many}                 | env.group_size: 'many' is .* integer
env    | {top_p: 0}                         | env.top_p: 0 is not .* greater than 0
env    | {temperature: .nan}                | env.temperature: nan
env    | {inference_weight: -1}             | env.inference_weight: -1 is not .* than 0
env    | {total_steps: 0}                   | env.total_steps: .* above 0, or -1
env    | {task_weights: {gcd: -1}}          | env.task_weights.gcd: -1 is not allowed
env    | {task_levels: {gcd: rondom}}       | env.task_levels.gcd: .* 'random'
env    | {tasks: []}                        | env.tasks
env    | {wandb_name: a/b}                  | env.wandb_name
env    | {wandb_name: LONG}                 | env.wandb_name: .* at most 100 characters
env    | {num_shards: 3, shard_index: 3}    | env.shard_index: 3 is .* which is 3
env    | {eval_level: 0, eval_preset: rg-easy} | env.eval_level: cannot .* eval_preset
launch | {vllm_args: "--x 'y"}              | launch.vllm_args: No closing quotation
launch | {trainer: "train {step}"}          | launch.trainer: .* only {api}, .* braces
launch | {trainer: "train {api[x]}"}        | launch.trainer: .* only {api}, .* braces
launch | {trainer: " "}                     | launch.trainer
openai | {extra_body: {stream: true}}       | openai.extra_body: .* by the environment
openai | {extra_body: {a: 2020-01-01}}      | openai.extra_body.a: .* valid JSON value
openai | {extra_body: {chat_template_kwargs: 1}} | openai.extra_body: .* is not a map
openai | {headers: {Content-Type: x}}       | openai.headers: .* additional header
openai | {headers: {a b: x}}                | openai.headers: .* additional header
openai | {headers: {a: "sk-secret\nb"}}     | openai.headers: .* one line of ASCII
openai | {headers: "a: sk-secret"}          | openai.headers: .* valid dictionary
openai | {api_key: "sk-secret\nb"}          | openai.api_key: .* should match pattern
"""
"""Section, settings, and what the sentence says."""

MODELS = {"env": CheckedSettings, "launch": LaunchSettings, "openai": CheckedServer}


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_a_refused_value_is_one_sentence_that_begins_with_the_setting(row):
    section, settings, expected = map(str.strip, row.split("|"))
    values = yaml.safe_load(settings.replace("LONG", "a" * 101))
    with pytest.raises(SettingError, match=f"^{expected}") as refused:
        build(section, MODELS[section], values)
    assert "\n" not in str(refused.value)
    assert "sk-secret" not in str(refused.value)


def test_an_assigned_value_is_checked():
    settings = CheckedSettings()
    with pytest.raises(ValueError, match="group_size"):
        settings.group_size = 0
