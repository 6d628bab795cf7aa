"""Names of the system calls that candidates are caught at, so that a verdict can say `socket` instead of 41."""

from __future__ import annotations

import platform

_X86_64 = {
    0: "read", 1: "write", 2: "open", 9: "mmap", 16: "ioctl", 22: "pipe", 29: "shmget", 30: "shmat", 31: "shmctl",
    32: "dup", 33: "dup2", 34: "pause", 36: "getitimer", 37: "alarm", 38: "setitimer", 41: "socket", 42: "connect",
    43: "accept", 49: "bind", 50: "listen", 53: "socketpair", 56: "clone", 57: "fork", 58: "vfork", 59: "execve",
    61: "wait4", 62: "kill", 64: "semget", 68: "msgget", 72: "fcntl", 76: "truncate", 77: "ftruncate", 78: "getdents",
    79: "getcwd", 80: "chdir", 82: "rename", 83: "mkdir", 84: "rmdir", 85: "creat", 86: "link", 87: "unlink",
    88: "symlink", 89: "readlink", 90: "chmod", 92: "chown", 97: "getrlimit", 101: "ptrace", 102: "getuid",
    109: "setpgid", 112: "setsid", 135: "personality", 141: "setpriority", 142: "sched_setparam",
    144: "sched_setscheduler", 155: "pivot_root", 157: "prctl", 160: "setrlimit", 161: "chroot", 165: "mount",
    166: "umount2", 169: "reboot", 200: "tkill", 203: "sched_setaffinity", 217: "getdents64", 222: "timer_create",
    234: "tgkill", 240: "mq_open", 248: "add_key", 250: "keyctl", 257: "openat", 258: "mkdirat", 263: "unlinkat",
    272: "unshare", 282: "signalfd", 283: "timerfd_create", 284: "eventfd", 288: "accept4", 290: "eventfd2",
    291: "epoll_create1", 293: "pipe2", 298: "perf_event_open", 302: "prlimit64", 304: "open_by_handle_at",
    308: "setns", 310: "process_vm_readv", 311: "process_vm_writev", 312: "kcmp", 314: "sched_setattr", 317: "seccomp",
    319: "memfd_create", 321: "bpf", 322: "execveat", 323: "userfaultfd", 425: "io_uring_setup", 426: "io_uring_enter",
    434: "pidfd_open", 435: "clone3", 437: "openat2", 438: "pidfd_getfd", 440: "process_madvise",
}  # fmt: skip
_AARCH64 = {
    25: "fcntl", 29: "ioctl", 33: "mknodat", 34: "mkdirat", 35: "unlinkat", 40: "mount", 46: "ftruncate", 49: "chdir",
    51: "chroot", 56: "openat", 59: "pipe2", 61: "getdents64", 85: "timerfd_create", 92: "personality", 97: "unshare",
    103: "setitimer", 107: "timer_create", 117: "ptrace", 118: "sched_setparam", 119: "sched_setscheduler",
    122: "sched_setaffinity", 129: "kill", 130: "tkill", 140: "setpriority", 157: "setsid", 164: "setrlimit",
    198: "socket", 199: "socketpair", 200: "bind", 203: "connect", 217: "add_key", 219: "keyctl", 220: "clone",
    221: "execve", 241: "perf_event_open", 261: "prlimit64", 265: "open_by_handle_at", 268: "setns",
    270: "process_vm_readv", 271: "process_vm_writev", 279: "memfd_create", 280: "bpf", 281: "execveat",
    282: "userfaultfd", 425: "io_uring_setup", 434: "pidfd_open", 435: "clone3", 437: "openat2", 438: "pidfd_getfd",
}  # fmt: skip
_NAMES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def name_of(number: int) -> str:
    """The call's name on this machine, or its number."""
    return _NAMES.get(platform.machine(), {}).get(number, f"number {number}")
