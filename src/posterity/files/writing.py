"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replace_atomically(
    path: str | os.PathLike[str], *, durable: bool = False
) -> Iterator[IO[bytes]]:
    """Write beside a file, then rename: a reader never meets half a file.

    Of a link, what it points to is replaced. A pipe or a device is written as it is. With
    ``durable``, a power cut afterwards leaves the old file or the new one.
    """
    if is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".{place.name}.{os.getpid()}.{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb", closefd=True) as file:
            yield file
            file.flush()
            if durable:  # before its name: else the name could reach the disk before the content
                os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(place.stat().st_mode))
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable and hasattr(os, "O_DIRECTORY"):  # the new name is on disk when its folder is
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(OSError):  # not every file system can
                os.fsync(folder)
        finally:
            os.close(folder)


def is_special(path: str | os.PathLike[str]) -> bool:
    """True where there is something that is neither a file nor a folder: a pipe, a device."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
