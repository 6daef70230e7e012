"""Record what a real server answers, as the tests' servers answer it after it.

    vllm serve ./tiny --port 9104 --max-model-len 4096 --enforce-eager --dtype float32
    python tests/inference/recorded/record.py http://127.0.0.1:9104 ./tiny NAME.json

`./tiny` is a model from scratch with the demo's tokenizer, as examples/small_llama.py
makes it. Each request goes out as it stands here; the reply is kept whole.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

PROMPT = [11, 41, 297]
IDS = {"return_token_ids": True, "return_tokens_as_token_ids": True}
SHORT = {"prompt": PROMPT, "n": 2, "max_tokens": 8, "temperature": 1.0, "top_p": 1.0}
REQUESTS = {
    "ids": ("/v1/completions", {**SHORT, **IDS, "logprobs": 0}),
    "neither": ("/v1/completions", {**SHORT, "logprobs": 0}),
    "ids alone": ("/v1/completions", {**SHORT, **IDS}),
    "top_k of one": ("/v1/completions", {**SHORT, **IDS, "logprobs": 0, "top_k": 1}),
    "unknown model": ("/v1/completions", {**SHORT, "model": "other"}),
    "too long": ("/v1/completions", {**SHORT, "prompt": [5] * 5000}),
}


def ask(url, path, body, model):
    """Return status and reply of a request."""
    headers = {"Content-Type": "application/json"}
    data = json.dumps({"model": model, **body}).encode()
    request = urllib.request.Request(url + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def main(url, model, path):
    replies = {}
    for name, (route, body) in REQUESTS.items():
        status, reply = ask(url, route, body, model)
        replies[name] = {"route": route, "status": status, "reply": reply}
    text = json.dumps(replies, ensure_ascii=False, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
