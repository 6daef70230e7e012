"""`serve` against the real API, with a stand-in trainer and a simulated model."""

import asyncio
import contextlib
import dataclasses
import signal
from collections import Counter

import aiohttp
import pytest
from parts import (
    GUARD_S,
    Simulated,
    build_env,
    descendants,
    free_port,
    left_alive,
    options_of,
    run_main,
    start_entry,
    until,
)

from rg_env.rollouts.dump_writer import read_groups
from rg_env.simulation.api_process import running_api
from rg_env.simulation.stand_in_trainer import StandInTrainer, TrainerConfig


def trainer_of(api, steps=4, groups=4, **changes):
    given = {
        "api_url": api,
        "batch_size": 4 * groups,
        "group_size": 4,
        "max_token_len": 2048,
        "num_steps": steps,
    }
    return StandInTrainer(TrainerConfig(**(given | changes)))


async def serve(env, trainer, steps):
    """Run an environment and a trainer until both have had their steps."""
    work = [
        asyncio.create_task(trainer.run(steps)),
        asyncio.create_task(env.env_manager()),
    ]
    try:
        await asyncio.wait_for(asyncio.gather(*work), GUARD_S)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def served(url, steps=4, trainer_changes=None, **changes):
    """Serve for some steps; return the environment and the trainer's counts."""
    async with running_api() as api:
        env = build_env(url, rollout_server_url=api, total_steps=steps, **changes)
        trainer = trainer_of(api, steps, **(trainer_changes or {}))
        await serve(env, trainer, steps)
        return env, trainer.counts


# -- the ledger ------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    env: object
    counts: object
    completions: int


@pytest.fixture(scope="module")
def full_run():
    """120 groups of 8 over all tasks."""
    server = Simulated()
    try:
        env, counts = asyncio.run(
            served(
                server.url,
                steps=15,
                trainer_changes={
                    "batch_size": 64,
                    "group_size": 8,
                    "max_token_len": 8192,
                },
                tasks=None,
                group_size=8,
                max_token_length=8192,
                num_workers=2,
            )
        )
        return Run(env, counts, server.completions)
    finally:
        server.stop()


def test_every_group_that_arrives_can_be_trained_on(full_run):
    assert full_run.counts.groups == 120
    assert full_run.counts.rollouts == 960
    assert full_run.counts.invalid_groups == 0
    assert full_run.counts.faults == {}


def test_no_group_is_turned_away_or_lost_on_its_way(full_run):
    fates = set(full_run.env.ledger.fates)
    assert fates <= {"sent", "no_signal", "cancelled"}


def test_every_rollout_asked_for_has_exactly_one_fate(full_run):
    metrics = full_run.env.metrics
    assert metrics.ledger.in_flight == 0
    assert metrics.ledger.asked == sum(metrics.ledger.fates.values())


def test_nothing_is_asked_of_the_server_outside_the_ledger(full_run):
    metrics = full_run.env.metrics
    # A group that is cancelled at the end may not have reached the server yet.
    assert full_run.completions <= metrics.ledger.asked
    assert (
        full_run.completions >= metrics.ledger.asked - metrics.ledger.fates["cancelled"]
    )


def test_many_tasks_take_part(full_run):
    assert len(full_run.env.metrics.tasks) > 50


# -- what the trainer and the servers ask for ------------------------------------------


def test_a_trainer_with_a_lower_limit_still_gets_groups(simulated):
    env, counts = asyncio.run(served(simulated.url, max_token_length=8192))
    assert counts.groups == 16
    assert counts.invalid_groups == 0
    assert env.ledger.fates["rejected"] == 0


def test_a_trainer_that_cuts_most_completions_still_gets_whole_groups(simulated):
    changes = {"max_token_len": 330}
    env, counts = asyncio.run(served(simulated.url, 2, changes))
    assert counts.invalid_groups == 0
    assert env.ledger.fates["rejected"] == 0


def test_a_server_of_type_sglang_serves(simulated):
    _, counts = asyncio.run(served(simulated.url, 2, kind="sglang"))
    assert counts.groups == 8
    assert counts.invalid_groups == 0


