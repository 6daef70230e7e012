"""Whether a server returns log-probabilities of the temperature it samples with.

vLLM returns those of temperature 1 unless it was started otherwise; a trainer's ratios
are wrong with them. A temperature divides the distance of any two log-probabilities, so
the distance of the likeliest first tokens at two temperatures tells.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import aiohttp
import orjson

from rg_env.inference.replies import NO_SUCH_FORM
from rg_env.inference.routes import NUM_LIKELIEST, TokenRoute

logger = logging.getLogger(__name__)

LEAST_LOGPROB = -1000.0
"""Below stand the numbers that some write for minus infinity."""


class WrongTemperatureError(ValueError):
    """The log-probabilities are of another temperature; the text says what to do."""


async def check_temperature(
    client: Any, route: TokenRoute, prompt: list[int], temperature: float
) -> None:
    """Refuse log-probabilities of temperature 1 where another is sampled with.

    Raises:
        WrongTemperatureError: They are.
    """
    spans = []
    try:
        for each in (1.0, temperature):
            one = {"n": 1, "max_tokens": 1, "temperature": each, "top_p": 1.0}
            bodies = await client.ask_route(route, prompt, one, **route.likeliest)
            reply = orjson.loads(b"".join(bodies[0]))
            spans.append(_span_of(route.of_likeliest(reply)))
    except (aiohttp.ClientResponseError, *NO_SUCH_FORM) as error:
        logger.warning(
            "whether %s returns log-probabilities of env.temperature cannot be seen"
            " (%s)",
            client.config.base_url,
            client.describe(error),
        )
        return
    at_one, at_own = spans
    if abs(at_own - at_one) < abs(at_own - at_one / temperature):
        raise WrongTemperatureError(
            f"{temperature:g} is sampled with, and it returns log-probabilities of 1;"
            " start vLLM with --logprobs-mode processed_logprobs, or set 1.0"
        )


def _span_of(logprobs: Iterable[Any]) -> float:
    known = [p for p in logprobs if isinstance(p, float) and p > LEAST_LOGPROB]
    likeliest = sorted(known, reverse=True)[:NUM_LIKELIEST]
    if len(likeliest) < 2:
        raise LookupError("no log-probabilities of the likeliest tokens")
    return likeliest[0] - likeliest[-1]
