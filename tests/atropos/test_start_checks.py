"""What stops a start before anything is loaded or queried."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from rg_env.atropos import start_checks
from rg_env.errors import SettingError
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import (
    TOKENIZER,
    build_env,
    env_config,
    run_main,
    server_config,
)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["serve", "--env.group_size=1"], "has zero variance"),
        (["serve", "--env.thinking_mode=true"], "is sent only by"),
        (["process", "--env.total_steps=-1"], "env.total_steps"),
        (["process", "--env.data_path_to_save_groups=None"], "needs a file"),
    ],
)
def test_what_a_command_cannot_work_with_is_refused_before_the_tokenizer_is_read(
    argv, expected, capsys
):
    nowhere = ["--env.tokenizer_name=/nowhere", "--env.use_wandb=false"]
    assert run_main([*argv, *nowhere]) == 2
    assert expected in capsys.readouterr().err


async def test_only_texts_need_no_tokenizer():
    env = build_env(kind="openai", tokenizer_name="none")
    await env.close()
    assert env.config.tokenizer_name == "none"
    with pytest.raises(SettingError, match="'none' is allowed only"):
        await env.env_manager()
    with pytest.raises(SettingError, match="'none' is allowed only"):
        build_env(kind="vllm", tokenizer_name="none")


@pytest.mark.parametrize(
    ("temperature", "kind", "is_warned"),
    [(0.7, "vllm", True), (0.7, "sglang", False), (1.0, "vllm", False)],
)
def test_a_temperature_that_vllm_leaves_out_by_default_is_warned_of(
    temperature, kind, is_warned, caplog
):
    config = env_config(temperature=temperature)
    start_checks.warn_of_temperature(config, [kind])
    assert ("--logprobs-mode" in caplog.text) == is_warned


@pytest.mark.processes  # W&B asks git where it is
@pytest.mark.parametrize(
    ("name", "value"), [("WANDB_API_KEY", "short"), ("WANDB_MODE", "bogus")]
)
def test_a_variable_that_wandb_refuses_ends_the_start_in_its_words(
    name, value, monkeypatch
):
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match=r"^W&B: ") as refused:
        start_checks.has_wandb_login()
    assert "\n" not in str(refused.value)


# -- the tokenizer ---------------------------------------------------------------------


def refusal(name, setting="env.tokenizer_name", servers=()):
    config = env_config() if servers else env_config(tokenizer_name=name)
    with (
        pytest.raises(SettingError) as caught,
        start_checks.refusing_bad_tokenizer(config, servers),
    ):
        AutoTokenizer.from_pretrained(name)
    sentence = str(caught.value)
    assert sentence.startswith(f"{setting}: {name!r} ")
    assert sentence.endswith("tokenizer.json")
    assert "\n" not in sentence


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the files of a tokenizer, to be spoilt."""
    return Path(shutil.copytree(TOKENIZER, tmp_path / "tokenizer"))


@pytest.mark.parametrize(
    ("file", "content"), [("tokenizer.json", '{"a": '), ("tokenizer_config.json", "[]")]
)
def test_a_folder_that_cannot_be_loaded_is_refused(file, content, folder):
    (folder / file).write_text(content)
    refusal(str(folder))


@pytest.mark.parametrize("name", ["/no/such", "owner/no-such-model"])
def test_what_is_no_folder_and_no_name_is_refused(name):
    refusal(name)


def test_the_setting_that_names_the_tokenizer_is_blamed():
    server = server_config().model_copy(update={"tokenizer_name": "/no/such"})
    refusal("/no/such", "openai.tokenizer_name", [server])


def test_what_is_no_fault_of_the_tokenizer_is_passed_on():
    with (
        pytest.raises(FileNotFoundError),
        start_checks.refusing_bad_tokenizer(env_config(), []),
    ):
        Path("/nowhere/at/all").read_bytes()


SYSTEM_REFUSED = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no!') }}{% endif %}"
)
LEAVES_OUT = "{{ messages[0].content }}", "{{ messages[1].content }}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "template", [None, SYSTEM_REFUSED, "{% for m in %}", *LEAVES_OUT]
)
async def test_a_chat_template_that_cannot_be_used_is_refused(template, folder):
    path = folder / "tokenizer_config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "chat_template": template})
    )
    env = build_env(SIMULATED, tokenizer_name=str(folder))
    with pytest.raises(SettingError) as caught:
        await env._run_evaluate()
    sentence = str(caught.value)
    assert sentence.startswith(f"env.tokenizer_name: the chat template of '{folder}' ")
    assert "\n" not in sentence
