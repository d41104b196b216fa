"""Commands in the sandbox (threat T13, cases FIL-02 to FIL-04)."""

import os
import resource
import threading
import time
from collections.abc import Callable

import psutil
import pytest
from pytest_django import Settings

from tests.processes import wait_until
from tools.cancel import CancelToken
from tools.sandbox import box, seccomp
from tools.sandbox.folder import Folder
from tools.sandbox.run import Ended, Ending, run

pytestmark = pytest.mark.faults

# What a call may take beyond its time, on a busy machine.
GRACE = 20.0
# By which our processes are known, and not those of another run of these tests.
MARK = 10_000_000 + os.getpid()
SLEEP = f"sleep {MARK}"

type Shell = Callable[..., Ended]


@pytest.fixture(autouse=True)
def withheld() -> None:
    """Without bubblewrap the reason is tested instead (test_selftest). Where it is there, nothing is skipped."""
    if missing := box.missing_program():
        pytest.skip(f"{missing} is not there")


@pytest.fixture
def shell(folder: Folder) -> Shell:
    """Run a script in the sandbox, for so many seconds at most. In names of tests SLEEP stands for ours."""

    def shell(script: str, seconds: float = 30, cancel: CancelToken | None = None) -> Ended:
        return run(folder, ["/bin/bash", "-c", script.replace("SLEEP", SLEEP)], cancel or CancelToken(), seconds)

    return shell


def survivors() -> list[list[str]]:
    """Processes of this machine that a command has left behind."""
    told = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    return [words for words in told if any(str(MARK) in word for word in words)]


def test_a_command_works_in_its_workspace(shell: Shell, folder: Folder) -> None:
    ended = shell("pwd; mkdir made; echo words > made/a.txt; exit 3")
    assert (ended.ending, ended.code, ended.output.text().strip()) == (Ending.OVER, 3, "/workspace")
    assert (folder.files / "made" / "a.txt").read_text() == "words\n"


# -- What it may not do (T13, T15) ------------------------------------------------------------------------------------

ESCAPES = {
    "reads the data folder": "ls {data}",
    "reads the neighbour": "cat {other}/files/secret.txt",
    "reads its own history": "cat {home}/kept/secret.txt",
    "reads passwords": "cat /etc/shadow /etc/passwd",
    "reads homes": "ls /root /home",
    "lists what is above": "ls /workspace/../work /workspace/../root /workspace/../var",
    "goes through another process": "cat /proc/1/root/etc/passwd",
    "goes through its parent": "cat /proc/$PPID/root{data}/*",
    "writes to the system": "touch /usr/bin/waymark",
    "writes beside the workspace": "touch /waymark",
    "mounts": "mount -t tmpfs none /tmp",
    "makes a user namespace": "unshare --user --map-root-user true",
    "makes a mount namespace": "unshare --mount true",
    "makes a device": "mknod /workspace/sda b 8 0",
    "becomes root": "/usr/bin/setpriv --reuid 0 true",
    "sends a signal out": "kill -0 {worker}",
    "opens a connection": "exec 3<> /dev/tcp/127.0.0.1/{port}",
    "asks a name server": "exec 3<> /dev/udp/8.8.8.8/53 && echo x >&3",
    "raises its limits": "ulimit -u 100000 && ulimit -n 100000",
    "changes the host's name": "hostname changed",
    "remounts the system": "mount -o remount,rw /usr",
    "uses a terminal": "echo > /dev/tty",
    "follows a link out": "ln -s {other}/files/secret.txt l && cat l",
    "links hard to what is outside": "ln /usr/bin/env hard",
}


@pytest.mark.parametrize("way", ESCAPES)
def test_no_way_out(way: str, shell: Shell, folder: Folder, other: Folder) -> None:
    (folder.kept.folder / "secret.txt").write_text("SECRET")
    names = {
        "data": os.environ.get("WAYMARK_DATA", "/root"),
        "other": other.home,
        "home": folder.home,
        "worker": os.getpid(),
        "port": 1,
    }
    script = ESCAPES[way]
    for name, value in names.items():
        script = script.replace(f"{{{name}}}", str(value))
    ended = shell(script)
    assert ended.ending is Ending.OVER
    assert ended.code != 0, ended.output.text()
    assert "SECRET" not in ended.output.text()


