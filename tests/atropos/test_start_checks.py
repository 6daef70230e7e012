"""What stops a start before anything is loaded or queried."""

from __future__ import annotations

import asyncio

import pytest

from rg_env.atropos import start_checks
from rg_env.errors import SettingError
from tests.support.parts import build_env, env_config, run_main


def test_a_group_of_one_ends_serve_from_python_too() -> None:
    env = build_env(group_size=1)
    with pytest.raises(SettingError, match="has zero variance"):
        asyncio.run(env.env_manager())


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["serve", "--env.group_size=1"], "has zero variance"),
        (["serve", "--env.thinking_mode=true"], "is sent only by"),
        (["process", "--env.total_steps=-1"], "env.total_steps"),
        (["process", "--env.data_path_to_save_groups=None"], "needs a file"),
        (["evaluate", "--testing", "true"], "--testing: true is not allowed"),
    ],
)
def test_what_a_command_cannot_work_with_is_refused_before_the_tokenizer_is_read(
    argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = ["--env.tokenizer_name=/nowhere", "--env.use_wandb=false"]
    assert run_main([*argv, *nowhere]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mixture": "/nowhere.yaml"}, "env.mixture: '/nowhere.yaml'"),
        ({"mixture": "/dev/null"}, "env.mixture: '/dev/null' has no list"),
        ({"reasoning_effort": "high"}, "env.reasoning_effort: 'high' is sent only by"),
        ({"thinking_mode": True}, "openai.server_type 'openai'"),
    ],
)
def test_settings_are_refused_and_not_blamed_on_the_tokenizer(
    changes: dict[str, object], expected: str
) -> None:
    with pytest.raises(SettingError) as refused:
        build_env(**changes, tokenizer_name="/nowhere")
    assert expected in str(refused.value)
    assert "tokenizer" not in str(refused.value)


def test_reasoning_effort_needs_a_server_that_is_told() -> None:
    config = env_config(reasoning_effort="high")
    start_checks.check_texts_do(config, ["openai"], trains=False)
    with pytest.raises(SettingError, match="chat_template_kwargs"):
        start_checks.check_texts_do(config, ["openai"], trains=True)


def test_only_texts_need_no_tokenizer() -> None:
    env = build_env(kind="openai", tokenizer_name="none")
    asyncio.run(env.close())
    assert env.config.tokenizer_name == "none"
    with pytest.raises(SettingError, match="'none' is allowed only"):
        asyncio.run(env.env_manager())
    with pytest.raises(SettingError, match="'none' is allowed only"):
        build_env(kind="vllm", tokenizer_name="none")


def test_a_client_that_is_not_ours_trains_with_two_types_alone() -> None:
    config = env_config(group_size=2)
    check = start_checks.check_can_train
    check(config, ["vllm", "sglang"], has_our_clients=False)
    check(config, ["openai", "trl"], has_our_clients=True)
    with pytest.raises(SettingError, match="'openai' is not allowed"):
        check(config, ["openai"], has_our_clients=False)


@pytest.mark.parametrize(
    ("prompt", "warnings"),
    [("publish_ed", 1), ("published", 0), ("Publish it all.", 0)],
)
def test_a_prompt_that_looks_like_a_mistyped_word_is_warned_of(
    prompt: str, warnings: int, logged: pytest.LogCaptureFixture
) -> None:
    config = env_config(eval_system_prompt=prompt)
    start_checks.check_command("evaluate", config, [], None)
    assert logged.text.count("is used as the prompt itself; did you mean") == warnings


@pytest.mark.processes  # W&B asks git where it is
@pytest.mark.parametrize(
    ("name", "value"),
    [("WANDB_API_KEY", "short"), ("WANDB_MODE", "bogus"), ("WANDB_CONSOLE", "x")],
)
def test_a_variable_that_wandb_refuses_ends_the_start_in_its_words(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match=r"^W&B: ") as refused:
        start_checks.has_wandb_login()
    assert "\n" not in str(refused.value)
