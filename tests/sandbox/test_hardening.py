"""What a worker cannot do: each test attacks one property, through the real pool.

Jobs are `exec` and `eval` of the standard library, so that each attack is read where
it is made. Kernels that lack a layer skip what only that layer denies; what the pool
says and does on them is tested on this one, by having the kernel refuse the layer.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rg_env.items import worker_jobs
from rg_env.pool.pool_errors import JobFailed, WorkerDied
from rg_env.pool.worker_pool import DEFAULT_MEMORY_LIMIT_BYTES, WorkerPool
from rg_env.sandbox import syscalls
from rg_env.tasks.fallback_tasks import TASKS
from rg_env.tasks.solutions import solution

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 60.0
LAYERS = ("limits", "landlock", "seccomp")

C_CALLS = {
    "execve": (59, 221),
    "socket": (41, 198),
    "connect": (42, 203),
    "sendmsg": (46, 211),
    "unshare": (272, 97),
    "mount": (165, 40),
    "ptrace": (101, 117),
    "process_vm_writev": (311, 271),
    "rt_sigqueueinfo": (129, 138),
    "pidfd_open": (434, 434),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "setrlimit": (160, 164),
}
"""System calls that a job may try past Python, with their numbers by machine."""

REFUSE = """
import contextlib, ctypes, logging, os, struct, sys
from rg_env.sandbox import kernel_calls, syscalls
from rg_env.pool.pool_errors import DeadlineExceeded, JobFailed
from rg_env.pool.worker_pool import WorkerPool

COLUMN = syscalls.MACHINES.index(os.uname().machine)
SECCOMP, LANDLOCK = syscalls.SECCOMP[COLUMN], 444

def refuse(*numbers):
    code = [(0x20, 0, 0, 0)]
    for number in numbers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 38)]
    code += [(0x06, 0, 0, 0x7FFF0000)]
    packed = (struct.pack("=HBBI", *line) for line in code)
    program = ctypes.create_string_buffer(b"".join(packed))
    kernel_calls.prctl(kernel_calls.PR_SET_NO_NEW_PRIVS, 1)
    header = struct.pack("@HP", len(code), ctypes.addressof(program))
    kernel_calls.call(SECCOMP, 1, 0, header)

