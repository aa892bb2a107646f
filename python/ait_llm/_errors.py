"""What ait raises. Each class is also the built-in exception that a caller would expect in its place."""

from __future__ import annotations


class AitError(Exception):
    """Anything that goes wrong in ait; raised itself for requests that make no sense and unreadable files."""

    path: str | None = None
    """The file in question, if there is one."""
    offset: int | None = None
    """The byte of the file at which it went wrong, if that is known."""


class NotFoundError(AitError, FileNotFoundError):
    """The path does not exist."""


class CorruptError(AitError, ValueError):
    """The content breaks its own format."""


class UnsupportedError(AitError, TypeError):
    """Well-formed, but a type or a variant that ait does not handle."""


class RefusedError(AitError):
    """Content that would run code if it were obeyed."""


class WriteError(AitError, OSError):
    """A result cannot be stored: a full disk, a read-only folder."""
