"""A small inference server, queried as a stock vLLM in its development mode is.

    python -m tests.examples.small_server FOLDER --port 9004

It has `/v1/completions` with a prompt as token ids, of which it reads `n`, `max_tokens`
and `temperature`, and the pages by which examples/trainer hands weights over. It ends
with its parent.
"""

import argparse
import itertools
from pathlib import Path

import orjson
from aiohttp import web
from transformers import AutoTokenizer

from rg_env import shutdown
from rg_env.executor import in_thread
from tests.support.inference_server import shape_reply
from tests.support.text_models import Generation
from tests.support.web_apps import MAX_BODY_BYTES, serve_announced

MODEL_NAME = "policy"
DONE = {"is_paused": False, "success": True}


class LlamaSampler:
    """Samples from a causal language model of transformers."""

    def load(self, folder):
        import torch
        from transformers import AutoModelForCausalLM

        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def sample(self, prompt, n, max_tokens, temperature, end_id, seed):
        """Return the ids, up to the first `end_id`, and log-probabilities of each."""
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)  # the other cores are the trainer's
        prompts = torch.tensor([prompt] * n)
        made = self._model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=True,
            temperature=temperature,
            top_k=0,
            max_new_tokens=max_tokens,
            eos_token_id=end_id,
            pad_token_id=end_id,
            output_logits=True,
            return_dict_in_generate=True,
        )
        ids = made.sequences[:, len(prompt) :]
        told = self._model.compute_transition_scores(
            made.sequences, made.logits, normalize_logits=True
        )
        ends = [[*row, end_id].index(end_id) + 1 for row in ids.tolist()]
        rows = zip(ids.tolist(), told.tolist(), ends, strict=True)
        return [(row[:end], logprobs[:end]) for row, logprobs, end in rows]


class SmallServer:
    """The handlers of the server; one thread has all to do with the sampler.

    So no completion is of two versions of the weights.
    """

    def __init__(self, sampler, folder):
        self._sampler = sampler
        self._folder = folder
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._seeds = itertools.count()
        sampler.load(folder)

    async def page(self, request):
        model = {"id": MODEL_NAME, "object": "model", "root": str(self._folder)}
        pages = {"/v1/models": {"object": "list", "data": [model]}}
        return web.json_response(pages.get(request.path, DONE))

    async def complete(self, request):
        body = orjson.loads(await request.read())
        end_id = self._tokenizer.eos_token_id
        args = [body[name] for name in ("prompt", "n", "max_tokens", "temperature")]
        made = await in_thread(self._sampler.sample, *args, end_id, next(self._seeds))
        generations = [
            Generation(
                self._tokenizer.decode(ids, skip_special_tokens=True),
                ids,
                logprobs,
                "stop" if ids[-1] == end_id else "length",
            )
            for ids, logprobs in made
        ]
        encoded = orjson.dumps(shape_reply(body, body["prompt"], generations))
        return web.Response(body=encoded, content_type="application/json")

    async def reload_weights(self, request):
        assert await request.json() == {"method": "reload_weights"}
        await in_thread(self._sampler.load, self._folder)
        return web.json_response({"results": [None]})


def main(sampler):
    """Serve the model that the command line names, until a signal comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    server = SmallServer(sampler, options.folder)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    told = ("/health", "/v1/models", "/version", "/is_paused")
    done = ("/pause", "/resume", "/reset_prefix_cache")
    app.add_routes(
        [
            *(web.get(path, server.page) for path in told),
            *(web.post(path, server.page) for path in done),
            web.post("/v1/completions", server.complete),
            web.post("/collective_rpc", server.reload_weights),
        ]
    )
    shutdown.run(serve_announced(app, "small server", options.port))


if __name__ == "__main__":
    main(LlamaSampler())
