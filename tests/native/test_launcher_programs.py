"""Programs that the launcher executes: their filter, limits and identity, and the namespaces around them."""

from __future__ import annotations

import errno
import os
import platform
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import launcher_driver as d
import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(params=["root", "user"])
def jail(request: pytest.FixtureRequest) -> d.Jail:
    return d.namespaces(request.param)


# The command line.


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-option", "1", "exec", "--", "/bin/true"],
        ["--uid", "5", "exec", "--", "/bin/true"],
        ["--uid", "4294967295", "--gid", "5", "exec", "--", "/bin/true"],
        ["--cpu-seconds", "many", "exec", "--", "/bin/true"],
        ["--cpu-seconds", "-1", "exec", "--", "/bin/true"],
        ["--socket", "2", "exec", "--", "/bin/true"],
        ["--socket", "77", "exec", "--", "/bin/true"],
        ["--threads", "0", "exec", "--", "/bin/true"],
        ["--populate-input", "all", "exec", "--", "/bin/true"],
        ["--chdir", "/no/such/folder", "exec", "--", "/bin/true"],
        ["exec", "--", "true"],
        ["exec", "--", "/no/such/program"],
        ["exec", "/bin/true"],
        ["function", "lib.so"],
        ["dance"],
        [],
    ],
)
def test_a_command_line_that_cannot_be_carried_out_is_one_line_and_status_125(arguments: list[str]) -> None:
    with d.started(d.PLAIN, arguments, stderr=subprocess.PIPE) as process:
        _, error = process.communicate(timeout=d.PATIENCE)
        assert process.returncode == 125
        assert error.startswith(b"outpace-launch: ") and error.count(b"\n") == 1


def test_probe_tells_what_the_kernel_allows() -> None:
    found = d.probe()
    assert set(found) == {"user_namespaces", "namespaces_as_root", "seccomp", "landlock", "errors"}
    assert found["seccomp"] is True
    assert set(found["errors"]) == {name for name, value in found.items() if value is False}


# Limits and identity.


def test_limits_are_hard_and_no_core_is_left() -> None:
    options = ["--cpu-seconds", "7", "--address-space", str(1 << 30), "--file-size", str(1 << 20)]
    options += ["--open-files", "33", "--stack", str(4 << 20)]
    with d.waiting_program(d.PLAIN, *options) as pid:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max cpu time"] == ["7", "7"]
    assert limits["Max address space"] == [str(1 << 30)] * 2
    assert limits["Max file size"] == [str(1 << 20)] * 2
    assert limits["Max open files"] == ["33", "33"]
    assert limits["Max stack size"] == [str(4 << 20)] * 2
    # No program of the host's is started for a dump either, as it would be at 0.
    assert limits["Max core file size"] == ["1", "1"]


@needs_root
def test_the_process_limit_holds_for_the_unprivileged_user() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; echo all"
    base = d.namespaces("root")
    # The kernel counts a user's processes over the whole machine, so this user must be nobody else.
    alone = ("--uid", str(10**6 + os.getpid()), "--gid", "61001")
    jail = d.Jail(options=alone, spec=base.spec, made=base.made)
    code, out, error = d.shell(jail, script, "--processes", "5")
    assert (code, out) != (0, "all\n") and "fork" in error