def test_a_network_that_is_there_outside_is_not_there_inside(shell: Shell) -> None:
    """The scripted server listens here; without the sandbox the same script reaches it."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert shell(f"exec 3<> /dev/tcp/127.0.0.1/{port}").code != 0
        assert os.system(f"bash -c 'exec 3<> /dev/tcp/127.0.0.1/{port}'") == 0


def test_the_secrets_of_the_worker_are_not_there(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not in the environment of bubblewrap's own process, which is number 1 inside."""
    monkeypatch.setenv("CANARY", "canary-of-the-worker")
    ended = shell("cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; env; set")
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in ended.output.text()
    for secret in ("canary-of-the-worker", os.environ["WAYMARK_SECRET_KEY"], os.environ["DATABASE_URL"]):
        assert secret not in ended.output.text()


@pytest.mark.skipif(seccomp._code(os.uname().machine) is None, reason="no filter for this machine")
def test_system_calls_that_no_honest_command_makes_are_refused(shell: Shell) -> None:
    numbers = (101, 250, 425) if os.uname().machine == "x86_64" else (117, 219, 425)  # ptrace, keyctl, io_uring_setup
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
    script += f"for n in {numbers}: print(l.syscall(n, 0, 0, 0, 0), ctypes.get_errno())"
    ended = shell(f"/usr/bin/python3 -c '{script}'")
    assert ended.output.text().splitlines() == ["-1 1"] * 3


@pytest.mark.skipif(seccomp._code(os.uname().machine) is None, reason="no filter for this machine")
def test_memory_that_no_limit_counts_and_the_machine_below_are_out_of_reach(shell: Shell) -> None:
    memory, shared, socket = (319, 29, 41) if os.uname().machine == "x86_64" else (279, 194, 198)
    calls = [(memory, 'b"x"', 0, 0), (shared, 0, 4096, 0o1600), (socket, 40, 1, 0), (socket, 17, 3, 0)]
    calls += [(socket, family, 2, 0) for family in (1, 2, 10)]
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
    script += "".join(f"print(l.syscall({', '.join(map(str, call))}) >= 0, ctypes.get_errno())\n" for call in calls)
    ended = shell(f"/usr/bin/python3 -c '{script}'")
    assert ended.output.text().splitlines() == ["False 1"] * 4 + ["True 1"] * 3


def test_devices_work_and_nothing_is_put_beside_them(shell: Shell) -> None:
    assert shell("head -c 100000 /dev/zero > /dev/fill").code != 0
    assert shell("mkdir /dev/d").code != 0
    ended = shell("echo x > /dev/null && head -c 3 /dev/zero | wc -c && : > /dev/shm/x && ls /dev/pts")
    assert (ended.code, ended.output.text().split()[0]) == (0, "3")


def test_it_runs_as_nobody_who_owns_anything_else(shell: Shell, folder: Folder) -> None:
    assert shell("touch mine; id -u; grep -c Cap.*[1-9a-f] /proc/self/status").output.text().split()[0] != "0"
    owner = (folder.files / "mine").stat().st_uid
    assert owner != 0
    assert owner == (os.geteuid() or owner)


# -- FIL-02 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "cat",
        "read x; echo $x",
        "/usr/bin/python3 -c 'input()'",
        "git init -q . && git -c user.name=a -c user.email=a@b.c commit --allow-empty",
        "sudo -k true",
        "ssh -o ConnectTimeout=5 nosuchhost",
        "less /proc/self/status",
        "apt-get install foo",
        "SLEEP &",
    ],
)
def test_fil_02_a_command_that_waits_for_input_ends_by_itself(script: str, shell: Shell) -> None:
    ended = shell(script, seconds=60)
    assert ended.ending is Ending.OVER, ended.output.text()
    assert ended.clean
    assert survivors() == []


