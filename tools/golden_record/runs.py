"""Runs of the commands beside a recorded model: requests, groups, rows, samples, dumps.

The model is simulated: its completions are made of the prompt alone. What differs from
run to run (ids, times, places) is replaced by its name, and what differs between two
runs of one checkout is left out.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

CHECKOUT = Path(sys.argv[1])
TOKENIZER = next(CHECKOUT.glob("rg_env/**/tokenizer.json"))
TASKS = "gcd,chain_sum,number_sorting,spell_backward"
GROUP_SIZE, GROUPS = 4, 8

Told = dict[str, Any]


# -- a recorded model ------------------------------------------------------------------


def right_answer(question: str) -> str:
    numbers = re.findall(r"-?\d+(?:\.\d+)?", question)
    if "Greatest Common Divisor" in question:
        return str(math.gcd(*map(int, re.findall(r"\d+", question))))
    if found := re.search(r": ([-+0-9 ]+) =", question):
        return str(
            sum(
                int(part.replace(" ", ""))
                for part in re.findall(r"[+-]? ?\d+", found[1])
            )
        )
    if "ell this word" in question:
        return question.split(": ")[-1].split()[0][::-1]
    return str(sorted(numbers, key=float)).replace("'", '"')


def completion(prompt: str, number: int) -> tuple[str, str]:
    """Return a text and its finish reason, which depend on the prompt alone."""
    dice = hashlib.sha256(f"{number} {prompt}".encode()).digest()
    answer = right_answer(prompt)
    texts = [
        f"<think>It is {answer}.</think>\n<answer>{answer}</answer>",
        f"<think>It is {answer}.</think>\n<answer>{answer}1</answer>",
        f"<think>hm</think><answer>**{answer}**</answer>",
        f"I say {answer}",
        f"<answer>{answer}</answer><answer>7</answer>",
        "<think>so it goes on and on " * 6,
        f"<answer>{answer}</answer>",
    ]
    text = texts[dice[0] % len(texts)]
    return text, "length" if text.startswith("<think>so") else "stop"


class Model:
    """Answers in the form of each kind of server."""

    def __init__(self) -> None:
        self.tokenizer = Tokenizer.from_file(str(TOKENIZER))
        self.requests: list[Told] = []

    def _made(self, prompt: str, body: Told) -> list[tuple[str, str, list[int]]]:
        sampling = body.get("sampling_params", body)
        limit = sampling.get("max_tokens") or sampling.get("max_new_tokens") or 64
        made = []
        for number in range(sampling.get("n") or 1):
            text, end = completion(prompt, number)
            ids = self.tokenizer.encode(text, add_special_tokens=False).ids
            if len(ids) > limit:
                ids, end = ids[:limit], "length"
            made.append((self.tokenizer.decode(ids), end, ids))
        return made

    def reply(self, path: str, body: Told) -> Any:
        if path == "/v1/chat/completions":
            prompt = body["messages"][-1]["content"]
        else:
            ids = body.get("input_ids") or body["prompt"]
            ids = ids["prompt_token_ids"] if isinstance(ids, dict) else ids
            prompt = self.tokenizer.decode(ids, skip_special_tokens=False)
        self.requests.append({"path": path, "body": body})
        made = self._made(prompt, body)
        if path == "/v1/chat/completions":
            choices: list[Any] = [
                {
                    "index": i,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": end,
                }
                for i, (text, end, _) in enumerate(made)
            ]
            return {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": choices,
            }
        if path == "/v1/completions":
            return {
                "id": "c",
                "model": body["model"],
                "choices": [
                    {
                        "index": i,
                        "text": text,
                        "finish_reason": end,
                        "token_ids": ids,
                        "prompt_token_ids": body["prompt"],
                        "logprobs": {
                            "token_logprobs": self._logprobs(ids),
                            "tokens": [f"token_id:{each}" for each in ids],
                        },
                    }
                    for i, (text, end, ids) in enumerate(made)
                ],
            }
        if "input_ids" in body:
            return [
                {
                    "text": text,
                    "meta_info": {
                        "finish_reason": {"type": end},
                        "output_token_logprobs": [
                            [lp, each, None]
                            for lp, each in zip(self._logprobs(ids), ids, strict=True)
                        ],
                    },
                }
                for text, end, ids in made
            ]
        return {
            "text": [text for text, _, _ in made],
            "finish_reasons": [end for _, end, _ in made],
            "logprobs": [
                [
                    [{str(each): lp}]
                    for lp, each in zip(self._logprobs(ids), ids, strict=True)
                ]
                for _, _, ids in made
            ],
        }

    def _logprobs(self, ids: list[int]) -> list[float]:
        return [-((each * 7 + i) % 13 + 1) / 16 for i, each in enumerate(ids)]


class Trainer:
    """The Atropos API, beside a trainer that takes every group at once."""

    def __init__(self) -> None:
        self.groups: list[Any] = []
        self.registrations: list[Any] = []

    def reply(self, path: str, body: Any) -> Any:
        if path.startswith("/scored_data"):
            self.groups += body if isinstance(body, list) else [body]
            return {"status": "received", "groups_processed": 1}
        if path == "/register-env":
            self.registrations.append(body)
            return {
                "status": "success",
                "env_id": 0,
                "wandb_name": "golden_0",
                "checkpoint_dir": "checkpoints",
                "starting_step": 0,
                "checkpoint_interval": 2,
                "num_steps": GROUPS,
            }
        if path == "/status-env":
            return {
                "current_step": len(self.groups),
                "queue_size": 0,
                "unallocated_fraction": 1.0,
                "self_queue_size": 0,
                "max_group_size": GROUP_SIZE,
                "env_weight": 1.0,
            }
        if path == "/info":
            return {"batch_size": GROUP_SIZE, "max_token_len": 512}
        if path == "/wandb_info":
            return {"group": "g", "project": "p"}
        if path == "/status":
            return {"current_step": len(self.groups), "queue_size": 0}
        return {"status": "success", "message": "AtroposLib API"}


@contextlib.contextmanager
def served(told: Model | Trainer, routes: tuple[str, ...] = ()) -> Iterator[str]:
    """Serve on a free port; a model has the `routes` alone."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self.answer({"data": [{"id": "golden", "max_model_len": 4096}]})
            elif isinstance(told, Model):
                self.answer({"status": "ok"})
            else:
                self.do_POST()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                raw = gzip.decompress(raw)
            body = json.loads(raw) if raw else None
            if routes and self.path not in routes:
                self.answer({"detail": "Not Found"}, 404)
            elif routes == ("/generate", "sglang") and "input_ids" not in body:
                self.answer({"detail": "input_ids"}, 422)
            elif routes == ("/generate", "vllm") and "input_ids" in body:
                self.answer({"detail": "prompt"}, 422)
            else:
                with lock:
                    self.answer(told.reply(self.path, body))

        def answer(self, value: Any, status: int = 200) -> None:
            raw = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: object) -> None:
            pass

    lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