def test_a_program_has_no_capabilities_and_can_gain_none(jail: d.Jail) -> None:
    with d.waiting_program(jail) as pid:
        status = d.status_of(pid)
    assert {status[f"Cap{each}"] for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@needs_root
@pytest.mark.parametrize("make", [lambda: d.Jail(options=d.AS_NOBODY), lambda: d.bubblewrap("root")])
def test_root_becomes_the_user_it_is_told_to(make: object) -> None:
    with d.waiting_program(make()) as pid:  # type: ignore[operator]
        status = d.status_of(pid)
    assert status["Uid"].split() == status["Gid"].split() == [str(d.NOBODY)] * 4
    assert status["Groups"] == ""
    assert status["CapPrm"] == status["CapEff"] == "0" * 16


def test_signals_that_the_parent_ignored_or_blocked_are_as_new() -> None:
    jail = d.Jail(("sh", "-c", 'trap "" PIPE CHLD XFSZ; exec "$@"', "sh"), str(d.room() / "launch"))
    with d.waiting_program(jail) as pid:
        status = d.status_of(pid)
    blocked, unheard = status["SigBlk"], status["SigIgn"]
    # 32 and 33 are the C library's own, which it lets nobody change; somebody above us may have ignored them.
    assert int(blocked, 16) == 0 and int(unheard, 16) & ~(0b11 << 31) == 0


# The filter.

SOCKET_UNIX = (socket.AF_UNIX, socket.SOCK_STREAM)
REFUSED = {
    "socket": SOCKET_UNIX, "connect": (0,), "setsockopt": (0,), "ptrace": (0,),
    "process_vm_readv": (1,), "process_vm_writev": (1,), "pidfd_getfd": (0,), "kcmp": (1, 1), "unshare": (0,),
    "setns": (0,), "mount": (0,), "umount2": (0,), "pivot_root": (0,), "chroot": (0,), "open_tree": (0,),
    "move_mount": (0,), "fsopen": (0,), "mount_setattr": (0,), "open_by_handle_at": (0,), "bpf": (0,),
    "perf_event_open": (0,), "userfaultfd": (0,), "io_uring_setup": (0,), "io_uring_enter": (0,),
    "keyctl": (0,), "add_key": (0,), "request_key": (0,), "init_module": (0,), "kexec_load": (0,),
    "reboot": (0,), "swapon": (0,), "sched_setaffinity": (0,), "sched_setscheduler": (0,),
    "sched_setattr": (0,), "sched_setparam": (0,), "setpriority": (0,), "setrlimit": (0,),
    "personality": (0xFFFFFFFF,), "setuid": (0,), "setgroups": (0,), "capset": (0,), "clock_settime": (0,),
}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--allow-fork",)])
def test_hostile_system_calls_are_refused(options: tuple[str, ...]) -> None:
    answers = d.raw_calls(d.PLAIN, [(d.number_of(name), *REFUSED[name]) for name in REFUSED], *options)
    assert dict(zip(REFUSED, answers, strict=True)) == dict.fromkeys(REFUSED, -errno.EPERM)


@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x10000000, 0x20000000, 0x40000000, 0x8000])
def test_cloning_into_a_namespace_or_beside_oneself_is_refused_even_where_forking_is_allowed(
    flag: int,
) -> None:
    assert d.raw_calls(d.PLAIN, [(d.number_of("clone"), flag | signal.SIGCHLD)], "--allow-fork") == [-errno.EPERM]


@pytest.mark.parametrize(
    ("name", "arguments", "alone", "with_fork"),
    [
        ("clone3", (0, 0), -errno.ENOSYS, -errno.ENOSYS),
        ("seccomp", (1, 0, 0), -errno.ENOSYS, -errno.ENOSYS),
        ("shmget", (0, 4096, 0o1600), -errno.ENOSYS, -errno.ENOSYS),
        ("prlimit64", (0, 7, 0, 0), 0, 0),
        ("prlimit64", (0, 7, 1, 0), -errno.EPERM, -errno.EPERM),
        ("prlimit64", (0, 7, 1 << 32, 0), -errno.EPERM, -errno.EPERM),
        ("prctl", (1, 0), -errno.EINVAL, -errno.EINVAL),  # PR_SET_PDEATHSIG
        ("ioctl", (0, 0x5412, 0), -errno.EPERM, -errno.EPERM),  # TIOCSTI
        ("fcntl", (0, 8, 1), -errno.EPERM, -errno.EPERM),  # F_SETOWN
        ("fcntl", (0, 1036, 0), -errno.EPERM, -errno.EPERM),  # F_SET_RW_HINT, which stays with the file
        ("fcntl", (0, 1, 0), 0, 0),  # F_GETFD
        ("openat2", (0, 0, 0, 0), -errno.ENOSYS, -errno.ENOSYS),
        ("ioctl", (0, 0x40086602, 0), -errno.ENOTTY, -errno.ENOTTY),  # FS_IOC_SETFLAGS
        ("setitimer", (0, 0, 0), -errno.EPERM, 0),
        ("timerfd_create", (1, 0), -errno.EPERM, 3),
        ("socketpair", (*SOCKET_UNIX, 0, 0), -errno.EPERM, -errno.EFAULT),
        ("socketpair", (socket.AF_INET, socket.SOCK_STREAM, 0, 0), -errno.EPERM, -errno.EPERM),
        ("clone", (0x100 | 0x800 | 0x10000,), -errno.EPERM, None),
        ("execve", (0, 0, 0), -errno.EPERM, -errno.EFAULT),
        ("execveat", (-1, 0, 0), -errno.EPERM, -errno.EFAULT),
        ("kill", (1, 0), -errno.EPERM, None),
        ("kill", (0, 0), -errno.EPERM, 0),
    ],
)
def test_system_calls_that_depend_on_their_arguments_or_on_forking(
    name: str, arguments: tuple[int, ...], alone: int, with_fork: int | None
) -> None:
    call = (d.number_of(name), *arguments)
    assert d.raw_calls(d.PLAIN, [call]) == [alone]
    if with_fork is not None:
        assert d.raw_calls(d.PLAIN, [call], "--allow-fork") == [with_fork]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other architectures have one table of calls")
