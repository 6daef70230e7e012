"""Servers that are not what the settings say: each answers as the real one does."""

import json
from pathlib import Path

from aiohttp import web

from tests.support.web_apps import app_of, serve_app

MODEL = "Qwen/Qwen3-8B"
NOT_FOUND = (404, {"detail": "Not Found"})
HTML = "<!doctype html><html><head><title>Welcome</title></head><body>Hi</body></html>"


def answered(answer):
    """Return a reply of a body, or of a status, a body or a place, and headers."""
    answer = answer if isinstance(answer, tuple) else (200, answer)
    status, body, *more = answer
    if 300 <= status < 400:
        return web.Response(status=status, headers={"Location": body})
    headers = more[0] if more else None
    if isinstance(body, str):
        kind = "text/html" if body.startswith("<") else "text/plain"
        return web.Response(
            status=status, text=body, content_type=kind, headers=headers
        )
    return web.json_response(body, status=status, headers=headers)


class Odd:
    """A server of fixed replies, or functions of the body, by "GET /path" and so on."""

    def __init__(self, replies, otherwise=NOT_FOUND):
        self.replies, self.otherwise = replies, otherwise
        self.asked, self.bodies = [], []

    async def answer(self, request):
        name = f"{request.method} {request.path}"
        self.asked.append(name)
        answer = self.replies.get(name, self.otherwise)
        if callable(answer):
            body = await request.json() if request.can_read_body else None
            self.bodies.append(body)
            answer = answer(body)
        return answered(answer)


def refusal(message, code=None, param=None):
    kind = "invalid_request_error"
    error = {"message": message, "type": kind, "param": param, "code": code}
    return {"error": error}


def chat(body):
    """Answer a chat request as an endpoint of the OpenAI kind."""
    message = {"role": "assistant", "content": "<answer>x</answer>"}
    choices = [
        {"index": i, "message": message, "finish_reason": "stop"}
        for i in range(body.get("n", 1))
    ]
    told = {"id": "1", "object": "chat.completion", "created": 0, "model": MODEL}
    return {**told, "choices": choices}


def models(owner="openai", *names):
    rows = [{"id": n, "object": "model", "owned_by": owner} for n in names or [MODEL]]
    return {"object": "list", "data": rows}


RECORDED = Path(__file__).parents[1] / "inference/recorded/vllm-0.32.0.json"
"""Request to what a stock vLLM 0.32.0 answered; recorded/record.py queried it."""


def recorded(name):
    said = json.loads(RECORDED.read_text())[name]
    return said["status"], said["reply"]


def completions(body, name="ids", **changes):
    """Answer as the recorded server did, with fields of choices or logprobs changed."""
    _, reply = recorded(name)
    reply["model"] = body["model"]
    reply["choices"] = [recorded(name)[1]["choices"][i % 2] for i in range(body["n"])]
    for choice in reply["choices"]:
        for field, value in changes.items():
            is_inner = field in (choice["logprobs"] or {})
            (choice["logprobs"] if is_inner else choice)[field] = value
    return reply


def stock_vllm(complete=completions):
    pages = {
        "GET /health": (200, ""),
        "GET /v1/models": models("vllm"),
        "POST /v1/chat/completions": chat,
        "POST /v1/completions": complete,
    }
    return Odd(pages)


def with_changes(name="ids", **changes):
    return stock_vllm(lambda body: completions(body, name, **changes))


def openai_endpoint(answer=chat, *names):
    pages = {
        "GET /v1/models": models("openai", *names),
        "POST /v1/chat/completions": answer,
    }
    unknown = "Unknown request URL. Please check the URL for typos"
    return Odd(pages, otherwise=(404, refusal(unknown, "unknown_url")))


def serving(odd):
    """Serve in this process while a context lasts; yield the base URL, without /v1."""
    return serve_app(app_of(odd.answer))
