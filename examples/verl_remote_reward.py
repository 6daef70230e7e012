"""The reward of verl from a score server, for items of `export items --format verl`.

    reward.custom_reward_function.path=examples/verl_remote_reward.py
    +reward.custom_reward_function.reward_kwargs.url=http://localhost:8010/reward

verl's machines need no package of ours. `?thinking_open=true` at the end of the URL is
for chat templates that open `<think>`.
"""

import http.client
import json
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

JSON = {"Content-Type": "application/json"}
PAUSES_S = (1, 2, 4, 8, 16, 16, 16, 16, 16, 0)


def compute_score(data_source, solution_str, ground_truth, extra_info, url, **others):
    """Return `score`, in [0, 1], and `outcome`; raises RuntimeError without a score."""
    row = {"label": extra_info["item"], "response": solution_str}
    request = Request(url, json.dumps(row).encode(), JSON)  # noqa: S310 - your own
    for pause_s in PAUSES_S:
        try:
            with urlopen(request, timeout=120) as reply:  # noqa: S310
                return json.load(reply)
        except (OSError, http.client.HTTPException) as error:
            why = error.read().decode() if isinstance(error, HTTPError) else error
            if getattr(error, "code", 500) < 500:  # which no repetition helps
                break
        time.sleep(pause_s)
    raise RuntimeError(f"no score: {why}")