@pytest.mark.parametrize("body", ['__asm__("int $0x80" :: "a"(20));', "syscall(0x40000000 + 39);"])
def test_the_tables_of_other_architectures_are_closed(body: str) -> None:
    program = d.compiled(f"#define _GNU_SOURCE\n#include <unistd.h>\nint main(void) {{ {body} return 0; }}")
    assert d.execute(d.PLAIN, [str(program)])[0] == -signal.SIGSYS


def test_only_with_allow_fork_can_a_program_start_others() -> None:
    code, out, error = d.execute(d.PLAIN, ["/bin/sh", "-c", "/bin/true; echo went on"])
    assert code != 0 and "went on" not in out and "fork" in error
    assert d.shell(d.PLAIN, "/bin/true; echo went on")[1] == "went on\n"


def test_a_compiler_works_in_the_jail(jail: d.Jail) -> None:
    script = "cd /tmp && echo 'int main(void) { return 42; }' > a.c && cc -O2 a.c -o a && ./a"
    assert d.shell(jail, script)[0] == 42


def test_the_channel_and_the_regions_are_passed_on_to_a_program() -> None:
    source = """#define _GNU_SOURCE
    #include <stdint.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n#include <sys/socket.h>
    int main(int count, char** words) {
        struct { uint64_t nonce; uint32_t status, detail; uint64_t value; char text[232]; } ready = {0, 2};
        char* out = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(words[2]), 0);
        out[0] = 'm';
        return send(atoi(words[1]), &ready, sizeof ready, 0) != 256;
    }"""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output = os.memfd_create("output")
    os.ftruncate(output, 4096)
    with ours, theirs:
        numbers = [str(theirs.fileno()), str(output)]
        arguments = [
            "--socket",
            numbers[0],
            "--output",
            numbers[1],
            "exec",
            "--",
            str(d.compiled(source)),
            *numbers,
        ]
        with d.started(d.PLAIN, arguments, [theirs.fileno(), output]) as process:
            assert process.wait(timeout=d.PATIENCE) == 0
        statuses = [struct.unpack_from("<QI", ours.recv(256))[1] for _ in range(2)]
    assert statuses == [d.HELLO, d.READY]
    assert os.pread(output, 1, 0) == b"m"
    os.close(output)


# Namespaces.


def test_a_jail_shows_what_was_described_and_nothing_else(jail: d.Jail) -> None:
    expected = {Path(path).parts[1] for _, path in d.system()} | {"made", "proc", "dev", "tmp"}
    # From outside, where Landlock closes neither the root nor /proc to us.
    with d.waiting_program(jail) as pid:
        assert {path.name for path in Path(f"/proc/{pid}/root").iterdir()} == expected
        assert {path.name for path in Path(f"/proc/{pid}/root/proc").glob("[0-9]*")} == {"1", "2"}
        network = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in network] == ["lo"]
    devices = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr"}
    assert set(d.shell(jail, "ls -A /dev")[1].split()) == devices
    assert d.shell(jail, "echo through | cat /dev/stdin")[1] == "through\n"
    assert d.shell(jail, "hostname")[1] == "jail\n"


