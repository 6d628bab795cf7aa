"""What every jail keeps in, for root and for an ordinary user."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import jail_or_skip
from outpace.judge import jail as jails
from outpace.judge.jail import MIB, Bind, Confinement, JailKind, jail_command

ORDINARY = 61002


def run_inside(kind: JailKind, script: str, *, seconds: float = 20, **settings: object) -> tuple[int, str]:
    """Run a shell script in the jail; returns its exit status and what it printed."""
    confinement = Confinement(fork=True, processes=32, threads=32, folder="/tmp", **settings)  # type: ignore[arg-type]
    command = jail_command(kind, confinement, ["exec", "--", "/bin/sh", "-c", script])
    done = subprocess.run(
        command.argv,
        env=dict(command.environment),
        pass_fds=command.fds,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    command.close()
    return done.returncode, done.stdout + done.stderr


@functools.cache
def reachable_launcher() -> Path:
    """A copy of the launcher where everybody can reach it; the one we test may lie in a home of mode 700."""
    folder = Path(tempfile.mkdtemp(prefix="outpace-launcher-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    shutil.copy(jails.launcher_path(), folder / "outpace-launch")
    (folder / "outpace-launch").chmod(0o755)
    return folder / "outpace-launch"


def as_user(user: str, work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Do the work as root, or in a forked child without root's rights."""
    if user == "root":
        if os.getuid() != 0:
            pytest.skip("not started as root")
        return work()
    if os.getuid() != 0:
        return work()
    launcher = reachable_launcher()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        jails.launcher_path = lambda: launcher  # type: ignore[assignment]
        os.setgroups([])
        os.setgid(ORDINARY)
        os.setuid(ORDINARY)
        for cached in (jails.bubblewrap_works, jails.probe, jails._has_cgroup):
            cached.cache_clear()
        try:
            status, text = work()
            os.write(writer, f"{status}\n{text}".encode()[:60000])
        finally:
            os._exit(0)  # never on into a second session of pytest
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
        status, _, text = pipe.read().partition("\n")
    os.waitpid(child, 0)
    return int(status), text


@pytest.fixture(params=["root", "ordinary user"])
def inside(request: pytest.FixtureRequest, jail: JailKind) -> Callable[..., tuple[int, str]]:
    def run(script: str, **settings: object) -> tuple[int, str]:
        return as_user(request.param, lambda: run_inside(jail, script, **settings))

    return run


def test_an_ordinary_program_runs(inside: Callable[..., tuple[int, str]]) -> None:
    assert inside("echo hello; exit 7") == (7, "hello\n")


def test_a_compiler_works_inside(inside: Callable[..., tuple[int, str]]) -> None:
    status, text = inside("echo 'int main(void){return 3;}' > a.c && cc -o a a.c && ./a")
    assert (status, text) == (3, "")


def test_there_is_no_network(inside: Callable[..., tuple[int, str]]) -> None:
    _, text = inside("cat /proc/net/dev; cat /proc/net/route | wc -l", show_processes=True)
    interfaces = [line.split(":")[0].strip() for line in text.splitlines() if ":" in line]
    assert set(interfaces) <= {"lo"}


def test_the_system_is_read_only_and_homes_are_not_there(inside: Callable[..., tuple[int, str]]) -> None:
    status, text = inside(
        "touch /usr/x /bin/x /etc/x /x /dev/x /outpace/x 2>/dev/null && echo wrote; "
        "ls /home /root /opt /srv /var 2>/dev/null; ls -d /etc/passwd /etc/shadow 2>/dev/null; true"
    )
    assert status == 0
    assert "wrote" not in text and "passwd" not in text and "shadow" not in text
    assert text.strip() == ""


