"""Folders that ait makes below one that the user named, in which others may have planted something."""

from __future__ import annotations

import errno
import os
import stat

FOLDER_MODE = 0o750


class ForeignFolderError(OSError):
    """What has the folder's name belongs to another user."""


def make_folders(path: str) -> None:
    """The folder and its missing parents."""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path))
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:  # another process was quicker
            if not os.path.isdir(path):
                raise


def make_private(base: str, *names: str) -> str:
    """{base}/{names}, made where it is missing. Each folder below `base` that is there must be ours, and a link to one,
    too: whoever owns a folder decides where in the end its files go."""
    make_folders(base)
    path = base
    for name in names:
        path = os.path.join(path, name)
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:
            _check(path)
    return path


def open_private(path: str, flags: int, mode: int = 0o640) -> int:
    """os.open for a file of ours: follows no link, waits for nobody, and takes nothing but regular files."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not a regular file", path)


def _check(path: str) -> None:
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    for status in (os.lstat(path), os.stat(path)):
        if status.st_uid != os.geteuid():
            raise ForeignFolderError(
                errno.EPERM, f"belongs to user {status.st_uid}, who could change what is written there", path
            )