# -- FIL-03 -----------------------------------------------------------------------------------------------------------

TREES = {
    "a": f"{SLEEP} & {SLEEP}",
    "b": f"(trap '' TERM INT HUP; {SLEEP})",
    "c": f"setsid {SLEEP} & echo started",
    "d": f"{SLEEP} > /dev/null 2>&1 &",
    "e": f"nohup {SLEEP} & exit 0",
    "closed output": f"exec > /dev/null 2>&1; {SLEEP}",
    "double fork": f"( ( setsid {SLEEP} & ) & ) ; exit 0",
    "a tree": f"for i in 1 2 3; do ( for j in 1 2 3; do setsid {SLEEP} & done; wait ) & done; wait",
}


@pytest.mark.parametrize("tree", TREES)
def test_fil_03_nothing_is_left_of_a_command(tree: str, shell: Shell) -> None:
    began = time.monotonic()
    ended = shell(TREES[tree], seconds=2)
    assert time.monotonic() - began < 2 + GRACE
    assert ended.clean
    assert survivors() == []
    waits = tree in ("a", "b", "closed output", "a tree")
    assert ended.ending is (Ending.TIME if waits else Ending.OVER)


@pytest.mark.parametrize("bomb", [":(){ :|:& };:", "bomb() { bomb & bomb & wait; }; bomb", "while :; do SLEEP & done"])
def test_fil_03_f_a_fork_bomb_meets_its_limit(bomb: str, shell: Shell, settings: Settings) -> None:
    most = []
    over = threading.Event()

    def count() -> None:
        while not over.wait(0.05):
            most.append(len(survivors()))

    thread = threading.Thread(target=count)
    thread.start()
    ended = shell(f"{bomb} # {MARK}", seconds=3)
    over.set()
    thread.join()
    assert ended.clean
    assert max(most, default=0) < settings.WAYMARK_COMMAND_PROCESSES + 10  # and the sandbox itself
    assert "Resource temporarily unavailable" in ended.output.text() or ended.ending is Ending.OVER
    assert survivors() == []


def test_fil_03_g_stop_ends_it_at_once(shell: Shell) -> None:
    cancel = CancelToken()
    threading.Timer(1, cancel.cancel, ["stopped"]).start()
    began = time.monotonic()
    ended = shell(f"echo before; setsid {SLEEP} & {SLEEP}", 300, cancel)
    assert time.monotonic() - began < 1 + GRACE
    assert (ended.ending, ended.code, ended.clean) == (Ending.STOPPED, None, True)
    assert ended.output.text().strip() == "before"
    assert survivors() == []


