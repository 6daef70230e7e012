"""Try this environment with a real, stock `vllm serve`, on a machine without a GPU.

    make try-vllm
    make try-vllm ARGS="--python /where/vllm/is/bin/python"

It makes an environment with vLLM (.venv-vllm, about ten minutes once), a small model
from scratch, and starts `vllm serve`. Then, with the real Atropos API and the stand-in
trainer:

    serve      for some batches; in their midst vLLM is killed and started again
    compare    every token and log-probability that reached the trainer with a forward
               pass of the same weights
    process, evaluate    a few groups and items

A line for each step; ends with status 1 at the first that fails.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from examples.try_vllm.vllm_on_cpu import Vllm, VllmError, make_python
from rg_env.demo.stand_in_trainer import WITHOUT_END, Groups, TrainerConfig, trained_api

GROUP_SIZE = 4
BATCH_GROUPS = 4
MAX_TOKENS = 512


def say(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def run(*command: Any, **how: Any) -> None:
    """Run a program; end this one where it fails."""
    done = subprocess.run([str(part) for part in command], check=False, **how)
    if done.returncode:
        sys.exit(f"failed with status {done.returncode}: {command[0]} {command[1]}")


# -- the environment -------------------------------------------------------------------


def argv_of(command: str, vllm: Vllm, model: Path, **env: Any) -> list[str]:
    """Return the command line of a command of the environment."""
    settings = {
        "tokenizer_name": model,
        "use_wandb": "false",
        "group_size": GROUP_SIZE,
        "max_token_length": MAX_TOKENS,
        "num_workers": 1,
        "steps_per_eval": 0,
        "tasks": "basic_arithmetic,chain_sum,gcd,leg_counting,spell_backward",
        # A model that knows nothing gets the same score for everything.
        "ensure_scores_are_not_same": "false",
        **env,
    }
    server = {
        "base_url": f"{vllm.url}/v1",
        "server_type": "vllm",
        "model_name": "tiny",
        "health_check": "true",
    }
    return [
        *(sys.executable, str(ROOT / "reasoning_gym_environment.py"), command),
        *(f"--env.{name}={value}" for name, value in settings.items()),
        *(f"--openai.{name}={value}" for name, value in server.items()),
    ]


@contextlib.asynccontextmanager
async def environment(argv: list[str], log: Path) -> AsyncIterator[Any]:
    """Run a command of the environment while the context lasts."""
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=said, stderr=subprocess.STDOUT, cwd=log.parent
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def serve(vllm: Vllm, model: Path, work: Path, batches: int) -> Path:
    """Serve a trainer; kill vLLM in the midst. Returns the file of all groups."""
    groups = work / "groups.jsonl"
    steps = 0
    with groups.open("w", encoding="utf-8") as rows:

        def keep(batch: Groups) -> None:
            nonlocal steps
            steps += 1
            for group in batch:
                rows.write(json.dumps(group) + "\n")

        config = TrainerConfig(
            api_url="",
            batch_size=GROUP_SIZE * BATCH_GROUPS,
            group_size=GROUP_SIZE,
            max_token_len=MAX_TOKENS,
            num_steps=WITHOUT_END,
        )
        async with trained_api(config, keep) as (api, trainer):
            argv = argv_of(
                "serve",
                vllm,
                model,
                rollout_server_url=api,
                total_steps=WITHOUT_END,
                batch_size=GROUP_SIZE * BATCH_GROUPS,
            )
            async with environment(argv, work / "serve.log") as process:

                async def until(number: int) -> None:
                    while steps < number:
                        if process.returncode is not None:
                            sys.exit(f"serve has ended; see {work / 'serve.log'}")
                        await asyncio.sleep(0.2)

                await until(batches)
                say(f"serve: {steps} batches; vLLM is killed, and started again")
                vllm.kill()
                await asyncio.sleep(5)
                before = steps
                vllm.start()
                await asyncio.to_thread(vllm.ready)
                say("serve: vLLM is back")
                await until(before + batches)
            counts = trainer.counts
    if counts.invalid_groups:
        sys.exit(f"groups that no trainer can use: {dict(counts.faults)}")
    say(f"serve: {counts.groups} groups, {counts.tokens:,} tokens, none unusable")
    for line in (work / "serve.log").read_text(encoding="utf-8").splitlines():
        if "token ids from" in line or "answers after" in line:
            say(f"serve said: {line}")
    return groups


async def once(command: str, vllm: Vllm, model: Path, work: Path, **env: Any) -> None:
    """Run a command to its end."""
    log = work / f"{command}.log"
    async with environment(argv_of(command, vllm, model, **env), log) as process:
        status = await process.wait()
    if status:
        sys.exit(f"{command} ended with status {status}; see {log}")
    say(f"{command}: ended with status 0")


async def try_all(python: Path, work: Path, batches: int) -> None:
    """Do all of it."""
    model = work / "tiny"
    say("making a model from scratch")
    run(python, HERE.parent / "small_llama.py", model)
    vllm = Vllm(python, model, "tiny", work / "vllm.log")
    vllm.start()
    try:
        say(f"starting vllm serve at {vllm.url} (up to a minute or two)")
        await asyncio.to_thread(vllm.ready)
        groups = await serve(vllm, model, work, batches)
        say("comparing with a forward pass of the same weights")
        run(python, HERE / "compare.py", model, groups)
        rows = work / "rows.jsonl"
        await once(
            "process",
            vllm,
            model,
            work,
            total_steps=4,
            data_path_to_save_groups=rows,
        )
        if len(rows.read_text(encoding="utf-8").splitlines()) != 4:
            sys.exit(f"process has written another number of rows than 4 to {rows}")
        await once("evaluate", vllm, model, work, num_eval_samples_per_task=1)
    finally:
        vllm.kill()
    say("all well")


def main() -> None:
    """Read the command line and try."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--python", type=Path, help="of an environment that has vLLM and torch")
    add("--batches", type=int, default=5, help="before and after the restart")
    add("--work", type=Path, help="folder for model, logs and groups")
    options = parser.parse_args()
    python = options.python or make_python()
    work = options.work or Path(tempfile.mkdtemp(prefix="try-vllm-"))
    work.mkdir(parents=True, exist_ok=True)
    say(f"logs are in {work}")
    asyncio.run(try_all(python.absolute(), work.resolve(), options.batches))


if __name__ == "__main__":
    try:
        main()
    except VllmError as failure:
        sys.exit(failure.sentence)