@pytest.mark.parametrize("path", [*d.HIDDEN, "/proc/self/fd", "/proc/self/environ", "/proc/net/dev", "/proc/stat"])
def test_a_program_cannot_read_about_processes(jail: d.Jail, path: str) -> None:
    d.needs_landlock()
    for place in (d.PLAIN, jail):
        code, out, error = d.shell(place, f"if [ -d {path} ]; then ls {path}; else cat {path}; fi")
        assert (out, "Permission denied" in error) == ("", True) and code != 0


def test_a_program_cannot_come_by_what_is_hidden_another_way(jail: d.Jail) -> None:
    d.needs_landlock()
    ways = (
        "cd /proc/self && cat maps",
        "cat /dev/fd/../maps",
        "ln -s /proc/self/maps /tmp/m; cat /tmp/m",
        "ls /proc/1",
    )
    for place in (d.PLAIN, jail):
        for way in ways:
            code, out, _ = d.shell(place, way)
            assert code != 0 and out == "", way


def test_a_program_can_read_what_the_processor_is_and_the_rest_of_the_system(jail: d.Jail) -> None:
    for place in (d.PLAIN, jail):
        code, out, _ = d.shell(place, "head -c 9 /proc/cpuinfo; ls /usr > /dev/null && cat /usr/bin/env | head -c 0")
        assert (code, out) == (0, Path("/proc/cpuinfo").read_text()[:9])


@pytest.mark.parametrize("path", ["/new", "/usr/new", "/made/new", "/dev/new", "/proc/sys/kernel/hostname"])
def test_nothing_but_the_private_folders_can_be_written(jail: d.Jail, path: str) -> None:
    assert d.shell(jail, f"echo x > {path}")[0] != 0
    assert d.shell(jail, "echo x > /tmp/new && cat /tmp/new")[:2] == (0, "x\n")


def test_a_private_folder_holds_no_more_than_its_size_and_no_endless_number_of_files(jail: d.Jail) -> None:
    code, _, error = d.shell(jail, "head -c 2000000 /dev/zero > /tmp/big")
    assert code != 0 and "No space" in error
    code, _, error = d.shell(jail, "cd /tmp; seq 5000 | xargs touch")
    assert code != 0 and "No space" in error


@pytest.mark.parametrize("kind", ["root", "user"])
def test_folders_may_have_spaces_and_writable_ones_are_writable(kind: str) -> None:
    folder = d.room() / f"a folder {kind}"
    folder.mkdir()
    folder.chmod(0o777)
    jail = d.namespaces(kind, f"rw\t{folder}\t/work here")
    assert d.shell(jail, "echo kept > '/work here/note'", "--chdir", "/work here")[0] == 0
    assert (folder / "note").read_text() == "kept\n"


# Low limits, since without close_range every possible descriptor is closed one by one.
OLD_KERNEL = ("prlimit", "--nofile=64", "strace", "-f", "-qq", "-o", "/dev/null")
OLD_KERNEL += ("-e", "inject=mount_setattr,close_range:error=ENOSYS")


@needs_root
@pytest.mark.parametrize("kernel", [(), OLD_KERNEL], ids=["this kernel", "one of 2019"])
def test_a_mount_inside_a_read_only_folder_is_read_only_too(tmp_path: Path, kernel: tuple[str, ...]) -> None:
    if kernel and shutil.which("strace") is None:
        pytest.skip("strace stands in for an old kernel")
    inner = tmp_path / "inner folder"
    inner.mkdir()
    tmp_path.chmod(0o777)
    base = d.namespaces("root", f"ro\t{tmp_path}\t/seen")
    script = 'mount -t tmpfs -o mode=1777 t "$1" && shift && exec "$@"'
    outer = ("unshare", "-m", "sh", "-c", script, "sh", str(inner), *kernel)
    jail = d.Jail(outer, str(d.room() / "launch"), base.options, base.spec, {}, base.made)
    code, out, error = d.shell(jail, "cd '/seen/inner folder'; echo x > x; echo x > ../x; echo x > /usr/x; echo in")
    assert (code, out, error.count("Read-only")) == (0, "in\n", 3)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder not in /tmp, which the launcher covers while it builds a jail."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@needs_root
