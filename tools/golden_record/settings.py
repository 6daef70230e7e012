"""The settings that follow from command lines and files, or the exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(sys.argv[1])

os.environ.update(WANDB_MODE="offline", HF_HUB_OFFLINE="1")
import reasoning_gym_environment as entry  # noqa: E402

TOKENIZER = str(next(CHECKOUT.glob("rg_env/**/tokenizer.json")).parent)
BASE = [
    *("--openai.model_name", "m", "--openai.tokenizer_name", TOKENIZER),
    *("--env.tokenizer_name", TOKENIZER, "--env.use_wandb", "false"),
]
FOUND: list[dict[str, object]] = []


class Recorded(entry.ReasoningGymEnv):
    """Records the settings that a command was started with, and does nothing."""

    def _found(self) -> None:
        servers = [server.config.model_dump() for server in self.server.servers]
        FOUND.append({"env": self.config.model_dump(), "servers": servers})

    async def env_manager(self) -> None:
        self._found()

    async def process_manager(self) -> None:
        self._found()

    async def _run_evaluate(self) -> None:
        self._found()


def env(**fields: str) -> list[str]:
    return [f"--env.{name}={value}" for name, value in fields.items()]


def openai(**fields: str) -> list[str]:
    return [f"--openai.{name}={value}" for name, value in fields.items()]


LINES: list[list[str]] = [
    ["serve"],
    [],
    ["process"],
    ["evaluate"],
    ["serve", *env(complexity_mode="None")],
    ["serve", *env(complexity_mode="random")],
    ["serve", *env(complexity_mode="curriculum", curriculum_target_accuracy="0.5")],
    ["serve", *env(complexity_mode="0.3")],
    ["serve", *env(complexity_mode="[0.2, 0.7]")],
    ["serve", *env(complexity_mode="[0.7, 0.2]")],
    ["serve", *env(complexity_mode="hard")],
    ["serve", *env(tasks="gcd")],
    ["serve", *env(tasks="gcd,*_sorting")],
    ["serve", *env(tasks="[gcd, lcm]")],
    ["serve", *env(tasks="[]")],
    ["serve", *env(tasks="gdc")],
    ["serve", *env(tasks="None")],
    ["serve", *env(exclude_tasks="gcd,lcm")],
    ["serve", *env(task_weights="{gcd: 2.0}")],
    ["serve", *env(task_weights="{gcd: 0}")],
    ["serve", *env(task_weights="gcd")],
    ["serve", *env(task_params="{gcd: {min_numbers: 3}}")],
    ["serve", *env(task_levels="{gcd: 0.8, '*_sorting': [0.1, 0.2]}")],
    ["serve", *env(task_levels="{gcd: 8}")],
    ["serve", *env(categories="logic")],
    ["serve", *env(categories="[logic, games]")],
    ["serve", *env(min_batch_allocation="None")],
    ["serve", *env(min_batch_allocation="0.25")],
    ["serve", *env(min_batch_allocation="2")],
    ["serve", *env(seed="0")],
    ["serve", *env(seed="-1")],
    ["serve", *env(seed="1e3")],
    ["serve", *env(seed="x")],
    ["serve", *env(group_size="16", max_token_length="4096")],
    ["serve", *env(group_size="0")],
    ["serve", *env(group_size="1")],
    ["serve", *env(group_size="3.5")],
    ["serve", *env(total_steps="-1")],
    ["serve", *env(total_steps="-2")],
    ["serve", "--env.total_steps", "-1"],
    ["serve", *env(temperature="0.7")],
    ["serve", *env(temperature="nan")],
    ["serve", *env(top_p="0")],
    ["serve", *env(dump_rollouts="true", dump_failed_rollouts="yes")],
    ["serve", *env(dump_rollouts="maybe")],
    ["serve", "--env.dump_rollouts"],
    ["serve", "--env.dump-rollouts", "true"],
    ["serve", *env(system_prompt="Think.")],
    ["serve", *env(system_prompt="None")],
    ["serve", *env(eval_handling="NONE", eval_limit_ratio="0.1")],
    ["serve", *env(eval_handling="SOME")],
    ["serve", *env(worker_timeout="-1")],
    ["serve", *env(worker_timeout="-0.5")],
    ["serve", *env(num_shards="3", shard_index="2")],
    ["serve", *env(num_shards="3", shard_index="3")],
    ["serve", *env(inference_weight="-1")],
    ["serve", *env(rollout_server_url="localhost:8000")],
    ["serve", *env(rollout_server_url="http://h:8000/secret/")],
    ["serve", *env(unknown="1")],
    ["serve", *env(tsks="gcd")],
    ["serve", *openai(base_url="http://localhost:9100")],
    ["serve", *openai(base_url="localhost:9100/v1")],
    ["serve", *openai(server_type="sglang")],
    ["serve", *openai(server_type="openai")],
    ["process", *openai(server_type="openai")],
    ["serve", *openai(server_type="llama")],
    ["serve", *openai(num_max_requests_at_once="7", timeout="30")],
    ["serve", *openai(num_max_requests_at_once="0")],
    ["serve", *openai(api_key="k")],
    ["serve", *openai(extra_body="{a: 1}", headers="{X: y}")],
    ["serve", *env(seed="1"), *env(seed="2")],
    ["serve", "--slurm", "false"],
    ["serve", "--testing", "true"],
    ["serve", "stray"],
    ["nothing"],
    ["process", *env(total_steps="7", data_path_to_save_groups="data/x.jsonl")],
    ["evaluate", *env(num_eval_tasks="20", eval_level="0.5", eval_completions="4")],
    ["evaluate", *env(eval_preset="hard", eval_system_prompt="published")],
    ["evaluate", *env(eval_preset="middle")],
    ["evaluate", *env(data_dir_to_save_evals="data/e")],
]

FILES: list[str] = [
    "env: {group_size: 16}",
    "env: {group_size: 16}\nopenai: {base_url: 'http://x:1/v1'}",
    "env: {complexity_mode: null, min_batch_allocation: null}",
    "env: {group_sise: 16}",
    "env: {group_size: 16, group_size: 8}",
    "group_size: 16",
    "env: [1]",
    "env: {tasks: [gcd, lcm], task_weights: {gcd: 2}}",
    "env: {task_params: {gcd: {min_numbers: 3}}}\ntrainer: {lr: 1}",
    """openai: [{base_url: 'http://x:1/v1', model_name: a},
    {base_url: 'http://y:1/v1', model_name: a, server_type: sglang}]""",
    "openai: []",
    "env: {seed: '12'}",
    "env: {use_wandb: 'off'}",
    "env: {temperature: 0.5}\nopenai: {timeout: 5}\nslurm: false",
    "env: {",
    "",
    "env: {max_token_length: 1.5e3}",
    "env: {task_levels: {gcd: null, maze: random}}",
]


def outcome(argv: list[str]) -> object:
    FOUND.clear()
    sys.argv = ["reasoning_gym_environment.py", *argv]
    said = io.StringIO()
    status: object = 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            Recorded.cli()
        except SystemExit as end:
            status = end.code or 0
    text = json.dumps(FOUND[0] if FOUND else status, default=str, sort_keys=True)
    for place, name in ((TOKENIZER, "TOKENIZER"), (str(CHECKOUT), "CHECKOUT")):
        text = text.replace(place, name)
    return json.loads(text)


def main() -> None:
    keep = sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        FILES.extend(
            path.read_text()
            for path in sorted((CHECKOUT / "examples").glob("*.yaml"))
            if path.stem != "launch"
        )
        cases = [(" ".join(line), line) for line in LINES]
        for number, text in enumerate(FILES):
            Path(f"{number}.yaml").write_text(text)
            line = ["serve", "--config", f"{number}.yaml"]
            cases.append((f"file {text!r}", line))
            cases.append((f"file and option {text!r}", [*line, *env(seed="77")]))
        for key, line in cases:
            has_list = "- model_name" in key or "openai: [" in key
            argv = [*line, *(BASE[4:] if has_list else BASE)]
            found = outcome(argv)
            if isinstance(found, dict):
                evals = found["env"].get("data_dir_to_save_evals") or ""
                if "evaluate_" in evals:  # the time is in its name
                    found["env"]["data_dir_to_save_evals"] = "data/evaluate_TIME"
            line_ = json.dumps({"key": f"settings {key}", "value": found})
            print(line_, file=keep, flush=True)


main()