def test_a_server_of_type_openai_is_refused_with_the_types_that_train(capsys):
    status = run_main(["serve", *options_of(kind="openai")])
    assert status == 2
    said = capsys.readouterr().err
    assert "'vllm' or 'sglang'" in said and said.count("\n") == 1


def test_a_group_without_signal_is_sent_where_the_setting_allows_it(simulated):
    env, counts = asyncio.run(
        served(simulated.url, 2, ensure_scores_are_not_same=False)
    )
    assert counts.invalid_groups == 0
    assert env.ledger.fates["no_signal"] == 0


def test_groups_go_out_compressed_and_arrive(simulated):
    # Nothing but the API can tell: a group of four rollouts is over 1 kB.
    _, counts = asyncio.run(served(simulated.url, 1))
    assert counts.tokens > 1024


def test_an_api_that_comes_up_late_is_waited_for(simulated, logged):
    async def run():
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        env = build_env(simulated.url, rollout_server_url=url, total_steps=2)
        serving = asyncio.create_task(env.env_manager())
        await until(lambda: env._api.retries >= 2, "the environment has tried twice")
        async with running_api(port) as api:
            trainer = trainer_of(api, 2)
            await asyncio.wait_for(asyncio.gather(trainer.run(2), serving), GUARD_S)
        return trainer.counts, url

    counts, url = asyncio.run(run())
    assert counts.groups == 8
    said = [r.getMessage() for r in logged.records if url in r.getMessage()]
    assert len(said) == 2  # one line when it is down, one when it answers again
    assert "run-api" in said[0]


def test_a_restarted_api_gets_groups_again(simulated):
    async def run():
        port = free_port()
        async with running_api(port) as api:
            env = build_env(simulated.url, rollout_server_url=api, total_steps=1000)
            serving = asyncio.create_task(env.env_manager())
            await asyncio.wait_for(trainer_of(api).run(2), GUARD_S)
        async with running_api(port) as api:
            trainer = trainer_of(api)
            await asyncio.wait_for(trainer.run(3), GUARD_S)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        return trainer.counts, env.metrics

    counts, metrics = asyncio.run(run())
    assert (counts.steps, counts.invalid_groups) == (3, 0)
    assert metrics.ledger.in_flight == 0


def test_groups_wait_for_a_slow_trainer_without_being_cancelled(simulated):
    env, counts = asyncio.run(
        served(simulated.url, 3, {"step_time_s": 0.7}, max_batches_offpolicy=1)
    )
    assert counts.steps == 3
    # Those in flight at the end are; none for back-pressure.
    assert env.ledger.fates["cancelled"] <= 4 * env.max_num_workers


# -- several instances, and their ends -------------------------------------------------


@dataclasses.dataclass
class Ending:
    """What was seen of the end of one child process."""

    status: int
    said: str
    children_left: list
    connected_after: int
    steps_after: int
    dumps: list
    unfinished: list


class Instances:
    """Three instances with a minimum allocation, as a user starts them."""

    def __init__(self, api, url, folder):
        self.api = api
        self.folder = folder
        self.trainer = trainer_of(api, 10**6, step_time_s=0.05)
        self._url = url
        self._children = {}

    def start(self, name, total_steps=10**6):
        options = options_of(
            self._url,
            rollout_server_url=self.api,
            total_steps=total_steps,
            shard_index=len(self._children),
            num_shards=3,
            inference_weight=1.0,
            min_batch_allocation=0.1,
            dump_rollouts="true",
            dump_failed_rollouts="true",
            rollout_save_score_threshold=0.0,
            data_dumps_dir=self.folder / name,
        )
        self._children[name] = start_entry("serve", *options)

    async def connected(self):
        """Return how many instances the API counts in, by a probe's equal share."""
        probe = {
            "max_token_length": 2048,
            "desired_name": "probe",
            "weight": 1.0,
            "group_size": 4,
        }
        async with aiohttp.ClientSession() as http:
            async with http.post(f"{self.api}/register-env", json=probe) as reply:
                me = {"env_id": (await reply.json())["env_id"]}
            async with http.get(f"{self.api}/status-env", json=me) as reply:
                share = (await reply.json())["env_weight"]
            async with http.post(f"{self.api}/disconnect-env", json=me):
                pass
        return round(1 / share) - 1

    async def ending(self, name, number=None):
        """End an instance, by a signal or of itself, and look at what is left."""
        child = self._children[name]
        started = descendants(child.pid)
        if number is not None:
            child.send_signal(number)
        said, _ = await asyncio.to_thread(child.communicate, timeout=GUARD_S)
        left = await asyncio.to_thread(left_alive, started)
        connected = await self.connected()
        steps = self.trainer.counts.steps
        with contextlib.suppress(asyncio.TimeoutError):
            enough = until(lambda: self.trainer.counts.steps >= steps + 4, "batches")
            await asyncio.wait_for(enough, 20 if connected else 0)
        return Ending(
            child.returncode,
            said,
            left,
            connected,
            self.trainer.counts.steps - steps,
            list((self.folder / name).glob("*.jsonl")),
            list((self.folder / name).glob("*.part")),
        )

    def kill(self):
        for child in self._children.values():
            child.kill()
            child.communicate()


