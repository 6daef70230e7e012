"""The model and the tokenizer of a run whose settings do not name them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.inference.only_model import only_model
from rg_env.settings.environment_settings import START_MODEL


def found_model(
    config: Any,
    servers: Sequence[Any],
    *,
    named: Sequence[bool],
    names_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where nobody has named them.

    The model is the one of a server that has exactly one; the tokenizer is that of the
    first server's model, and none where texts do and the model's name is no place.

    Args:
        config: Settings of the environment.
        servers: Settings of the servers.
        named: Whether the model of each of these was named, shape (S,).
        names_tokenizer: Whether the tokenizer was named.
        trains: Whether a trainer gets what the model writes.
    """
    follows = not names_tokenizer and config.tokenizer_name == START_MODEL
    texts_do = not trains and all(s.server_type == "openai" for s in servers)
    changed, tokenizers = list[Any](), list[str]()
    for server, is_named in zip(servers, named, strict=True):
        lacks = not is_named and server.model_name == START_MODEL
        asks = lacks or (follows and server.server_type != "openai")
        found = only_model(server) if asks else None
        if found and lacks:
            server = server.model_copy(update={"model_name": found.name})
        is_its = found is not None and found.name == server.model_name
        tokenizers.append(found.tokenizer if found and is_its else server.model_name)
        changed.append(server)
    if follows:
        own = tokenizers[0]
        if texts_do and "/" not in own and not Path(own).is_dir():
            own = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": own})
    return config, changed
