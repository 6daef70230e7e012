"""Our client of each type of server, as the framework builds and closes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from rg_env.inference.client import Client
from rg_env.inference.routes import ATROPOS, COMPLETIONS, SGLANG


class VllmClient(Client, VLLMServer):
    """A client of vLLM: the server of Atropos' example trainer, or a stock one."""

    routes = (COMPLETIONS, ATROPOS, SGLANG)


class SglangClient(Client, SGLangServer):
    """A client of SGLang."""

    routes = (SGLANG, COMPLETIONS, ATROPOS)


class OpenAiClient(Client):
    """A client of an endpoint of the OpenAI kind, which `Inference` gives a tokenizer.

    The framework refuses to train with a client that is its `OpenAIServer`, whatever
    the server gives, so this one is none.
    """

    chats = True
    routes = (COMPLETIONS, SGLANG, ATROPOS)


class TrlClient(Client, TrlVllmServer):
    """A client of TRL's server, which is a stock vLLM since TRL 1.12."""

    routes = (COMPLETIONS, SGLANG, ATROPOS)

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        # The framework's takes the model's name for its tokenizer's.
        named = config.model_copy(update={"model_name": config.tokenizer_name})
        super().__init__(named, reasoning_config=reasoning_config)
        self.config = self.connection.config = config


CLIENTS: dict[str, type[Client]] = {
    "vllm": VllmClient,
    "sglang": SglangClient,
    "openai": OpenAiClient,
    "trl": TrlClient,
}
"""By `server_type`."""


def client_of(config: Any, reasoning_config: Any = None) -> Client:
    """Return our client of a server; the framework calls this as it would a class."""
    return CLIENTS[config.server_type](config, reasoning_config=reasoning_config)


async def close_clients(clients: Iterable[Any]) -> None:
    """End the health checks of clients and close their connections."""
    for client in clients:
        if getattr(client, "check_task", None) is not None:
            client.check_task.cancel()
        if isinstance(client, Client):
            await client.close()
        elif hasattr(client, "openai"):  # a subclass named its own client
            await client.openai.close()
