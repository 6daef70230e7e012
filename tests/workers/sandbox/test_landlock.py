"""Files that a worker cannot read or change, and its scratch folder."""

import os

import pytest

from rg_env.installation import PROJECT
from rg_env.workers.call import JobError
from tests.support.worker_attacks import execute, fails_with

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/self/maps",
        pytest.param(f"/proc/{os.getpid()}/environ", id="/proc/OWNER/environ"),
        str(PROJECT / "pyproject.toml"),
        *(str(path) for path in [PROJECT / ".git"] if path.exists()),
    ],
)
def test_file_cannot_be_read(pool, path):
    fails_with(pool, "PermissionError", "open(path)", path=path)


def test_file_of_the_owner_cannot_be_read_through_a_link(pool, tmp_path):
    (tmp_path / "secret").write_text("x")
    source = "import os; os.symlink(path, 'link'); open('link')"
    fails_with(pool, "PermissionError", source, path=str(tmp_path / "secret"))


CHANGES = """
open(path, 'w')
open(path, 'a')
open(path, 'r+')
os.truncate(path, 0)
os.remove(path)
os.rename(path, 'mine')
os.link(path, 'mine')
os.chmod(path, 0o777)
os.chown(path, 1, 1)
os.utime(path)
os.setxattr(path, 'user.x', b'x')
os.mkdir(path + '-2')
os.symlink('x', path + '-2')
os.mkfifo(path + '-2')
"""


@pytest.mark.parametrize("attack", CHANGES.strip().splitlines())
def test_file_of_the_owner_cannot_be_changed(pool, tmp_path, attack):
    path = tmp_path / "file"
    path.write_text("text")
    with pytest.raises(JobError, match=r"Errno (1|13|18)\b"):
        execute(pool, f"import os; {attack}", path=str(path))
    assert path.read_text() == "text"
    assert list(tmp_path.iterdir()) == [path]


def test_packages_can_be_imported_late(pool):
    execute(pool, "import sqlite3, xml.dom.minidom, zoneinfo; zoneinfo.ZoneInfo('UTC')")


def test_scratch_folder_can_be_used(pool):
    source = """\
import os, tempfile
os.makedirs('a/b')
open('a/b/c', 'w').write('text')
os.rename('a/b/c', 'd')
assert open('d').read() == 'text'
os.remove('d'); os.removedirs('a/b')
with tempfile.NamedTemporaryFile() as file: file.write(b'x')
with tempfile.TemporaryDirectory() as folder: open(folder + '/x', 'w')
open('/dev/null', 'w').write('x'); os.urandom(3)
"""
    execute(pool, source)