def test_fil_03_memory_of_all_processes_together_is_limited(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_COMMAND_MEMORY = 150_000_000
    hog = "b = bytearray(60_000_000)\nfor i in range(0, len(b), 4096): b[i] = 1\nimport time; time.sleep(99)"
    ended = shell(f'for i in 1 2 3 4 5; do /usr/bin/python3 -c "{hog}" & done; wait', seconds=60)
    assert (ended.ending, ended.clean) == (Ending.MEMORY, True)


def test_fil_03_one_process_cannot_take_more_than_all_may(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_COMMAND_MEMORY = 100_000_000
    ended = shell("/usr/bin/python3 -c 'bytearray(400_000_000)'")
    assert (ended.ending, ended.code) == (Ending.OVER, 1)
    assert "MemoryError" in ended.output.text()


def test_fil_03_processor_time_is_limited(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_COMMAND_CPU_SECONDS = 1
    ended = shell("while :; do :; done", seconds=120)
    assert (ended.ending, ended.code) == (Ending.OVER, 128 + 9)


def test_fil_03_a_worker_that_dies_takes_its_commands_along(folder: Folder, tmp_path: object) -> None:
    """kill -9 of the process that started it; nothing can clean up then."""
    child = os.fork()
    if child == 0:
        try:
            run(folder, ["/bin/bash", "-c", f"setsid {SLEEP} & {SLEEP}"], CancelToken(), 300)
        finally:
            os._exit(1)
    wait_until(lambda: len(survivors()) >= 2)
    os.kill(child, 9)
    os.waitpid(child, 0)
    wait_until(lambda: survivors() == [])


# -- The room that files take -----------------------------------------------------------------------------------------


def test_a_command_that_fills_the_workspace_is_ended(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACE_BYTES = 5_000_000
    ended = shell("for i in {1..200}; do head -c 1000000 /dev/zero > f$i; sleep 0.05; done", seconds=120)
    assert (ended.ending, ended.clean) == (Ending.FILES, True)


def test_a_command_that_makes_files_without_end_is_ended(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACE_FILES = 200
    ended = shell("i=0; while :; do mkdir -p d$((i % 50)); : > d$((i % 50))/f$i; i=$((i + 1)); done", seconds=120)
    assert (ended.ending, ended.clean) == (Ending.FILES, True)


def test_files_that_are_open_without_a_name_count(shell: Shell, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACE_BYTES = 5_000_000
    hold = "exec {f}> f; rm f; head -c 1000000 /dev/zero >&$f; sleep 0.05"
    ended = shell(f"for i in {{1..60}}; do {hold}; done; {SLEEP}", seconds=20)
    assert (ended.ending, ended.clean) == (Ending.FILES, True)


def test_one_file_grows_to_its_limit_only(shell: Shell, folder: Folder, settings: Settings) -> None:
    settings.WAYMARK_COMMAND_FILE = 1_000_000
    assert shell("head -c 5000000 /dev/zero > large").code != 0
    assert (folder.files / "large").stat().st_size == 1_000_000


# -- FIL-04 -----------------------------------------------------------------------------------------------------------

OUTPUTS = {
    "yes": "yes",
    "zero": "cat /dev/zero",
    "urandom": "cat /dev/urandom",
    "one line": "head -c 300M /dev/zero | tr '\\0' a",
    "many lines": "for i in $(seq 1 200000); do echo $i; done",
    "progress": "for i in $(seq 1 100000); do printf '%s%%\\r' $i; done; echo done",
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_fil_04_endless_output_is_held_in_bounds(output: str, shell: Shell) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    ended = shell(OUTPUTS[output], seconds=4)
    assert time.monotonic() - began < 4 + GRACE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    text = ended.output.text()
    assert len(text) < 30_000
    assert ended.output.dropped > 0
    assert f"{ended.output.dropped:,} bytes are left out here" in text
    assert text.isprintable() or set(text) - {c for c in text if c.isprintable()} <= {
        "\n",
        "\t",
        "\ufffd",
        "\u0085",
    } | {c for c in text if not c.isascii()}
    if output in ("many lines", "progress") and ended.ending is Ending.OVER:
        assert text.strip().endswith(("200000", "done"))


def test_fil_04_a_cut_output_comes_with_its_exit_code(shell: Shell) -> None:
    ended = shell("head -c 300M /dev/zero | tr '\\0' a; exit 7", seconds=120)
    assert (ended.ending, ended.code, ended.output.total) == (Ending.OVER, 7, 300 * 1024**2)


def test_fil_04_signs_for_a_terminal_are_left_out(shell: Shell) -> None:
    ended = shell(r"printf '\033[2J\033]0;x\007\033[1;31mred\033[0m\b\b plain\r\n50%%\r100%%\n\303\251\377'")
    assert ended.output.text() == "red plain\n100%\né\ufffd"


def test_limits_that_the_sandbox_needs_are_there(shell: Shell) -> None:
    ended = shell("ulimit -u; ulimit -n; ulimit -c; tty; echo $EDITOR $PAGER $GIT_TERMINAL_PROMPT; echo ${TERM}")
    assert ended.output.text().split() == ["64", "256", "0", "not", "a", "tty", "false", "cat", "0", "dumb"]
    assert box.missing_program() == ""
