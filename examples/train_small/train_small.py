"""Train a small model from scratch on this environment, without a GPU.

    make train-small
    make train-small ARGS="--tasks spell_backward --seeds 0,1,2 --server vllm"

For each seed a model is made, begins with conversations that the environment wrote
(warm_start.py), and is then trained, task by task, on groups from the real Atropos API
(training.py). Before and after, it answers items that training never asks. What comes
out lies in the folder `--work`: results.json, learning.png, logs, weights. Ctrl-C ends
it in order, and a second start with the same options continues.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch
import yaml
from transformers import AutoTokenizer

from examples.train_small import curve, evaluation, recipe, training, warm_start
from examples.train_small.batches import BatchShape, BatchSource, NoBatches
from examples.train_small.grpo import Objective
from examples.train_small.model import make_model
from examples.train_small.plugin import Plugin
from examples.train_small.recipe import Run
from examples.train_small.servers import (
    InferenceServer,
    OtherServer,
    SmallServer,
    VllmServer,
)
from examples.train_small.tokenizer import make_tokenizer
from examples.train_small.torch_policy import TorchPolicy
from examples.vllm_on_cpu import free_port
from rg_env import ending, logs
from rg_env.errors import RunFailed
from rg_env.reports.evaluation_summary import Estimate
from rg_env.reports.progress_bar import WorkProgress
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER

logger = logging.getLogger("rg_env.train_small")

GOLD_SEED = 7
"""Of the items of the warm start."""

BEGUN_WITH = (
    *("conversations", "held_out", "layers", "model"),
    *("warm_seconds", "warm_target", "width"),
)
"""Options that may not change in a folder."""

CORES = os.cpu_count() or 1


class Training:
    """All that is asked for on the command line, stage after stage.

    Args:
        options: The command line.
        open_: Ends the servers.
    """

    def __init__(
        self, options: argparse.Namespace, open_: contextlib.ExitStack
    ) -> None:
        self._options, self._open = options, open_
        self._work: Path = options.work.resolve()
        self._logs = self._work / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._begin_as_before()
        self._plugin = Plugin(options.plugin_python)
        self._server: InferenceServer | None = None
        self._weights: Path | None = None

    def _begin_as_before(self) -> None:
        """Refuse a folder that was begun with options which its contents depend on.

        A start that knows other items than those held out now, for example, has learnt
        the answers to some of these.
        """
        path = self._work / "begun_with.json"
        now = {name: getattr(self._options, name) for name in BEGUN_WITH}
        then = json.loads(path.read_text("utf-8")) if path.is_file() else now
        for name, value in now.items():
            if then.get(name) != value:
                raise RunFailed(
                    f"--{name.replace('_', '-')}: {self._work} was begun with"
                    f" {then.get(name)}, not {value}; give another --work for it"
                )
        path.write_text(json.dumps(now), encoding="utf-8")

    def do_all(self) -> None:
        """Do what is not done yet, and write results and pictures."""
        for seed in self._options.seeds:
            for kind in self._options.runs:
                for run in recipe.runs_of(kind, self._options.tasks):
                    self._train(run, seed, self._start_of(seed, run.tasks[0]))
                    curve.write(self._work)
        for path in curve.write(self._work):
            print(path)

    # -- the start ---------------------------------------------------------------------

    def _start_of(self, seed: int, task: str) -> Path:
        """Return the folder of the weights that training on a task begins with."""
        options = self._options
        if options.model:
            return self._taken(options.model)
        warm = self._work / f"seed-{seed}" / f"start-{task}"
        if (warm / "done").is_file():
            return warm
        if not warm.is_dir():
            unfinished = self._work / "unfinished"
            count = make_model(
                unfinished,
                self._tokenizer(),
                seed,
                width=options.width,
                layers=options.layers,
            )
            warm.parent.mkdir(exist_ok=True)
            unfinished.replace(warm)
            logger.info("seed %d: a model of %s parameters", seed, f"{count:,}")
        torch.set_num_threads(CORES)  # nobody else needs them yet
        policy = self._policy(warm)
        start = warm_start.Start(options.warm_seconds, options.warm_target)
        title = f"seed {seed}, warm start on {task}"
        conversations = warm_start.read_conversations(
            self._gold(), AutoTokenizer.from_pretrained(warm)
        )
        if task not in conversations:
            raise RunFailed(
                f"--tasks: {self._gold()} has no conversation of {task}, which was not"
                " asked for when it was written; give another --work"
            )
        with WorkProgress(title, round(start.seconds), "s") as progress:
            done = 0

            def tell(state: warm_start.StartState) -> None:
                nonlocal done
                right = ", ".join(f"{t} {v:.0%}" for t, v in state.right.items())
                while done < min(state.seconds, start.seconds - 1):
                    done += 1
                    progress.advance(f"step {state.step}; right: {right}")

            state = warm_start.warm_start(
                policy,
                {task: conversations[task]},
                start,
                warm,
                seed=seed,
                tell=tell,
            )
        logger.info(
            "%s: %d steps in %.0f s, right %s",
            *(title, state.step, state.seconds, state.right),
        )
        (warm / "done").touch()
        return warm

    def _taken(self, name: str) -> Path:
        """Return a folder with a model of the hub, or of another folder."""
        folder = self._work / "model"
        if not (folder / "done").is_file():
            TorchPolicy(name, learning_rate=1.0, device="cpu").save(folder)
            AutoTokenizer.from_pretrained(name).save_pretrained(folder)
            (folder / "done").touch()
        return folder

    def _gold(self) -> Path:
        path = self._work / "gold.jsonl"
        if not path.is_file():
            logger.info("writing %d conversations", self._options.conversations)
            changes = {"tokenizer_name": str(TOKENIZER_FOLDER)}
            tasks = recipe.tasks_of(self._options.tasks)
            settings = self._settings(path, tasks, GOLD_SEED, changes)
            self._plugin.write_gold(
                self._logs / "gold.log", settings, self._options.conversations, path
            )
        return path

    def _tokenizer(self) -> Path:
        folder = self._work / "tokenizer"
        if not (folder / "tokenizer.json").is_file():
            count = make_tokenizer(self._gold(), TOKENIZER_FOLDER, folder)
            logger.info("a tokenizer of %d tokens", count)
        return folder

    # -- a run -------------------------------------------------------------------------

    def _train(self, run: Run, seed: int, start: Path) -> None:
        options = self._options
        folder = self._work / f"seed-{seed}" / run.name
        results = folder / "result.json"
        if results.is_file():
            return
        folder.mkdir(parents=True, exist_ok=True)
        title = f"seed {seed}, {run.name}"
        torch.set_num_threads(max(1, CORES - 1))
        policy = self._policy(start)
        server = self._served(policy, start)
        changes = dict(run.changes)
        before = self._evaluated(run, seed, folder / "before", server, changes)
        checkpoints = training.Checkpoints(folder / "checkpoints")
        done = checkpoints.load(policy)
        server.hand_over(policy)
        plan = training.Plan(
            steps=options.steps,
            learning_rate=options.learning_rate,
            objective=Objective(kl=options.kl),
            is_shuffled=run.is_shuffled,
            seed=seed,
        )
        asked = evaluation.AskedGroups(folder / "dumps")
        groups = asked.new()
        with contextlib.ExitStack() as running:
            api = running.enter_context(
                self._plugin.running_api(self._logs / "api.log", free_port())
            )
            shape = BatchShape(
                group_size=options.group_size,
                groups=options.groups,
                max_token_len=recipe.MAX_TOKENS,
                steps=options.steps - done,
                first_step=done,
                checkpoint_dir=str(folder / "environment"),
                checkpoint_interval=plan.checkpoint_every,
            )
            serving = changes | {
                "rollout_server_url": api,
                "group_size": options.group_size,
                "batch_size": options.group_size * options.groups,
                "total_steps": -1,
                "max_num_workers": options.groups,
                "max_batches_offpolicy": 1,
                "min_batch_allocation": None,
                "data_dumps_dir": str(folder / "dumps"),
                "dump_rollouts": True,
                "dump_failed_rollouts": True,
                "rollout_save_score_threshold": 0.0,
            }
            settings = self._settings(
                folder / "serve", run.tasks, 1000 + seed, serving, server
            )
            source = BatchSource(api)
            source.register(shape)
            serve = running.enter_context(
                self._plugin.running(
                    self._logs / f"serve-{seed}-{run.name}.log",
                    *("serve", "--config", settings),
                )
            )
            source.check = serve.check
            progress = running.enter_context(
                WorkProgress(title, options.steps - done, "steps")
            )
            mean = before_mean(before)

            def tell(step: training.Step) -> None:
                groups.extend(asked.new())
                took = step.waited_s + step.trained_s + step.handed_over_s
                levels = _levels(groups)
                progress.advance(
                    f"reward {step.reward:.3f} (held out before {mean:.3f}),"
                    f" loss {step.loss:+.4f}, ratio {step.ratios.mean:.4f} (furthest"
                    f" {step.ratios.furthest:.2g} off), {levels}"
                    f" {step.tokens / took:.0f} tokens/s"
                )

            training.train(
                policy,
                source,
                server,
                plan,
                checkpoints,
                reference=self._policy(start) if options.kl else None,
                tell=tell,
            )
        after = self._evaluated(run, seed, folder / "after", server, changes)
        groups.extend(asked.new())
        held_out = evaluation.held_out_questions(folder / "after")
        in_training = {group.question for group in groups}
        if not options.model:
            in_training |= evaluation.gold_questions(self._gold())
        result = {
            "seed": seed,
            "run": run.kind,
            "tasks": run.tasks,
            "server": options.server,
            "steps": options.steps,
            "before": {t: dataclasses.asdict(e) for t, e in before.items()},
            "after": {t: dataclasses.asdict(e) for t, e in after.items()},
            "groups": len(groups),
            "groups_with_signal": evaluation.signal_share(groups),
            "questions_in_training": len(in_training),
            "held_out_questions": len(held_out),
            "held_out_that_were_asked": len(held_out & in_training),
            "levels": [
                (group.task, group.level, group.score, group.has_signal)
                for group in groups
            ],
        }
        results.write_text(json.dumps(result), encoding="utf-8")
        for task, score in after.items():
            logger.info(
                "%s: %s on held-out items %s -> %s",
                *(title, task, _shown(before[task]), _shown(score)),
            )
        if held_out & in_training:
            raise RunFailed(f"{title}: {len(held_out & in_training)} items were asked")

    def _evaluated(
        self,
        run: Run,
        seed: int,
        folder: Path,
        server: InferenceServer,
        changes: Mapping[str, Any],
    ) -> dict[str, Estimate]:
        """Evaluate what the server has, unless it is done."""
        done = folder / "done"
        if not done.is_file():
            settings = self._settings(
                folder,
                run.tasks,
                1000 + seed,
                {**changes, "data_dir_to_save_evals": str(folder)},
                server,
            )
            self._plugin.run(
                self._logs / "evaluate.log", "evaluate", "--config", settings
            )
            done.touch()
        return evaluation.held_out_scores(folder)

    # -- parts -------------------------------------------------------------------------

    def _policy(self, folder: Path) -> TorchPolicy:
        options = self._options
        return TorchPolicy(
            folder, learning_rate=options.learning_rate, device=options.device
        )

    def _served(self, policy: TorchPolicy, start: Path) -> InferenceServer:
        """Return the server with a policy's weights; start it at the first call."""
        if self._server is None:
            folder = self._work / "serving"
            shutil.copytree(start, folder, dirs_exist_ok=True)
            self._server = self._made_server(folder)
            self._open.callback(self._server.kill)
            logger.info("starting the inference server")
            self._server.start()
            self._server.ready()
        self._server.hand_over(policy)
        return self._server

    def _made_server(self, folder: Path) -> InferenceServer:
        name, log = self._options.server, self._logs / "server.log"
        if name == "vllm":
            return VllmServer(Path(sys.executable), folder, log)
        if name == "small":
            return SmallServer(folder, log)
        return OtherServer(name, folder)

    def _settings(
        self,
        beside: Path,
        tasks: tuple[str, ...],
        seed: int,
        changes: Mapping[str, Any],
        server: InferenceServer | None = None,
    ) -> Path:
        """Write the settings of a command; return their file."""
        env = recipe.settings_of(tasks, seed, self._options.held_out, changes)
        given: dict[str, Any] = {"env": env}
        if server is not None:
            env["tokenizer_name"] = str(self._work / "serving")
            given["openai"] = {
                "base_url": f"{server.url}/v1",
                "model_name": server.model_name,
                "server_type": "vllm",
            }
        path = beside.with_name(f"{beside.name}.yaml")
        path.write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
        return path


