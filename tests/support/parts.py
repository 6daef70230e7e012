"""What the tests of the host's side are put together from: settings, children, HTTP.

Everything here is real: processes, sockets, files. The model alone is not.
"""

import asyncio
import contextlib
import copy
import functools
import ssl
import tempfile
import time
from pathlib import Path

import httpx
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from transformers import AutoTokenizer

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.cli.main import main
from rg_env.installation import PROJECT as REPO_ROOT
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.text_models import ChatTokenizer

ENTRY = REPO_ROOT / "reasoning_gym_environment.py"
TOKENIZER = str(TOKENIZER_FOLDER)
FAST_TASKS = ["basic_arithmetic", "chain_sum", "gcd", "leg_counting", "spell_backward"]
"""Tasks whose items cost nothing and whose workers start fast."""

NOWHERE = "http://127.0.0.1:9/v1"
"""A server that is not there."""

GUARD_S = 120
"""Against hanging; no test takes nearly as long."""


# -- read once -------------------------------------------------------------------------

# Nearly every test builds an environment, and each would read all certificates for its
# clients and its tokenizer twice, which is most of what it takes.
ssl.create_default_context = functools.cache(ssl.create_default_context)
_tokenizer_as_read = functools.cache(AutoTokenizer.from_pretrained)


def _own_tokenizer(*args, **kwargs):
    return copy.deepcopy(_tokenizer_as_read(*args, **kwargs))


AutoTokenizer.from_pretrained = _own_tokenizer


# -- settings --------------------------------------------------------------------------


def small_run():
    """Return settings with which a run takes little time."""
    return {
        "tokenizer_name": TOKENIZER,
        "use_wandb": False,
        "num_eval_samples_per_task": 1,
        "group_size": 4,
        "max_token_length": 2048,
        "num_workers": 1,
        "steps_per_eval": 0,
        # No test looks there; it is removed at the end.
        "data_dumps_dir": str(Path(tempfile.gettempdir()) / "dumps"),
    }


def _one_server(url, kind):
    return {
        "base_url": url if url.endswith(("/v1", SIMULATED)) else f"{url}/v1",
        "model_name": "small-model",
        "server_type": kind,
        "tokenizer_name": TOKENIZER,
    }


def env_config(**changes):
    given = small_run() | {"tasks": FAST_TASKS, "seed": 1918}
    return ReasoningGymEnvConfig(**(given | changes))


def server_config(url=NOWHERE, kind="vllm", **changes):
    given = {"api_key": "x", "health_check": kind not in ("openai", "trl")}
    return APIServerConfig(**(_one_server(url, kind) | given | changes))


def build_env(url=NOWHERE, kind="vllm", cls=ReasoningGymEnv, **changes):
    return cls(env_config(**changes), [server_config(url, kind)])


@contextlib.asynccontextmanager
async def ready_env(*args, **changes):
    env = build_env(*args, **changes)
    try:
        await env.setup()
        yield env
    finally:
        await env.close()


# -- the command line ------------------------------------------------------------------


def options_of(url=NOWHERE, **changes):
    """Return the command line of the settings of a small run."""
    given = {"use_wandb": "false", "tasks": ",".join(FAST_TASKS)}
    env = small_run() | given | {"complexity_mode": "None"}
    server = _one_server(url, "vllm")
    return [f"--env.{name}={value}" for name, value in (env | changes).items()] + [
        f"--openai.{name}={value}" for name, value in server.items()
    ]


def run_main(argv, env_cls=ReasoningGymEnv):
    """Run a command line in this process; return its status, SystemExit's included."""
    try:
        return main(env_cls, argv)
    except SystemExit as end:
        return end.code


# -- processes -------------------------------------------------------------------------


async def until(condition, what):
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        await asyncio.sleep(0.05)


# -- HTTP ------------------------------------------------------------------------------


def empty_api(url):
    """Have an Atropos API forget all that it knows, as a restart does."""
    httpx.get(f"{url}/reset_data", timeout=30)  # an error where it knew nothing yet


def vllm_reply(texts, finish_reason="stop"):
    """Return what a vLLM server answers, with these completions."""
    encoded = map(ChatTokenizer().encode, texts)
    return {
        "text": list(texts),
        "logprobs": [[[{n: -i / 8}] for i, n in enumerate(ids)] for ids in encoded],
        "finish_reasons": [finish_reason for _ in texts],
    }


def sglang_reply(texts, finish_reason="stop"):
    """As `vllm_reply`, of an SGLang server."""
    tokenizer = ChatTokenizer()
    return [
        {
            "text": text,
            "meta_info": {
                "finish_reason": {"type": finish_reason, "matched": 1},
                "output_token_logprobs": [
                    [-i / 8, n, None] for i, n in enumerate(tokenizer.encode(text))
                ],
            },
        }
        for text in texts
    ]


# -- rollouts --------------------------------------------------------------------------


class Exact:
    """A dataset object that is not the library's: 1 for the answer, else 0."""

    def score_answer(self, answer, entry):
        return float(answer == entry["answer"])


ENTRY_OF_FOUR = {
    "question": "2 + 2?",
    "answer": "4",
    "metadata": {"source_dataset": "sums"},
}


def rollout(text, *, dataset=None, entry=None, length=3, finish="stop", prompt=2):
    """Return a rollout as `score` takes it, of `length` completion tokens."""
    tokens = [*range(10, 10 + prompt), *range(50, 50 + length)]
    return {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "2 + 2?"},
            {"role": "assistant", "content": text},
        ],
        "rg_item": ENTRY_OF_FOUR if entry is None else entry,
        "dataset_obj": Exact() if dataset is None else dataset,
        "finish_reason": finish,
        "tokens": tokens,
        "masks": [-100] * prompt + tokens[prompt:],
        "logprobs": [1.0] * prompt + [-0.5] * length,
    }


RIGHT, WRONG = "<answer>4</answer>", "<answer>5</answer>"
