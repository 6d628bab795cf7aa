"""Contenders: libraries that are filtered, changed and timed side by side, each in a process of its own."""