def before_mean(before: Mapping[str, Estimate]) -> float:
    """Return the mean over the tasks."""
    return sum(score.mean for score in before.values()) / len(before)


def _levels(groups: list[evaluation.AskedGroup]) -> str:
    latest = {group.task: group.level for group in groups if group.level is not None}
    return "".join(f"{task} at level {level:.2f}, " for task, level in latest.items())


def _shown(score: Estimate) -> str:
    return f"{score.mean:.3f} ({score.low:.3f} to {score.high:.3f})"


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def read_options(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--work", type=Path, default=ROOT / "data" / "train_small", help="folder")
    add("--tasks", type=_names, default="spell_backward", help="with commas between")
    add("--seeds", type=_numbers, default="0", help="one model each")
    kinds = get_args(recipe.RunKind)
    add("--runs", type=_names, default="grpo", help=f"of {', '.join(kinds)}")
    add("--server", default="small", help="vllm, small, or the URL of another vLLM")
    add("--model", help="a folder or a name of the hub; else one is made and started")
    add("--device", default="cpu", help="of the trainer")
    add("--width", type=int, default=128, help="of the model that is made")
    add("--layers", type=int, default=4, help="of the model that is made")
    add("--conversations", type=int, default=24_000, help="of the warm start")
    add("--warm-seconds", type=float, default=120.0, help="of the warm start at most")
    add("--warm-target", type=float, default=0.4, help="share of right answers")
    add("--steps", type=int, default=120, help="of a run")
    add("--groups", type=int, default=16, help="of a batch")
    add("--group-size", type=int, default=8, help="rollouts of an item")
    add("--learning-rate", type=float, default=3e-4, help="of a run")
    add("--kl", type=float, default=0.0, help="weight of the distance to the start")
    add("--held-out", type=int, default=1000, help="evaluation items of a task")
    add(
        "--plugin-python",
        type=Path,
        default=ROOT / ".venv" / "bin" / "python",
        help="of the environment that this project is installed in",
    )
    options = parser.parse_args(argv)
    if unknown := set(options.runs) - set(kinds):
        parser.error(f"--runs knows {', '.join(kinds)}, not {', '.join(unknown)}")
    return options


def main() -> int:
    """Read the command line and train."""
    options = read_options()
    logs.start()
    logs.set_levels(debug=False, quiet_framework=True)
    try:
        with ending.undoing(), contextlib.ExitStack() as open_:
            Training(options, open_).do_all()
    except ending.Stopped as stopped:
        print("ended; the same command continues", file=sys.stderr)
        return stopped.status
    except (RunFailed, NoBatches) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
