"""A terminal that a test talks through."""

import fcntl
import os
import pty
import select
import struct
import termios
import time

TIMEOUT_SECONDS = 30


class Terminal:
    """Runs a command with a pseudo-terminal as its input and output, in a session of its own."""

    def __init__(self, command, cwd, columns=None):
        self.text = ""  # all that was printed, with plain line ends
        self._seen = 0
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            if columns is not None:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 50, columns, 0, 0))
            os.execv(command[0], list(map(str, command)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._terminal)

    def write(self, text):
        os.write(self._terminal, text.encode())

    def _read(self, deadline):
        """More text, or False at the end."""
        ready, _, _ = select.select([self._terminal], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"waited in vain; so far: {self.text}")
        try:
            more = os.read(self._terminal, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            return False
        self.text += more.decode(errors="replace").replace("\r\n", "\n")
        return bool(more)

    def read_until(self, part):
        """What was printed since the last call, up to and with `part`."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while part not in self.text[self._seen :]:
            assert self._read(deadline), f"ended without {part!r}: {self.text}"
        start, self._seen = self._seen, self.text.index(part, self._seen) + len(part)
        return self.text[start : self._seen]

    def finish(self):
        """The rest, and the exit status."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._read(deadline):
            pass
        _, status = os.waitpid(self._pid, 0)
        return self.text[self._seen :], os.waitstatus_to_exitcode(status)
