"""Archive: all that runs have asked, been told, measured and spent, in one file."""

from outpace.archive.archive import Archive
from outpace.archive.reading import Reading
from outpace.archive.records import Asked, RunRecord, Trial

__all__ = ["Archive", "Asked", "Reading", "RunRecord", "Trial"]
