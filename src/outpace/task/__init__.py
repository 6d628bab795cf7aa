"""Task: a folder with a task.toml as values, what may be edited in it, and the candidates that come of that."""

from outpace.task.task import Build, Checking, Entry, EntryKind, Environment, Limits, Output, Task, Timing

__all__ = ["Build", "Checking", "Entry", "EntryKind", "Environment", "Limits", "Output", "Task", "Timing"]
