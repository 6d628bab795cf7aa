"""Archive: all that runs have asked, been told, measured and spent, in one file."""

from outpace.archive.archive import Archive
from outpace.archive.records import RunRecord, Trial

__all__ = ["Archive", "RunRecord", "Trial"]