async def see_endings(url, folder):
    async with running_api() as api:
        instances = Instances(api, url, folder)
        training = asyncio.create_task(instances.trainer.run(10**6))
        try:
            instances.start("complete", total_steps=3)
            instances.start("terminated")
            instances.start("interrupted")
            endings = {"complete": await instances.ending("complete")}
            for name in ("terminated", "interrupted"):
                dumped = instances.folder / name
                await until(lambda d=dumped: any(d.glob("*.part")), "groups are dumped")
            endings["terminated"] = await instances.ending("terminated", signal.SIGTERM)
            endings["interrupted"] = await instances.ending(
                "interrupted", signal.SIGINT
            )
            return endings, instances.trainer.counts
        finally:
            training.cancel()
            await asyncio.gather(training, return_exceptions=True)
            instances.kill()


@pytest.fixture(scope="module")
def seen(simulated, tmp_path_factory):
    return asyncio.run(see_endings(simulated.url, tmp_path_factory.mktemp("endings")))


STATUSES = {"complete": 0, "terminated": 143, "interrupted": 130}


@pytest.mark.parametrize("name", STATUSES)
def test_the_exit_status_says_how_it_ended(seen, name):
    assert seen[0][name].status == STATUSES[name], seen[0][name].said


@pytest.mark.parametrize("name", STATUSES)
def test_no_process_is_left_behind(seen, name):
    assert seen[0][name].children_left == []


@pytest.mark.parametrize(
    ("name", "connected"), [("complete", 2), ("terminated", 1), ("interrupted", 0)]
)
def test_the_api_is_told_of_every_end(seen, name, connected):
    assert seen[0][name].connected_after == connected


@pytest.mark.parametrize("name", ["complete", "terminated"])
def test_the_other_instances_keep_filling_batches(seen, name):
    assert seen[0][name].steps_after >= 4


@pytest.mark.parametrize("name", STATUSES)
def test_every_dump_file_is_completed(seen, name):
    ending = seen[0][name]
    assert ending.unfinished == []
    assert sum(len(list(read_groups(path))) for path in ending.dumps) > 0


@pytest.mark.parametrize("name", STATUSES)
def test_an_end_in_order_shows_no_traceback(seen, name):
    assert "Traceback" not in seen[0][name].said


def test_shards_share_no_item(seen):
    indices = [
        group["index"]
        for ending in seen[0].values()
        for path in ending.dumps
        for group in read_groups(path)
    ]
    assert max(Counter(indices).values()) == 1


def test_a_mixture_of_instances_gives_valid_groups_alone(seen):
    assert seen[1].invalid_groups == 0


# -- the loop --------------------------------------------------------------------------


def test_an_evaluation_that_fails_does_not_end_the_run_and_is_logged(logged):
    class Failing(RuntimeError):
        pass

    async def run():
        env = build_env(steps_per_eval=2)

        async def evaluate():
            raise Failing("no luck")

        env.evaluate = evaluate
        env.status_dict = {"current_step": 3}
        await env.env_step_checks()
        await asyncio.wait([env.eval_runner])
        await asyncio.sleep(0)
        await env.close()

    asyncio.run(run())
    assert any(r.exc_info and r.exc_info[0] is Failing for r in logged.records)
