"""Things that lie where a file is expected."""

import os
import socket

KINDS = ("FIFO", "folder", "socket", "device")


def plant(path, kind):
    """Puts one of KINDS in the place of whatever is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            folder = os.open(path.parent, os.O_RDONLY)
            listener.bind(f"/proc/self/fd/{folder}/{path.name}")  # its name may have some hundred bytes only
            os.close(folder)
    else:
        path.symlink_to("/dev/zero")
    return path