def test_temp_is_private_and_of_limited_size(inside: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    mark = tmp_path / "outside"
    mark.write_text("secret")
    _, text = inside(
        f"cat {mark} 2>&1; ls /tmp; head -c 50000000 /dev/zero > /tmp/big 2>/dev/null; stat -c %s /tmp/big",
        disk=8 * MIB,
        file_size=64 * MIB,
    )
    assert "secret" not in text
    assert int(text.split()[-1]) <= 8 * MIB


def test_the_environment_is_scrubbed(inside: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LD_PRELOAD_FAKE", "sk-secret")
    _, text = inside("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "sk-secret" not in text
    assert "PATH=" in text


def test_only_its_own_processes_are_seen(inside: Callable[..., tuple[int, str]]) -> None:
    _, text = inside("ls -d /proc/[0-9]* | wc -l", show_processes=True)
    assert int(text) < 12


def test_inherited_descriptors_do_not_pass(jail: JailKind, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with secret.open() as handle:
        os.set_inheritable(handle.fileno(), True)
        script = f"ls -l /proc/self/fd; cat <&{handle.fileno()}"
        command = jail_command(jail, Confinement(fork=True, processes=8), ["exec", "--", "/bin/sh", "-c", script])
        done = subprocess.run(
            command.argv,
            env=dict(command.environment),
            close_fds=False,
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        command.close()
    assert "secret" not in done.stdout


def test_privileges_are_gone(inside: Callable[..., tuple[int, str]]) -> None:
    _, text = inside("grep -E 'Cap(Eff|Prm|Inh|Amb)|NoNewPrivs|Seccomp:' /proc/self/status; id -u", show_processes=True)
    fields = dict(line.split(":") for line in text.splitlines() if ":" in line)
    assert all(int(fields[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"
    assert int(text.splitlines()[-1]) != 0


def test_namespaces_cannot_be_made_inside(inside: Callable[..., tuple[int, str]]) -> None:
    status, text = inside(
        "unshare -U true 2>/dev/null && echo made; unshare -n true 2>/dev/null && echo made; "
        "mount -t tmpfs none /tmp 2>/dev/null && echo made; true"
    )
    assert (status, text) == (0, "")


def test_bound_folders_are_writable_only_where_it_says_so(jail: JailKind, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_folder, shut_folder = tmp_path / "open", tmp_path / "shut"
    for folder in (open_folder, shut_folder):
        folder.mkdir()
        folder.chmod(0o777)
    binds = (Bind(open_folder, "/open", writable=True), Bind(shut_folder, "/shut"))
    run_inside(jail, "echo x > /open/x; echo x > /shut/x", binds=binds)
    assert (open_folder / "x").exists() and not (shut_folder / "x").exists()


def alive(mark: str) -> list[int]:
    """Processes whose command line holds the mark, seen by a second process."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if mark in line and "ps -eo" not in line]


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 10
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(mark)


def test_daemons_die_with_the_jail(jail: JailKind) -> None:
    mark = f"31{os.getpid()}7"
    script = f"(setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark} & sleep {mark}' &) ; sleep 0.3; exit 0"
    run_inside(jail, script)
    assert gone(f"sleep {mark}")


def test_everything_dies_when_the_starter_is_killed(jail: JailKind) -> None:
    mark = f"41{os.getpid()}3"
    inner = ["exec", "--", "/bin/sh", "-c", f"(setsid sleep {mark} &); sleep {mark}"]
    code = (
        "import sys, subprocess\n"
        "from outpace.judge.jail import Confinement, jail_command\n"
        f"c = jail_command({jail!r}, Confinement(fork=True, processes=8), {inner!r})\n"
        "p = subprocess.Popen(c.argv, env=dict(c.environment), pass_fds=c.fds)\n"
        "print('started', flush=True)\n"
        "p.wait()\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    starter.stdout.readline()
    deadline = time.monotonic() + 20
    while len(alive(f"sleep {mark}")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    assert gone(f"sleep {mark}")


def test_without_any_jail_a_run_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from outpace.errors import JailError

    monkeypatch.setattr(jails, "bubblewrap_works", lambda: "bwrap is not installed")
    monkeypatch.setattr(jails, "fallback_works", lambda: "this user may not create namespaces")
    with pytest.raises(JailError, match="--no-jail"):
        jails.best_jail()


def test_the_fallback_serves_where_bubblewrap_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    jail_or_skip("fallback")
    monkeypatch.setattr(jails, "bubblewrap_works", lambda: "bwrap is not installed")
    assert jails.best_jail() == "fallback"
