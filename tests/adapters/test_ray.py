"""Calls over the nodes of a Ray cluster, with two nodes on this machine.

`test_their_packages.py` runs this file in an environment that holds Ray.
"""

import asyncio
from itertools import islice

import pytest

pytest.importorskip("ray")

from ray.cluster_utils import Cluster as Nodes

from rg_env import Tasks
from rg_env.adapters.ray import CALLS_PER_CORE, Cluster
from rg_env.results.rescoring import rescore_here
from rg_env.results.samples import Sample

pytestmark = pytest.mark.processes


def samples(count):
    """Return right and wrong completions of some items."""
    return [
        Sample(
            task=item.task,
            category="",
            question=item.question,
            score=None,
            outcome="",
            row={
                "params": dict(item.params),
                "seed": item.seed,
                "completion": f"<answer>{answer}</answer>",
            },
        )
        for item in islice(Tasks("gcd", "spell_backward", "chain_sum"), count)
        for answer in (item.gold, "7", "one third")
    ]


@pytest.fixture
def nodes():
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    yield nodes
    nodes.shutdown()


def test_scores_are_those_of_one_machine_though_a_node_is_killed(nodes):
    node = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    cluster = Cluster(nodes.address)
    assert cluster.max_calls == 2 * CALLS_PER_CORE
    parts = [samples(40)[start : start + 12] for start in range(0, 120, 12)]

    async def over_nodes():
        calls = [asyncio.ensure_future(cluster.call(rescore_here, p)) for p in parts]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        nodes.remove_node(node, allow_graceful=False)
        return await asyncio.gather(*calls)

    try:
        assert asyncio.run(over_nodes()) == list(map(rescore_here, parts))
    finally:
        cluster.close()
