"""The process that forks workers: its start, its end, and what workers inherit."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from rg_env.workers.call import PreloadError
from rg_env.workers.worker_pool import WorkerPool
from tests.support.worker_attacks import (
    LONG_S,
    evaluate,
    execute,
    new_pool,
    run_script,
    works,
)

pytestmark = pytest.mark.processes


def test_fork_server_that_dies_is_replaced_and_its_calls_run_again(single):
    server = single.call(os.getppid, deadline_s=LONG_S)
    source = "__import__('time').sleep(pid == __import__('os').getppid()) or 5"
    call = single.submit(eval, source, {"pid": server}, deadline_s=LONG_S)
    time.sleep(0.2)
    os.kill(server, signal.SIGKILL)
    assert call.result() == 5
    assert single.call(os.getppid, deadline_s=LONG_S) != server


def test_preload_that_fails_is_named():
    pool = WorkerPool(1, preload=["no_such_module"])
    with contextlib.closing(pool), pytest.raises(PreloadError) as caught:
        works(pool)
    assert caught.value.class_name == "ModuleNotFoundError"
    assert "no_such_module" in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_while_preloading_is_a_lost_worker_that_is_replaced(number, tmp_path):
    tried = str(tmp_path / "tried")
    source = f"""\
import os, time
if not os.path.exists({tried!r}):
 os.mkdir({tried!r}); os.kill(os.getpid(), {number:d}); time.sleep(60)
"""
    preload = [f"builtins:exec:{source}"]
    with new_pool(preload=preload) as pool:
        assert works(pool)


def test_owner_without_file_handles_gets_an_error_and_can_go_on(tmp_path):
    source = """\
import math, resource
from rg_env.workers.call import WorkerLostError
from rg_env.workers.worker_pool import WorkerPool
pool = WorkerPool(1)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
for number in (4, 5, 6, 7, limits[0]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, limits[1]))
    try: print(pool.submit(math.sqrt, 4.0, deadline_s=9).result(20))
    except WorkerLostError: print('lost')
pool.close()
"""
    assert run_script(tmp_path, source) == "lost\n" * 4 + "2.0\n"


def test_main_script_is_not_imported_again(tmp_path):
    imports = tmp_path / "imports"
    source = (
        "import math, os\n"
        f"open({str(imports)!r}, 'a').write(f'{{__name__}}\\n')\n"
        "from rg_env.workers.worker_pool import WorkerPool\n"
        "if __name__ == '__main__':\n"
        f"    os.chdir({str(tmp_path)!r})\n"
        "    pool = WorkerPool(2, preload=['json'])\n"
        "    print(pool.call(math.sqrt, 4.0, deadline_s=60))\n"
        "    pool.close()\n"
    )
    assert run_script(tmp_path, source) == "2.0\n"
    assert imports.read_text() == "__main__\n"


def test_hash_seed_is_zero_whatever_the_owner_has(tmp_path):
    source = """\
from rg_env.workers.worker_pool import WorkerPool
pool = WorkerPool(1)
print(pool.call(hash, 'x', deadline_s=60))
pool.close()
"""
    zero = run_script(tmp_path, "print(hash('x'))", PYTHONHASHSEED="0")
    for seed in ("1", "2"):
        assert run_script(tmp_path, source, PYTHONHASHSEED=seed) == zero


def test_worker_has_a_private_folder_that_goes_with_the_pool_and_no_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with new_pool() as pool:
        assert "secret" not in evaluate(pool, "str(__import__('os').environ)")
        folder = Path(pool.call(os.getcwd, deadline_s=LONG_S))
        execute(pool, "open('litter', 'w').write('x')")
        assert folder.is_dir()
        assert folder.parent.name.startswith("reasoning-gym-workers-")
        assert folder.parent.stat().st_mode & 0o077 == 0
        assert not Path("litter").exists()
    assert not folder.parent.exists()


def test_fork_server_has_one_thread_with_numpy_loaded():
    with new_pool(preload=["numpy"]) as pool:
        pid = pool.call(os.getppid, deadline_s=LONG_S)
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