def attempt(source):
    try:
        print(pool.call(eval, source, deadline_s=60))
    except JobFailed as error:
        print(error.kind)

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
"""
"""The head of a script that runs where the kernel refuses a layer, as some do."""


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(1, preload=worker_jobs.PRELOAD)
    pool.call(os.getpid, deadline_s=LONG_S)
    if pool.sandbox_layers != LAYERS:
        pytest.skip(f"this kernel gives a worker {pool.sandbox_layers} only")
    yield pool
    pool.close()


def execute(pool: WorkerPool, source: str, deadline_s: float = LONG_S, **names: object):
    return pool.call(exec, source, names, deadline_s=deadline_s)


def evaluate(pool: WorkerPool, source: str, **names: object):
    return pool.call(eval, source, names, deadline_s=LONG_S)


def fails_with(pool: WorkerPool, kind: str, source: str, **names: object) -> None:
    with pytest.raises(JobFailed) as caught:
        execute(pool, source, **names)
    assert caught.value.kind == kind, str(caught.value)


def run_script(folder: Path, source: str) -> str:
    script = folder / "script.py"
    script.write_text(REFUSE + source)
    return subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LONG_S,
        check=True,
    ).stdout


# --- processes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "subprocess.run(['true'])",
        "subprocess.Popen(['true'], close_fds=False)",
        "multiprocessing.Process(target=print).start()",
    ],
)
def test_no_process_can_be_started(pool, attack):
    fails_with(
        pool, "PermissionError", f"import multiprocessing, os, subprocess\n{attack}"
    )


def test_a_shell_cannot_be_started(pool):
    assert evaluate(pool, "__import__('os').system('true')") != 0


def test_threads_can_be_started(pool):
    source = (
        "import threading\n"
        "start = threading.Thread\n"
        "threads = [start(target=done.append, args=(i,)) for i in range(4)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "assert sorted(done) == [0, 1, 2, 3]"
    )
    execute(pool, source, done=[])


@pytest.mark.parametrize("name", C_CALLS)
def test_c_code_is_denied_as_well(pool, name):
    number = C_CALLS[name][syscalls.MACHINES.index(os.uname().machine)]
    source = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.syscall({number}, 2, 1, 0, 0, 0, 0) == -1\n"
        "assert ctypes.get_errno() == 1, ctypes.get_errno()"
    )
    execute(pool, source)


@pytest.mark.parametrize("function", ["fork", "vfork"])
def test_c_library_cannot_fork(pool, function):
    assert evaluate(pool, f"__import__('ctypes').CDLL(None).{function}()") == -1


def test_scorer_that_tries_gets_an_outcome(pool):
    source = (
        "__import__('rg_env.answers.scoring', fromlist=['_']).score_answer("
        "'x', {}, lambda answer, entry: __import__('os').fork())"
    )
    assert evaluate(pool, source).outcome == "scorer_error"


# --- network -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
        "socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_no_socket_can_be_opened(pool, attack):
    fails_with(pool, "PermissionError", f"import socket\n{attack}")


def test_channel_to_the_pool_sends_to_no_one_else(pool, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as canary:
        canary.bind(str(tmp_path / "canary"))
        source = (
            "import os, socket\n"
            "for fd in range(3, 64):\n"
            "    try: s = socket.socket(fileno=fd)\n"
            "    except OSError: continue\n"
            "    try: s.sendto(b'x', path)\n"
            "    finally: s.detach()"
        )
        fails_with(pool, "PermissionError", source, path=canary.getsockname())


def test_nothing_but_the_channel_is_open():
    source = (
        "import os\n"
        "def is_open(fd):\n"
        "    try: return bool(os.fstat(fd))\n"
        "    except OSError: return False\n"
        "assert sum(map(is_open, range(64))) == 4"
    )
    with contextlib.closing(WorkerPool(1, preload=["numpy"])) as fresh:
        execute(fresh, source)


# --- files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/self/maps",
        pytest.param(f"/proc/{os.getpid()}/environ", id="/proc/OWNER/environ"),
        str(ROOT / "pyproject.toml"),
        str(ROOT / ".git/config"),
    ],
)
def test_file_cannot_be_read(pool, path):
    fails_with(pool, "PermissionError", "open(path)", path=path)


@pytest.mark.parametrize("folder", ["/", "/tmp", str(Path.home()), str(ROOT), ".."])
def test_folder_cannot_be_listed(pool, folder):
    fails_with(pool, "PermissionError", "import os; os.listdir(path)", path=folder)


def test_file_of_the_owner_cannot_be_read_through_a_link(pool, tmp_path):
    (tmp_path / "secret").write_text("x")
    source = "import os; os.symlink(path, 'link'); open('link')"
    fails_with(pool, "PermissionError", source, path=str(tmp_path / "secret"))


@pytest.mark.parametrize(
    "attack",
    [
        "open(path, 'w')",
        "open(path, 'a')",
        "open(path, 'r+')",
        "os.truncate(path, 0)",
        "os.remove(path)",
        "os.rename(path, 'mine')",
        "os.link(path, 'mine')",
        "os.chmod(path, 0o777)",
        "os.chown(path, 1, 1)",
        "os.utime(path)",
        "os.setxattr(path, 'user.x', b'x')",
        "os.mkdir(path + '-2')",
        "os.symlink('x', path + '-2')",
        "os.mkfifo(path + '-2')",
    ],
)
def test_file_of_the_owner_cannot_be_changed(pool, tmp_path, attack):
    path = tmp_path / "file"
    path.write_text("text")
    with pytest.raises(JobFailed, match=r"Errno (1|13|18)\b"):
        execute(pool, f"import os; {attack}", path=str(path))
    assert path.read_text() == "text"
    assert list(tmp_path.iterdir()) == [path]


def test_packages_cannot_be_changed(pool):
    fails_with(pool, "PermissionError", "open(path, 'a')", path=worker_jobs.__file__)


def test_scratch_folder_can_be_used(pool):
    source = (
        "import os, tempfile\n"
        "os.makedirs('a/b')\n"
        "open('a/b/c', 'w').write('text')\n"
        "os.rename('a/b/c', 'd')\n"
        "assert open('d').read() == 'text'\n"
        "os.remove('d'); os.removedirs('a/b')\n"
        "with tempfile.NamedTemporaryFile() as file: file.write(b'x')\n"
        "with tempfile.TemporaryDirectory() as folder: open(folder + '/x', 'w')\n"
        "open('/dev/null', 'w').write('x'); os.urandom(3)"
    )
    execute(pool, source)


def test_file_in_the_scratch_folder_is_bounded(pool):
    fails_with(pool, "OSError", "open('x', 'wb').write(bytes(2**25))")


@pytest.mark.parametrize(
    "writing",
    [
        "open(str(i), 'wb').truncate(2**24)",
        "open(str(i), 'wb')",
        "os.mkdir('x'); os.chdir('x')",
    ],
)
def test_worker_that_fills_its_scratch_folder_is_ended(pool, writing):
    source = f"import itertools, os\nfor i in itertools.count():\n {writing}"
    with pytest.raises(WorkerDied, match="wrote too much into its scratch folder"):
        execute(pool, source)


def test_folders_deeper_than_python_recurses_hurt_nobody(pool):
    zygote = pool.call(os.getppid, deadline_s=LONG_S)
    source = "import os\nfor _ in range(3000): os.mkdir('x'); os.chdir('x')"
    for ending in ("", "os._exit(0)"):
        with contextlib.suppress(WorkerDied):
            execute(pool, f"{source}\n{ending}")
        assert pool.call(os.listdir, deadline_s=LONG_S) == []
    assert pool.call(os.getppid, deadline_s=LONG_S) == zygote


# --- other processes ---------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        "os.kill(owner, 0)",
        "os.kill(os.getppid(), 9)",
        "os.kill(-1, 9)",
        "os.killpg(os.getpgid(owner), 9)",
        "os.pidfd_open(owner)",
        "os.setpriority(os.PRIO_PROCESS, owner, 19)",
        "os.sched_setaffinity(owner, {0})",
        "resource.prlimit(owner, resource.RLIMIT_CPU, (1, 1))",
        "fcntl.fcntl(0, fcntl.F_SETOWN, owner)",
        "os.setpgid(0, os.getpgid(owner))",
        "os.setsid()",
    ],
)
def test_other_process_cannot_be_touched(pool, attack):
    source = f"import fcntl, os, resource\n{attack}"
    fails_with(pool, "PermissionError", source, owner=os.getpid())


# --- limits ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("RLIMIT_AS", DEFAULT_MEMORY_LIMIT_BYTES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", 3600),
        ("RLIMIT_FSIZE", 2**24),
        ("RLIMIT_NOFILE", 64),
    ],
)
def test_limit_is_set_and_cannot_be_raised(pool, name, limit):
    source = f"(r := __import__('resource')).getrlimit(r.{name})"
    assert evaluate(pool, source) == (limit, limit)
    raising = f"import resource as r; r.setrlimit(r.{name}, (2**40, 2**40))"
    fails_with(pool, "ValueError", raising)


def test_open_files_are_bounded(pool):
    fails_with(pool, "OSError", "kept = [open('/dev/null') for _ in range(99)]")


# --- one call and the next ---------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("os.chdir('/')", "os.getcwd()"),
        ("os.environ['X'] = 'x'", "dict(os.environ)"),
        ("os.environ.clear()", "dict(os.environ)"),
        ("sys.setrecursionlimit(10**6)", "sys.getrecursionlimit()"),
        ("sys.set_int_max_str_digits(0)", "sys.get_int_max_str_digits()"),
        ("decimal.getcontext().prec = 3", "decimal.getcontext().prec"),
        ("decimal.setcontext(decimal.ExtendedContext)", "str(decimal.getcontext())"),
        ("random.seed(7)", "random.random()"),
        ("numpy.random.seed(7)", "numpy.random.random()"),
        ("signal.setitimer(signal.ITIMER_REAL, 9)", "signal.getitimer(0)[0]"),
        ("open('file', 'w').write('x')", "os.listdir()"),
        ("os.makedirs('a/b/c')", "os.listdir()"),
        ("tempfile.tempdir = '/nowhere'", "tempfile.gettempdir()"),
    ],
)
def test_next_call_finds_the_state_as_it_was(pool, change, state):
    imports = "import decimal, os, random, signal, sys, tempfile, numpy.random\n"
    read = f"exec({imports!r}) or {state}"
    before = evaluate(pool, read)
    worker = pool.call(os.getpid, deadline_s=LONG_S)
    execute(pool, f"{imports}{change}")
    assert evaluate(pool, read) == before
    assert pool.call(os.getpid, deadline_s=LONG_S) == worker


def test_worker_that_leaves_files_open_is_recycled(pool):
    worker = pool.call(os.getpid, deadline_s=LONG_S)
    execute(pool, "import sys; sys.kept = [open('/dev/null') for _ in range(40)]")
    assert pool.call(os.getpid, deadline_s=LONG_S) != worker


def test_state_is_put_back_after_a_failure_as_well(pool):
    fails_with(pool, "ZeroDivisionError", "import os; os.chdir('/'); 1 / 0")
    assert pool.call(os.getcwd, deadline_s=LONG_S) != "/"


# --- what still works --------------------------------------------------------------


def test_items_of_every_task_are_made_and_scored(pool):
    failed = {}
    for task in TASKS:
        entry = pool.call(worker_jobs.make_entry, task, {}, 1, deadline_s=LONG_S)
        gold = solution(task, entry)
        if gold is not None:
            call = (worker_jobs.score_answers, task, {}, entry, [gold])
            (score,) = pool.call(*call, deadline_s=LONG_S)
            if score.value != 1.0:
                failed[task] = score
    assert failed == {}


def test_packages_can_be_imported_late(pool):
    execute(pool, "import sqlite3, xml.dom.minidom, zoneinfo; zoneinfo.ZoneInfo('UTC')")


# --- kernels that lack a layer -----------------------------------------------------


def test_layers_are_reported_by_the_pool(pool):
    assert pool.sandbox_layers == LAYERS
    with contextlib.closing(WorkerPool(1)) as unused:
        assert unused.sandbox_layers == ()


@pytest.mark.parametrize(
    ("layer", "kept"), [("LANDLOCK", "seccomp"), ("SECCOMP", "landlock")]
)
def test_missing_layer_is_said_once_and_replaced_in_python(tmp_path, layer, kept):
    source = (
        f"refuse({layer})\n"
        "with contextlib.closing(WorkerPool(2)) as pool:\n"
        "    for _ in range(3):\n"
        "        with contextlib.suppress(JobFailed):\n"
        "            pool.call(exec, 'import os; os.abort()', deadline_s=60)\n"
        "    print(pool.sandbox_layers)\n"
    ).replace("suppress(JobFailed)", "suppress(Exception)")
    warning, layers = run_script(tmp_path, source).splitlines()
    assert warning.startswith(f"WARNING worker processes run without {layer.lower()} (")
    assert layers == str(("limits", kept, "audit"))


def test_without_both_layers_python_code_is_denied(tmp_path):
    attacks = (
        "os.fork()",
        "os.system('true')",
        "os.kill(os.getppid(), 0)",
        "__import__('subprocess').run(['true'])",
        "__import__('socket').socket()",
        "open('/etc/passwd')",
        "os.listdir('/')",
        f"open({str(tmp_path / 'file')!r}, 'w')",
        f"os.mkdir({str(tmp_path / 'folder')!r})",
        "os.symlink('/etc/passwd', 'x') or open('x')",
    )
    source = (
        "refuse(LANDLOCK, SECCOMP)\n"
        "with contextlib.closing(WorkerPool(1)) as pool:\n"
        f"    for attack in {attacks!r}:\n"
        "        attempt('(os := __import__(\"os\")) and ' + attack)\n"
    )
    output = run_script(tmp_path, source).splitlines()
    assert output[2:] == ["PermissionError"] * len(attacks)


def test_without_both_layers_items_are_still_made(tmp_path):
    source = (
        "refuse(LANDLOCK, SECCOMP)\n"
        "from rg_env.items import worker_jobs\n"
        "with contextlib.closing(WorkerPool(1, preload=worker_jobs.PRELOAD)) as pool:\n"
        "    for task in ('codeio', 'figlet_font', 'rearc', 'list_functions'):\n"
        "        for seed in range(5):\n"
        "            pool.call(worker_jobs.make_entry, task, {}, seed, deadline_s=60)\n"
        '    attempt(\'open("x", "w").write("text")\')\n'
    )
    assert run_script(tmp_path, source).splitlines()[2:] == ["4"]


def test_process_started_past_python_dies_with_its_worker(tmp_path):
    fork = "sys.modules['rg_env.sandbox.kernel_calls']._LIBC.fork()"
    attack = f"import sys, time; {fork}; time.sleep(60)"
    source = (
        "refuse(LANDLOCK, SECCOMP)\n"
        "with contextlib.closing(WorkerPool(1)) as pool:\n"
        "    print(pool.call(os.getpid, deadline_s=60))\n"
        f"    try: pool.call(exec, {attack!r}, deadline_s=1)\n"
        "    except DeadlineExceeded: print('late')\n"
    )
    worker, ended = run_script(tmp_path, source).split()[-2:]
    assert ended == "late"
    end = time.monotonic() + 10
    while is_group_alive(int(worker)):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.02)


def is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
