"""The example of Ray Serve on two nodes of this machine, one of which is killed.

`test_their_packages.py` runs this file beside the examples, where Ray is installed.
"""

import os
import runpy
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("ray.serve")

from ray.cluster_utils import Cluster

from rg_env import Tasks, score
from rg_env.workers.worker_pool import default_pool_size

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
SECRET = "0123456789abcdef"


@pytest.fixture
def nodes():
    # Each has room for one replica.
    cores = {"num_cpus": default_pool_size()}
    nodes = Cluster(initialize_head=True, head_node_args=cores)
    nodes.removed = nodes.add_node(**cores)
    nodes.wait_for_nodes()
    yield nodes
    nodes.shutdown()


@pytest.fixture
def url(nodes, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "secret").write_text(SECRET)
    where = ["--port", str(port), "--secret_file", tmp_path / "secret"]
    command = [sys.executable, HERE / "ray_serve.py", "--replicas", "2", *where]
    inherited = os.environ | {"RAY_ADDRESS": nodes.address}
    subprocess.run(command, env=inherited, check=True)
    return f"http://127.0.0.1:{port}/{SECRET}/reward"


def test_a_node_that_is_killed_while_it_scores_costs_no_score(nodes, url):
    example = runpy.run_path(str(HERE / "verl_remote_reward.py"))
    items = list(islice(Tasks("gcd", "spell_backward", "chain_sum"), 20))
    pairs = [(i, t) for i in items for t in (f"<answer>{i.gold}</answer>", "", "7")] * 8

    def call(pair):
        info = {"item": pair[0].to_json()}
        return example["compute_score"]("", pair[1], None, info, url)["score"]

    with ThreadPoolExecutor(16) as clients:
        calls = [clients.submit(call, pair) for pair in pairs]
        calls[len(pairs) // 4].result()
        nodes.remove_node(nodes.removed, allow_graceful=False)
        found = [call.result() for call in calls]
    assert found == [score(item, [text])[0].value for item, text in pairs]