# -- what is left of a run -------------------------------------------------------------

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def masked(value: Any, folder: str) -> Any:
    text = json.dumps(value, sort_keys=True).replace(folder, "FOLDER")
    text = UUID.sub("UUID", text.replace(str(CHECKOUT), "CHECKOUT"))
    return json.loads(re.sub(r"127\.0\.0\.1:\d+", "HOST", text))


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a value; lists of numbers are leaves."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{path}.{name}")
    elif isinstance(value, list) and not all(isinstance(v, int | float) for v in value):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}[{number}]")
    else:
        yield path, value


def files(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a run's files by a name that stays, in a fixed order."""
    for path in sorted(folder.rglob("*.json*")):
        name = UUID.sub("UUID", str(path.relative_to(folder)))
        name = re.sub(r"\d{8}_\d{6}", "TIME", name)
        try:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
        except ValueError:
            continue  # a script of a report's page
        if "metrics" not in name:
            lines.sort(key=lambda line: json.dumps(line, sort_keys=True)[-400:])
            lines.sort(key=_place)
        counts: Counter[str] = Counter()
        for line in lines:
            # By its item, as how far `serve` comes depends on the machine.
            place = _place(line)
            yield f"{name} {place} {counts[place]}", line
            counts[place] += 1


def _place(line: Any) -> str:
    known = line if isinstance(line, dict) else {}
    return " ".join(str(known.get(name)) for name in ("task", "index", "seed"))


def run(argv: list[str], folder: str) -> tuple[int, str]:
    environ = os.environ | {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "reasoning_gym_environment.py"), *argv],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    if done.returncode:
        print(argv[0], done.returncode, done.stderr[-2000:], file=sys.stderr)
    return done.returncode, done.stdout


