"""What the inference server itself can serve, so that it is not what is measured."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import psutil

from rg_env.simulation.child_process import running_program

CONNECTIONS = 4
SECONDS = 1.0
PROMPT = list(range(200, 800))


async def measure_limit(tokens: int, group_size: int) -> dict[str, Any]:
    """Ask a server as fast as one process can, without latency.

    Returns:
        Requests and tokens a second as measured, and the requests a second that the
        server's own CPU time would allow, the asking left out.
    """
    ask = {
        "prompt": {"prompt_token_ids": PROMPT},
        "n": group_size,
        "max_tokens": 2 * tokens,
    }
    body = json.dumps(ask).encode()
    module = "rg_env.simulation.inference_server"
    async with running_program(module, f"--tokens={tokens}") as url:
        process = psutil.Process(await _pid_of(url))
        before = process.cpu_times()
        began = time.monotonic()
        asking = [_ask(url, body, began) for _ in range(CONNECTIONS)]
        requests = sum(await asyncio.gather(*asking))
        seconds = time.monotonic() - began
        after = process.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    return {
        "tokens": tokens,
        "requests_per_s": requests / seconds,
        "tokens_per_s": requests * group_size * tokens / seconds,
        "requests_per_cpu_s": requests / cpu_s if cpu_s else float("inf"),
    }


async def _pid_of(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/stats") as reply:
        return int((await reply.json())["pid"])


async def _ask(url: str, body: bytes, began: float) -> int:
    """Ask over one connection, without a library that would take the CPU."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**26)
    head = (
        f"POST /generate HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    requests = 0
    try:
        while time.monotonic() - began < SECONDS:
            writer.write(head.encode() + body)
            headers = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = headers.split(b"content-length:")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            requests += 1
    finally:
        writer.close()
    return requests
