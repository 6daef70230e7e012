"""Fork servers that import the library once and lend their workers to many pools.

A fork server takes a second to import reasoning-gym, and nearly every test of an
environment makes a pool. It runs no job itself: what it forks for one test knows
nothing of another.
"""

import threading

from rg_env.workers.call import PoolClosedError
from rg_env.workers.fork_server import ForkServer


class LentForkServer:
    """What one pool has of a fork server that other pools have as well."""

    def __init__(self, lender):
        self._lender = lender
        self._lock = threading.Lock()
        self._workers = []
        self.closed = False

    def __getattr__(self, name):
        return getattr(self._lender, name)

    def fork(self):
        """Return a worker, which ends when this is closed."""
        worker = self._lender.fork()
        with self._lock:
            self._workers.append(worker)
            if not self.closed:
                return worker
        worker.close()
        raise PoolClosedError("the pool is closed")

    def close(self):
        """End the workers of this pool; may be called twice."""
        with self._lock:
            self.closed = True
        for worker in self._workers:
            worker.kill()


class SharedForkServers:
    """A fork server for every set of preloaded modules and limit of memory."""

    def __init__(self):
        self._servers = {}

    def lend(self, preload, memory_limit_bytes):
        """Return a fork server for a new pool, in the place of `ForkServer`."""
        kind = (tuple(preload), memory_limit_bytes)
        if kind not in self._servers:
            self._servers[kind] = ForkServer(preload, memory_limit_bytes)
        return LentForkServer(self._servers[kind])

    def close(self):
        """End all of them, at the end of the tests."""
        for server in self._servers.values():
            server.close()