def test_a_link_left_by_a_candidate_leads_no_mount_out_of_the_jail(tmp_path: Path, outside: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "trap").symlink_to(outside)
    jail = d.namespaces("root", f"rw\t{build}\t/build", f"ro\t{build}\t/build/trap/planted")
    code, _, error = d.shell(jail, "true")
    assert code == 125 and "planted" in error
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "ro\t/usr",
        "tmpfs\t/x\t0",
        "tmpfs\t/x\tmuch",
        "ro\t/usr\trelative",
        "nonsense",
        "ro\t/none\t/x",
        "ro\t/usr\t/a/../b",
    ],
)
def test_a_description_that_makes_no_sense_is_refused(line: str) -> None:
    jail = d.namespaces("root" if os.geteuid() == 0 else "user", line)
    code, _, error = d.shell(jail, "true")
    assert code == 125 and error.startswith("outpace-launch: ")


def test_the_judges_umask_does_not_lock_the_jail() -> None:
    jail = d.namespaces("root" if os.geteuid() == 0 else "user")
    strict = d.Jail(jail.outer, jail.launcher, jail.options, jail.spec, jail.start | {"umask": 0o077}, jail.made)
    assert d.shell(strict, "cat /made/launch > /dev/null; umask")[:2] == (0, "0022\n")


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -KILL $$", 128 + 9), ("kill -SEGV $$", 128 + 11)])
def test_the_outer_process_ends_as_the_inner_one_did(jail: d.Jail, script: str, status: int) -> None:
    assert d.shell(jail, script)[0] == status


# Two generations that ignore every polite signal, in a session of their own.
DAEMON = """setsid sh -c 'trap "" TERM HUP INT; (sleep 1000 & sleep 1000) & wait' & echo started; """


def test_what_a_program_leaves_behind_dies_with_it(jail: d.Jail) -> None:
    # The daemons hold the pipe, so end-of-file tells that they are gone.
    code, out, _ = d.shell(jail, DAEMON + "exit 3")
    assert (code, out) == (3, "started\n")


def test_killing_the_outer_process_kills_all_inside(jail: d.Jail) -> None:
    arguments = ["--allow-fork", "exec", "--", "/bin/sh", "-c", DAEMON + "wait; sleep 1000"]
    with d.started(jail, arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"started\n"
        process.send_signal(signal.SIGKILL)
        ready, _, _ = select.select([process.stdout], [], [], d.PATIENCE)
        assert ready and process.stdout.read() == b""


@pytest.mark.parametrize("identity", ["", pytest.param(" ".join(d.AS_NOBODY), marks=needs_root)])
def test_a_program_dies_with_the_judge(identity: str) -> None:
    program = '/bin/sh -c "echo started; exec sleep 1000"'
    launch = f'"{d.room() / "launch"}" {identity} --allow-fork exec -- {program}'
    with subprocess.Popen(["sh", "-c", f"{launch} & wait"], stdout=subprocess.PIPE) as judge:
        assert judge.stdout is not None and judge.stdout.readline() == b"started\n"
        judge.kill()
        ready, _, _ = select.select([judge.stdout], [], [], d.PATIENCE)
        assert ready and judge.stdout.read() == b""


def test_pid_one_of_the_jail_can_be_neither_killed_nor_read_and_has_no_power(jail: d.Jail) -> None:
    code, out, _ = d.shell(jail, "kill -KILL 1; kill -STOP 1; cat /proc/1/environ; ls /proc/1/fd; echo still here")
    assert (code, out) == (0, "still here\n")
    with d.waiting_program(jail) as pid:
        first = d.status_of(int(d.status_of(pid)["PPid"]))
    assert (first["NSpid"].split()[-1], first["CapPrm"]) == ("1", "0" * 16)


def test_pid_one_of_the_jail_is_closed_to_its_own_user() -> None:
    with d.waiting_program(d.namespaces("user")) as pid:
        first = d.status_of(pid)["PPid"]
        for entry in ("environ", "mem", "fd/0"):
            command = ["head", "-c", "1", f"/proc/{first}/{entry}"]
            assert subprocess.run(command, capture_output=True, check=False, **d.unprivileged()).returncode != 0, entry


def test_files_can_be_linked_and_renamed_across_folders(tmp_path: Path) -> None:
    script = f"cd {tmp_path} && mkdir a b && touch a/x && ln a/x b/x"
    code, _, error = d.shell(d.PLAIN, script)
    assert code == 0, error
