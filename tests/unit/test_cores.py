"""While it times, the judge goes before others; afterwards it is as it was."""

import ctypes
import os
import platform
import struct

from outpace.judge.cores import undisturbed

_ATTRIBUTES = struct.Struct("<IIQiIQQQ")
_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


def _nice_and_slice() -> tuple[int, int]:
    room = ctypes.create_string_buffer(_ATTRIBUTES.size)
    ctypes.CDLL(None).syscall(_SCHED_GETATTR[platform.machine()], 0, room, _ATTRIBUTES.size, 0)
    _, _, _, nice, _, nanoseconds, _, _ = _ATTRIBUTES.unpack(room.raw)
    return nice, nanoseconds


def test_judge_and_workers_go_before_others_while_they_time_and_no_longer() -> None:
    before = _nice_and_slice()
    with undisturbed():
        nice, slices = _nice_and_slice()
        started = os.fork()
        if started == 0:
            os._exit(_nice_and_slice() != (nice, slices))  # a worker has what its judge has
        assert os.waitstatus_to_exitcode(os.waitpid(started, 0)[1]) == 0
        assert nice <= before[0]
        # Linux before 6.12 knows no slices of one's own and always answers 0; the shortest that it gives is 0.1 ms.
        assert slices in (before[1], 100_000)
        assert nice < before[0] or os.getuid() != 0
    assert _nice_and_slice() == before
