"""A process with a pool may fork: parent and child share no worker and no socket."""

import os
import signal

import pytest

from tests.support.processes import descendants, left_alive
from tests.support.worker_attacks import run_script, start_script

pytestmark = pytest.mark.processes

BEGIN = """\
import os, sys, threading, time
from rg_env.workers import fork_server
from rg_env.workers.worker_pool import WorkerPool

pool = WorkerPool(1)

def find_pids():
    return pool.call(os.getpid, deadline_s=60), pool.call(os.getppid, deadline_s=60)

def find_sockets():
    targets = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return [t for t in targets if os.path.exists(t) and "socket" in os.readlink(t)]
"""


def test_child_has_workers_of_its_own_and_ends_none_of_its_parents(tmp_path):
    source = f"""{BEGIN}
before = find_pids()
if os.fork() == 0:
    print(*find_pids(), flush=True)
    sys.exit()
os.wait()
assert find_pids() == before
print(*before)
"""
    child_pids, parent_pids = map(str.split, run_script(tmp_path, source).splitlines())
    assert len({*child_pids, *parent_pids}) == 4


def test_child_that_is_forked_during_a_call_has_workers_of_its_own(tmp_path):
    source = f"""{BEGIN}
find_pids()
calls = [pool.submit(time.sleep, 0.5, deadline_s=60) for _ in range(2)]
with pool._lock, pool._fork_server._lock:
    if os.fork() == 0:
        find_pids()
        sys.exit()
assert os.wait()[1] == 0
print([call.result() for call in calls])
"""
    assert run_script(tmp_path, source) == "[None, None]\n"


def test_killed_owner_leaves_no_process_despite_a_busy_worker_and_a_forked_child(
    tmp_path,
):
    source = f"""{BEGIN}
pool = WorkerPool(2)
pool.submit(pow, 9, 9**9, deadline_s=60)
find_pids()  # the other worker
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""
    with start_script(tmp_path, source) as script:
        assert script.stdout
        child = int(script.stdout.readline())
        started = descendants(script.pid) - {child}
        script.kill()
        try:
            assert len(started) == 3
            assert left_alive(started) == []
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("name", ["_start", "COMMAND"])
def test_child_keeps_no_end_of_a_socket_that_is_being_opened(tmp_path, name):
    source = f"""{BEGIN}
is_open = threading.Event()

class Slow:
    def __init__(self, real):
        self.real = real
    def __getattr__(self, name):
        self()
        return getattr(self.real, name)
    def __call__(self, *args):
        is_open.set()
        time.sleep(0.3)
        return args and self.real(*args)

fork_server.{name} = Slow(fork_server.{name})
call = threading.Thread(target=find_pids)
call.start()
is_open.wait()
if os.fork() == 0:
    os._exit(len(find_sockets()))
print(os.waitstatus_to_exitcode(os.wait()[1]))
call.join()
"""
    assert run_script(tmp_path, source) == "0\n"