def options(url: str, folder: str, kind: str, **env: str) -> list[str]:
    known = {
        "tokenizer_name": str(TOKENIZER.parent),
        "use_wandb": "false",
        "tasks": TASKS,
        "group_size": str(GROUP_SIZE),
        "max_token_length": "480",
        "num_workers": "1",
        "data_dumps_dir": f"{folder}/dumps",
        "dump_rollouts": "true",
        "dump_failed_rollouts": "true",
        "max_num_workers": "1",
        "seed": "5",
        "steps_per_eval": "-1",
        "total_steps": str(GROUPS),
        "wandb_name": "golden",
        "max_eval_workers": "1",
        "num_eval_samples_per_task": "2",
    }
    return [f"--env.{name}={value}" for name, value in (known | env).items()] + [
        f"--openai.base_url={url}/v1",
        "--openai.model_name=golden",
        f"--openai.tokenizer_name={TOKENIZER.parent}",
        f"--openai.server_type={kind}",
    ]


SERVERS = {
    "vllm": ("vllm", ("/v1/completions", "/v1/chat/completions")),
    "sglang": ("sglang", ("/generate", "sglang")),
    "atropos": ("vllm", ("/generate", "vllm")),
    "chat": ("openai", ("/v1/chat/completions",)),
}


def told_by(found: dict[str, Any], folder: str) -> dict[str, Any]:
    leaves = {}
    for name, value in found.items():
        for path, leaf in flat(masked(value, folder)):
            leaves[f"{name}{path}"] = leaf
    return leaves


def serve(server: str, **env: str) -> dict[str, Any]:
    kind, routes = SERVERS[server]
    model, trainer = Model(), Trainer()
    with tempfile.TemporaryDirectory() as folder, served(model, routes) as url:
        with served(trainer) as api:
            argv = ["serve", *options(url, folder, kind, rollout_server_url=api, **env)]
            status, _ = run(argv, folder)
        found: dict[str, Any] = {"status": status, "register": trainer.registrations}
        order = sorted(trainer.groups[:GROUPS], key=lambda group: str(group["tokens"]))
        found |= {f"group {i}": group for i, group in enumerate(order)}
        wanted = sorted(model.requests[:3], key=lambda told: str(told))
        found |= {f"request {i}": told for i, told in enumerate(wanted)}
        return told_by(found | dict(files(Path(folder))), folder)


def process(server: str, command: str = "process", **env: str) -> dict[str, Any]:
    kind, routes = SERVERS[server]
    with tempfile.TemporaryDirectory() as folder, served(Model(), routes) as url:
        argv = [command, *options(url, folder, kind, **env)]
        status, out = run(
            [*argv, *(["--json"] if command == "evaluate" else [])], folder
        )
        found: dict[str, Any] = {"status": status}
        if command == "evaluate":
            found["json"] = json.loads(out) if out.startswith("{") else out
            for other in (["compare", "--json"], ["rescore", "--json"]):
                path = next(Path(folder).rglob("samples.jsonl"), None)
                if path is not None:
                    more, out = run([*other, str(path)], folder)
                    text = out if out.startswith(("{", "[")) else json.dumps(out)
                    found[other[0]] = [more, json.loads(text)]
        else:
            path = next(Path(folder).rglob("reasoning_gym.jsonl"), None)
            if path is not None:
                more, out = run(["rescore", "--json", str(path)], folder)
                text = out if out.startswith(("{", "[")) else json.dumps(out)
                found["rescore"] = [more, json.loads(text)]
        return told_by(found | dict(files(Path(folder))), folder)


