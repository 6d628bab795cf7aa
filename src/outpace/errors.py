"""Errors: what a user can be told, each with what to do about it.

OutpaceError
├── TaskError        the task's files cannot be used as they are
├── JailError        no jail, or the jail could not be started
├── HarnessError     a fault of ours or of the machine while judging: retried, never a verdict
├── ArchiveError     the archive cannot be read or written
├── PolicyError      a policy could not answer
└── ReceiptError     a receipt is not what it says it is
"""


class OutpaceError(Exception):
    """Something a user can act on; printed as one line, without a traceback."""


class TaskError(OutpaceError):
    """A task is wrong before any trial: its file, its judge, its reference."""


class JailError(OutpaceError):
    """No jail can be had on this machine, or it refused to start."""


class HarnessError(OutpaceError):
    """The judge itself failed; the candidate is not to blame and gets no verdict."""


class ArchiveError(OutpaceError):
    """The archive cannot be opened, read or written."""


class PolicyError(OutpaceError):
    """A policy could not produce a reply."""


class ReceiptError(OutpaceError):
    """A receipt is damaged, altered, or of a version this program does not know."""
