"""Restricts a worker's access to files with Landlock, the kernel's sandbox.

No package is used, because three system calls are enough, and a worker without the
package would lack this layer.

Not covered by any version of the kernel: chdir, stat, access, readlink (existence and
size of files), chmod, chown, utime, xattr, and files that are already open. Landlock
needs Linux 5.13; the tables list the additions of later versions. Source: Linux 6.18,
include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from enum import IntFlag
from pathlib import Path
from types import ModuleType

from rg_env.workers.sandbox import syscalls

CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446
VERSION = 1
PATH_BENEATH = 1
LOG_SAME_EXEC_OFF = 1


class Right(IntFlag):
    """An access right to a file or a folder."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14


READ = Right.READ_FILE | Right.READ_DIR
READ_WRITE = (
    READ
    | Right.WRITE_FILE
    | Right.REFER
    | Right.TRUNCATE
    | Right.REMOVE_DIR
    | Right.REMOVE_FILE
    | Right.MAKE_DIR
    | Right.MAKE_REG
    | Right.MAKE_SYM
)
_FILE_RIGHTS = Right.EXECUTE | Right.WRITE_FILE | Right.READ_FILE | Right.TRUNCATE

_NUM_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Version of Landlock to its number of rights, including those without a name here.

All of these are handled, so each is denied unless a rule allows it.
"""

# The first version that can deny TCP, and the bits for binding and connecting.
_NETWORK_SINCE = 4
_NETWORK_BITS = 0b11

# The first version that can confine abstract sockets and signals, and their bits.
_SCOPES_SINCE = 6
_SCOPE_BITS = 0b11

# The first version that logs denials; those of workers would fill the kernel's log.
_LOG_SINCE = 7

_ROOT = Path(__file__).resolve().parents[3]
_PROJECT_FOLDERS = ("rg_env", "reasoning-gym")
_SYSTEM_PATHS = (
    # Shared libraries.
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    # Time zones, languages and fonts.
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/share/i18n",
    "/usr/share/locale",
    "/usr/share/fonts",
    "/usr/local/share/pyfiglet",
    # Random numbers.
    "/dev/random",
    "/dev/urandom",
)
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def restrict(rights_by_path: Mapping[str, Right]) -> None:
    """Restrict this thread and its children to these paths, permanently.

    If the kernel can, it also denies TCP, and abstract sockets and signals to processes
    that this call does not restrict.

    Args:
        rights_by_path: Path to the rights there and below; missing paths are skipped.

    Raises:
        OSError: The kernel has no Landlock, or denies its use.
    """
    version = syscalls.call(CREATE_RULESET, None, 0, VERSION)
    handled = (1 << max(n for v, n in _NUM_RIGHTS.items() if v <= version)) - 1
    ruleset = _create_ruleset(version, handled)
    try:
        for path, rights in rights_by_path.items():
            _allow(ruleset, path, rights & handled)
        # The kernel requires this of an unprivileged process.
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        flags = LOG_SAME_EXEC_OFF if version >= _LOG_SINCE else 0
        syscalls.call(RESTRICT_SELF, ruleset, flags)
    finally:
        os.close(ruleset)


def _create_ruleset(version: int, handled: int) -> int:
    network = _NETWORK_BITS if version >= _NETWORK_SINCE else 0
    scopes = _SCOPE_BITS if version >= _SCOPES_SINCE else 0
    # A kernel accepts unknown fields only if they are zero.
    attributes = struct.pack("=QQQ", handled, network, scopes)
    return syscalls.call(CREATE_RULESET, attributes, len(attributes), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            # The kernel does not accept the rights of folders for a file.
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, beneath)
        syscalls.call(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(beneath)


# -- readable files --------------------------------------------------------------------


def find_readable() -> tuple[str, ...]:
    """Return the files and folders that a worker may read, resolved and sorted.

    Those of packages are found in the imports of this process, because an environment,
    an editable installation or a submodule can be anywhere. A folder on `sys.path` that
    only has a user's files, such as a home folder, is left out.
    """
    paths = {path.resolve() for path in map(Path, _candidates()) if path.exists()}
    paths.discard(Path("/"))
    return tuple(sorted(str(path) for path in paths if not paths & {*path.parents}))


def _candidates() -> Iterator[str]:
    yield from _SYSTEM_PATHS
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(name)
    for prefix in {sys.base_prefix, sys.base_exec_prefix, sys.prefix}:
        yield from (f"{prefix}/lib", f"{prefix}/lib64")
    yield from (str(_ROOT / name) for name in _PROJECT_FOLDERS)
    yield from filter(_holds_packages, sys.path)
    for name, module in list(sys.modules.items()):
        if "." not in name and isinstance(module, ModuleType):
            yield from map(str, getattr(module, "__path__", ()))


def _holds_packages(path: str) -> bool:
    """Return whether a path is a folder of packages or a zip file, not a script's."""
    entry = Path(path)
    return (
        entry.is_file()
        or entry.name in _PACKAGE_FOLDERS
        or _ROOT in entry.resolve().parents
        or any(entry.glob("*.dist-info"))
    )