HOOKED = """
import sys
sys.path.insert(0, {checkout!r})
import reasoning_gym_environment as entry

calls = {{}}

def counted(name, is_async):
    def note(args, out):
        calls.setdefault(name, []).append([type(a).__name__ for a in args] + [
            type(out).__name__])
    if is_async:
        async def hook(self, *args, **more):
            out = await getattr(super(Hooked, self), name)(*args, **more)
            note(args, out)
            return out
    else:
        def hook(self, *args, **more):
            out = getattr(super(Hooked, self), name)(*args, **more)
            note(args, out)
            return out
    return hook

class Hooked(entry.ReasoningGymEnv):
    pass

ASYNC = ("setup get_next_item collect_trajectories score postprocess_histories"
         " handle_send_to_api add_rollouts_for_wandb rollout_and_score_eval evaluate"
         " create_rollout_table wandb_log close register_env get_server_info get_status"
         " env_step_checks setup_wandb handle_env cleanup").split()
for name in ASYNC:
    setattr(Hooked, name, counted(name, True))
for name in ("save_checkpoint", "load_checkpoint"):
    setattr(Hooked, name, counted(name, False))
try:
    Hooked.cli()
finally:
    import json
    names = {{n: [len(c) if n not in LOOPED else 0, sorted(map(str, c))[:1]]
              for n, c in calls.items()}} if (LOOPED := {{
                  "get_status", "env_step_checks", "get_next_item", "wandb_log",
                  "create_rollout_table", "save_checkpoint", "evaluate"}}) else None
    open("hooks.json", "w").write(json.dumps(names))
"""


def hooks(command: str) -> dict[str, Any]:
    kind, routes = SERVERS["vllm"]
    with tempfile.TemporaryDirectory() as folder, served(Model(), routes) as url:
        program = Path(folder, "hooked.py")
        program.write_text(HOOKED.format(checkout=str(CHECKOUT)))
        with served(Trainer()) as api:
            more = {"rollout_server_url": api, "steps_per_eval": "4"}
            argv = [command, *options(url, folder, kind, **more)]
            environ = os.environ | {"HF_HUB_OFFLINE": "1"}
            subprocess.run(
                [sys.executable, str(program), *argv],
                cwd=folder,
                env=environ,
                capture_output=True,
                timeout=400,
                check=False,
            )
        path = Path(folder, "hooks.json")
        return told_by(json.loads(path.read_text()) if path.exists() else {}, folder)


def main() -> None:
    cases = {
        f"serve {server}": lambda s=server: serve(s)
        for server in ("vllm", "sglang", "atropos")
    }
    cases["serve curriculum"] = lambda: serve(
        "vllm", complexity_mode="curriculum", task_choice="adaptive"
    )
    cases["serve evaluating"] = lambda: serve(
        "vllm", temperature="1.0", steps_per_eval="4"
    )
    cases |= {f"process {server}": lambda s=server: process(s) for server in SERVERS}
    cases |= {
        f"evaluate {server}": lambda s=server: process(
            s, "evaluate", eval_completions="2"
        )
        for server in ("vllm", "chat")
    }
    cases |= {
        f"hooks {name}": lambda n=name: hooks(n)
        for name in ("serve", "process", "evaluate")
    }
    wanted = sys.argv[2:]
    for name, case in cases.items():
        if wanted and name not in wanted:
            continue
        first, second = case(), case()
        for key, value in first.items():
            if second.get(key) == value:
                line = {"key": f"{name} | {key}", "value": value}
                print(json.dumps(line), flush=True)


main()
