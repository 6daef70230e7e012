"""Runs of the commands, and everything that they leave, for `golden_record.py`.

Each run is a forked process in a folder of its own, with the simulated model or a
server that answers always the same, so that its results depend neither on time nor on
chance. Where the order of groups matters, one group of one task is in flight at a time:
items of one task never overtake one another. Times, unique names, reports and the
metrics of `serve` are left out.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml
from golden_parts import HOOKS, Model, at, failing, hooked, plain, sent

import reasoning_gym_environment
from reasoning_gym_environment import ReasoningGymEnv

CHECKOUT = Path(reasoning_gym_environment.__file__).resolve().parent
FORK = multiprocessing.get_context("fork")
AT_ONCE = 2
SERVE_STEPS = 4  # in each of its two runs
EVALUATED = 3  # every so many steps
QUEUE = 2  # groups of a batch
REST_S = 0.4
GUARD_S = 300.0  # against hanging
TRAINER = {
    "batch_size": 8,
    "max_token_len": 1200,
    "wandb_group": "g",
    "wandb_project": "p",
    "save_checkpoint_interval": 2,
}
SERVE = {
    "max_batches_offpolicy": 1,
    "min_batch_allocation": "None",
    "steps_per_eval": EVALUATED,
    "include_messages": "true",
    "data_dumps_dir": "served",
}
SETTINGS = {
    "tasks": "chain_sum",
    "seed": 3,
    "complexity_mode": 0.5,
    "total_steps": 4,
    "group_size": 4,
    "max_token_length": 1500,
    "max_num_workers": 1,
    "max_eval_workers": 1,
    "num_workers": 1,
    "num_eval_samples_per_task": 3,
    "use_wandb": "false",
    "dump_rollouts": "true",
    "dump_failed_rollouts": "true",
    "data_dumps_dir": "dumps",
    "steps_per_eval": 0,
    "data_dir_to_save_evals": "evaluation",
}
SEVERAL = {
    "tasks": "chain_sum,gcd,leg_counting,spell_backward",
    "dump_metrics": "false",  # those since the last log depend on the order
}
PATTERNS = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "UUID",
    r"\b\d{4}-\d\d-\d\dT[\d:.+]+": "TIME",
    r"http://127\.0\.0\.1:\d+": "URL",
    r"(?m)^\d\d:\d\d:\d\d ": "",
    re.escape(str(CHECKOUT)): "CHECKOUT",
}
LOGGED = re.compile(r"(?m)^(?:error: .*|WARNING.*|ERROR.*|.*rollouts queried[^;\n]*;?)")


# -- what is compared ------------------------------------------------------------------


def normalized(text: str) -> str:
    for pattern, name in {re.escape(str(Path.cwd())): "FOLDER", **PATTERNS}.items():
        text = re.sub(pattern, name, text)
    return text


def read(path: Path) -> Any:
    """Return what a file holds: lines sorted by item, of the metrics only the last."""
    text = normalized(path.read_text(encoding="utf-8"))
    if path.suffix == ".txt":
        return text.splitlines()
    if path.suffix != ".jsonl":
        return plain(yaml.safe_load(text))
    rows = [plain(json.loads(line)) for line in text.splitlines()]
    if path.stem.endswith("metrics"):
        return rows[-1]
    return sorted(rows, key=lambda row: (row.get("index", 0), str(row)))


def files() -> list[tuple[str, Any]]:
    found = list[tuple[str, Any]]()
    for path in Path().rglob("*.*"):
        is_timed = "served" in path.parts and path.stem.endswith("metrics")
        is_read = path.suffix in {".json", ".jsonl", ".yaml", ".txt", ".part"}
        if path.is_file() and is_read and not is_timed:
            found.append((normalized(str(path)), read(path)))
    return sorted(found, key=str)  # names of two runs may be equal now


# -- a command -------------------------------------------------------------------------


def argv(command: str, **changes: Any) -> list[str]:
    options = [f"--env.{name}={value}" for name, value in (SETTINGS | changes).items()]
    return [command, "--openai.base_url=simulated", *options]


def _child(words: list[str], cls: Any) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv[1:] = words
    cls.cli()


def started(words: list[str], cls: Any = ReasoningGymEnv) -> Any:
    child = FORK.Process(target=_child, args=(words, cls))
    child.start()
    return child


def ended(child: Any) -> list[Any]:
    """Return status, output, and warnings and the ledger in the log, each once."""
    child.join(GUARD_S)
    child.kill()  # if it hangs
    child.join()
    lines = LOGGED.findall(normalized(Path("stderr").read_text()))
    return [child.exitcode, normalized(Path("stdout").read_text()), *sorted({*lines})]


def command(name: str, cls: Any = ReasoningGymEnv, **changes: Any) -> Callable[[], Any]:
    return lambda: ended(started(argv(name, **changes), cls))


def words(*given: str) -> Callable[[], Any]:
    return lambda: ended(started([*given]))


# -- serve -----------------------------------------------------------------------------


def _asked(url: str, method: str = "GET", **how: Any) -> Any:
    return httpx.request(method, url, timeout=60, **how).json()


class _Steady(ReasoningGymEnv):
    """Knows the queue before it starts another group, so it always sends as many."""

    async def handle_send_to_api(self, *args: Any, **how: Any) -> None:
        await super().handle_send_to_api(*args, **how)
        await self.get_status()


def serve(first_step: int) -> list[Any]:
    """Serve some steps to the real API; return the end, and what its trainer got.

    The trainer takes a batch when the environment has filled the queue and rests.
    """
    last_step = first_step + SERVE_STEPS
    program = [sys.executable, reasoning_gym_environment.__file__, "run-api"]
    api = subprocess.Popen(
        [*program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        url = api.stdout.readline().decode().split()[-1]
        steps = {"starting_step": first_step, "num_steps": last_step}
        trainer = TRAINER | steps | {"checkpoint_dir": str(Path.cwd())}
        _asked(f"{url}/register", "POST", json=trainer)
        changes = {"rollout_server_url": url, "total_steps": last_step}
        _asked(f"{url}/batch")  # from which the API takes it that there is a trainer
        child = started(argv("serve", **SERVE, **changes), _Steady)
        batches = list[Any]()
        end_s = time.monotonic() + GUARD_S
        while child.is_alive() and len(batches) < SERVE_STEPS:
            if time.monotonic() > end_s:
                break
            time.sleep(REST_S)
            done, step = [*Path().rglob("metrics.json")], first_step + len(batches)
            is_evaluated = len(done) == step // EVALUATED
            if is_evaluated and _asked(f"{url}/status")["queue_size"] == QUEUE:
                time.sleep(REST_S)
                batches.append(_asked(f"{url}/batch")["batch"])
        groups = [plain(group) for batch in batches for group in batch]
        return [ended(child), *sorted(groups, key=str)]
    finally:
        api.terminate()
        api.wait()


def answered(name: str, *options: str, **changes: Any) -> Callable[[], Any]:
    """Return a command whose model is behind the server."""

    def work() -> Any:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        url = f"--openai.base_url=http://127.0.0.1:{server.server_port}/v1"
        child = started([*argv(name, **changes), url, *options])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return ended(child)
        finally:
            server.shutdown()

    return work


# -- the table -------------------------------------------------------------------------

NO_TOKENIZER = ("--openai.server_type=openai", "--env.tokenizer_name=none")
TOKENIZER = f"--env.tokenizer_name={CHECKOUT / 'rg_env/demo/tokenizer'}"
EVALUATES = "rollout_and_score_eval"
SCORING = ("score", "_extract_final_answer", EVALUATES)
PLACES = ("subclass", "before", "behind", "instance")
EASY_AND_SHORT = {
    "complexity_mode": 0.0,
    "total_steps": 12,
    "max_token_length": 230,
    "system_prompt": "Answer.",
}
UNSCORED = "ScoringUnavailableError"
SAME = "ensure_scores_are_not_same"

RUNS: dict[str, list[Callable[[], Any]]] = {
    "process": [
        command("process", max_num_workers=8, total_steps=12, **SEVERAL),
        words("rescore", "dumps", "--out=dumps.jsonl"),
        words("rescore", "data/reasoning_gym.jsonl", "--out=rows.jsonl"),
    ],
    "curriculum": [
        command("process", complexity_mode="curriculum", total_steps=total)
        for total in (16, 32)
    ],
    "no messages": [command("process", include_messages="false")],
    "variance": [command("process", total_steps=8, **{SAME: "true"})],
    "penalty": [
        command("process", length_penalty_counts=counts, **EASY_AND_SHORT)
        for counts in ("completion", "prompt_and_completion")
    ],
    "truncated": [command("process", max_token_length=420)],
    "boxed": [command("process", answer_format="boxed")],
    "library": [command("process", scorer_fixes="false", normalize_answers="false")],
    "chat": [answered("process", *NO_TOKENIZER)],
    "completions": [answered("process", TOKENIZER)],
    "evaluate": [
        command("evaluate", max_eval_workers=8, eval_completions=2, **SEVERAL),
        words("rescore", "evaluation", "--out=again.jsonl"),
    ],
    "evaluate killed": [
        command("evaluate", at(5, EVALUATES, sent(signal.SIGKILL)), eval_completions=3),
        command("evaluate", eval_completions=3),
    ],
    "evaluate failing": [command("evaluate", at(3, EVALUATES, failing()))],
    "evaluate unscored": [command("evaluate", at(0, EVALUATES, failing(UNSCORED)))],
    "evaluate refused": [answered("evaluate", *NO_TOKENIZER)],
    "screen": [command("screen", **SEVERAL)],
    "serve": [functools.partial(serve, step) for step in (0, SERVE_STEPS)],
    "interrupted": [command("process", at(3, "score", sent(signal.SIGINT)))],
    "terminated": [
        command("process", at(2, "score", sent(signal.SIGTERM), pause_s=60))
    ],
    "killed": [
        command("process", at(3, "score", sent(signal.SIGKILL))),
        command("process"),
    ],
    "failing": [command("process", at(0, "score", failing()))],
    "unscored": [command("process", at(0, "score", failing(UNSCORED)))],
}
for _place in PLACES:
    for _name in HOOKS if _place == "subclass" else SCORING:
        _own = hooked(_place, {_name: HOOKS[_name]})
        _command = "evaluate" if _name == EVALUATES else "process"
        RUNS[f"{_name} {_place}"] = [command(_command, _own, total_steps=2)]
    _all = hooked(_place, dict.fromkeys(HOOKS))
    RUNS[f"hooks {_place}"] = [command("process", _all), command("evaluate", _all)]


def run(name: str) -> list[tuple[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        steps = [(f"step {n}", work()) for n, work in enumerate(RUNS[name])]
        found = [*steps, *files()]
        os.chdir("/")
    return [
        (f"runs {name}: {key} {number}", each)
        for key, value in found
        for number, each in enumerate(value if isinstance(value, list) else [value])
    ]


def runs(is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    """Yield what the wanted runs leave, those of a name that begins with "runs "."""
    names = [name for name in RUNS if is_wanted(f"runs {name}")]
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with ProcessPoolExecutor(AT_ONCE, mp_context=FORK) as pool:
        for pairs in pool.map(run, names):
            yield from pairs
