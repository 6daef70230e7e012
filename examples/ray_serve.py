"""The score server on the nodes of a Ray cluster, behind one address.

    pip install '.[server]' 'ray[serve]'    # on each node
    python examples/ray_serve.py --replicas 4 --secret_file FILE
    serve shutdown                          # ends it

Clients put the secret into the URL, as /SECRET/score of any node. What a lost node
worked on ends with an error, for the client to send again, and never with a score.
Replicas do not share a position or levels: ask `/items` with `start`.
"""

import argparse
from pathlib import Path

import ray
from ray import serve

from rg_env import Tasks
from rg_env.adapters.http import ScoreServer
from rg_env.serving import ClientCheck
from rg_env.workers.worker_pool import default_pool_size

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--port", type=int, default=8010)
parser.add_argument("--secret_file", type=Path, required=True)
given = parser.parse_args()
secret = given.secret_file.read_text().strip()
if len(secret) < 16:
    parser.error("--secret_file: the secret has 16 characters or more")


def application():
    """Return the application, in a replica."""
    return ClientCheck(ScoreServer(Tasks(levels="random")), secret)


cores = {"num_cpus": default_pool_size()}  # a replica has so many workers
how = {"ray_actor_options": cores, "max_ongoing_requests": 1024}
deployment = serve.deployment(num_replicas=given.replicas, **how)
ray.init("auto")
serve.start(http_options={"host": "0.0.0.0", "port": given.port})  # noqa: S104
serve.run(deployment(serve.ingress(application)()).bind())
