"""`simulated-server`: an inference server whose model is the simulated policy.

It knows the answers because it draws the same items, so the settings that decide items
must be those of the environment; to any other question it can only guess. It cannot
follow settings with which results decide what comes next.
"""

from __future__ import annotations

import sys

import click

from rg_env import ending
from rg_env.cli.command import option, workers
from rg_env.cli.main import main
from rg_env.cli.options import Given, SettingsCommand, options
from rg_env.cli.server_commands import address_options, listen
from rg_env.demo.inference_server import InferenceServer, build_app, serve_announced
from rg_env.demo.model import AnswerKey, PolicyModel, build_entry, sampled_entries
from rg_env.demo.policy import PolicyProfile
from rg_env.errors import SettingError
from rg_env.results.terminal import WorkProgress
from rg_env.settings.environment_settings import CheckedSettings, deciding
from rg_env.settings.setting_types import Decides
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import prepare_items
from rg_env.stream.selection import StreamSettings
from rg_env.workers.worker_pool import WorkerPool

SETTINGS = deciding(Decides.ITEMS, Decides.EVAL_ITEMS) - {"shard_index", "num_shards"}
SETTINGS |= {"task_modules", "scorer_fixes"}


async def build_key(pool: WorkerPool, settings: CheckedSettings) -> AnswerKey:
    """Return the answers to the items that the settings mean."""
    stream = await prepare_items(pool, settings, Feedback(0.5))
    evaluation = stream.evaluation
    with WorkProgress("making evaluation items", evaluation.total, "items") as progress:
        items = await evaluation.finished(lambda number: progress.advance(by=number))
    return AnswerKey(sampled_entries(stream), known=[*map(build_entry, items)])


@options("simulated-server --port 9004 --tasks gcd", fields=SETTINGS, is_bare=True)
@address_options(9004)
@option("--skill", click.FloatRange(0.01, 0.99), 0.55, "Mean skill of the model")
@option("--latency_ms", click.FloatRange(0.0), 0.0, "Delay before every reply")
def simulated_server(
    command: SettingsCommand,
    given: Given,
    host: str,
    port: int,
    skill: float,
    latency_ms: float,
) -> int:
    """Run an inference server with a simulated model.

    The server speaks the protocol of vLLM, with chats. It loads no model: it
    knows the answers to the items and makes mistakes at a set rate. The other options
    are settings of the environment and must have the same values as there.
    """
    # It answers every instance that shares the stream, and waits longer for an item
    # than an environment does: what that has queried, the key has to have made.
    given.env |= {"shard_index": 0, "num_shards": 1}
    given.env |= {"num_workers": 1, "item_deadline_s": 60.0}
    settings, _ = given.over(command.start)
    if StreamSettings.of(settings).follows_results:
        raise SettingError(
            "a curriculum and adaptive weights depend on results that this server does"
            " not know; use `demo --complexity_mode curriculum`"
        )
    profile = PolicyProfile(mean_skill=skill)

    async def serve(pool: WorkerPool) -> None:
        model = PolicyModel(await build_key(pool, settings), profile)
        app = build_app(InferenceServer(model, latency_ms))
        await serve_announced(app, "simulated policy server", port, host)

    listen(host, port).close()  # tried before the items are made
    with workers(1, settings.task_modules) as pool:
        ending.run(serve(pool))
    return 0


if __name__ == "__main__":
    sys.exit(main(None, ["simulated-server", *sys.argv[1:]]))
