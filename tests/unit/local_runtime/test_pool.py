"""Execution environments: real child processes, with small handlers instead of the functions."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from galley_cli.local.pool import FunctionError, FunctionSetup, LambdaPool, PoolClosed, Returned
from galley_cli.local.state import StateDirectory

PROJECT = Path(__file__).parents[3]
HANDLER = """
import logging, os, sys, time
print("imported")

def handler(event, context):
    match event.get("do"):
        case "raise":
            raise LookupError("no such thing")
        case "exit":
            os._exit(7)
        case "hang":
            time.sleep(60)
        case "sleep":
            time.sleep(event["seconds"])
        case "object":
            return object()
        case "print a lot":
            for stream in (sys.stdout, sys.stderr):
                print("x" * 100_000, file=stream, flush=True)
            logging.getLogger("sample").error("y" * 100_000)
            sys.stdout.write("z" * 100_000)
        case "print":
            print("said on stdout")
            print("said on stderr", file=sys.stderr)
            os.write(1, b"said by C code" + bytes([10]))
    return {
        "pid": os.getpid(),
        "request": context.aws_request_id,
        "remaining": context.get_remaining_time_in_millis(),
        "name": context.function_name,
        "memory": context.memory_limit_in_mb,
        "cwd": os.getcwd(),
        "stage": os.environ["GALLEY_STAGE"],
    }
"""

Make = Callable[..., LambdaPool]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    code = tmp_path / "code"
    code.mkdir()
    StateDirectory.open(tmp_path / "state").close()
    pools: list[LambdaPool] = []

    def build(handler: str = HANDLER, *, limit_seconds: float = 20, concurrency: int = 1) -> LambdaPool:
        (code / "sample.py").write_text(handler, encoding="utf-8")
        setup = FunctionSetup(
            name="sample",
            handler="sample.handler",
            code=code,
            environment=lambda: {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join([str(PROJECT / "cli"), str(PROJECT / "layers" / "galley")]),
                "GALLEY_STAGE": "local",
            },
            memory_mb=256,
            time_limit=timedelta(seconds=limit_seconds),
            concurrency=concurrency,
        )
        pool = LambdaPool({"sample": setup}, tmp_path / "state")
        pools.append(pool)
        return pool

    yield build
    for pool in pools:
        pool.close(timedelta())


def value_of(invocation: object) -> dict[str, Any]:
    assert isinstance(invocation, Returned), invocation
    return dict(invocation.value)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def sandboxes(folder: Path) -> set[int]:
    """Return the processes of the environments over a test's state directory."""
    listed = subprocess.run(["ps", "-eww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    lines = [line.split(maxsplit=1) for line in listed.splitlines()]
    return {int(pid) for pid, arguments in lines if str(folder / "state") in arguments}


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_handler_is_told_what_lambda_tells_it(make: Make, tmp_path: Path) -> None:
    pool = make()
    first, second = value_of(pool.invoke("sample", {})), value_of(pool.invoke("sample", {}))
    assert first["pid"] == second["pid"], "the environment is reused"
    assert first["request"] != second["request"], "each invocation has its own id"
    assert 15_000 < first["remaining"] <= 20_000
    assert (first["name"], first["memory"], first["stage"]) == ("sample", "256", "local")
    assert first["cwd"] == str(tmp_path / "code")


def test_an_exception_is_a_function_error_and_the_environment_stays(make: Make) -> None:
    pool = make()
    before = value_of(pool.invoke("sample", {}))["pid"]
    assert pool.invoke("sample", {"do": "raise"}) == FunctionError("LookupError", "no such thing")
    assert value_of(pool.invoke("sample", {}))["pid"] == before


def test_a_result_that_is_not_json_is_a_function_error(make: Make) -> None:
    failed = make().invoke("sample", {"do": "object"})
    assert isinstance(failed, FunctionError)
    assert failed.error_type == "Runtime.MarshalError"


def test_at_the_time_limit_the_process_is_killed_and_the_next_event_gets_another(make: Make) -> None:
    pool = make(limit_seconds=0.5)
    before = value_of(pool.invoke("sample", {}))["pid"]
    started = time.monotonic()
    assert pool.invoke("sample", {"do": "hang"}) == FunctionError(
        "Sandbox.Timedout", "Task timed out after 0.50 seconds"
    )
    assert time.monotonic() - started < 5
    assert not is_alive(before)
    assert value_of(pool.invoke("sample", {}))["pid"] != before


def test_a_function_that_reads_its_standard_input_finds_it_empty(make: Make) -> None:
    """The pipe of the requests is not its own: reading it once took requests away, and hung."""
    pool = make("import sys\n\ndef handler(event, context):\n    return {'read': sys.stdin.read()}\n")
    assert [value_of(pool.invoke("sample", {})) for _ in range(2)] == [{"read": ""}, {"read": ""}]


def test_a_process_that_dies_is_a_function_error_and_is_replaced(make: Make) -> None:
    pool = make()
    failed = pool.invoke("sample", {"do": "exit"})
    assert isinstance(failed, FunctionError)
    assert failed.error_type == "Runtime.ExitError"
    assert "7" in failed.message
    idle = value_of(pool.invoke("sample", {}))["pid"]
    os.kill(idle, signal.SIGKILL)
    time.sleep(0.2)
    assert value_of(pool.invoke("sample", {}))["pid"] != idle, "one that died idle costs no event"


def test_a_handler_that_cannot_be_imported_is_a_function_error_each_time(make: Make) -> None:
    pool = make("import nothing_by_this_name\n")
    for _ in range(2):
        failed = pool.invoke("sample", {})
        assert isinstance(failed, FunctionError)
        assert failed.error_type == "Runtime.ImportModuleError"
        assert failed.message.startswith("ModuleNotFoundError: ")
        assert "nothing_by_this_name" in failed.message


def test_what_the_code_prints_goes_to_its_log_and_never_into_the_protocol(make: Make, tmp_path: Path) -> None:
    pool = make()
    value_of(pool.invoke("sample", {"do": "print"}))
    pool.invoke("sample", {"do": "raise"})
    log = (tmp_path / "state" / "logs" / "sample.log").read_text(encoding="utf-8")
    for line in ["imported", "said on stdout", "said on stderr", "said by C code", "LookupError: no such thing"]:
        assert line in log


def test_a_full_log_becomes_the_previous_one(make: Make, tmp_path: Path) -> None:
    logs = tmp_path / "state" / "logs"
    logs.mkdir(parents=True)
    (logs / "sample.log").write_bytes(b"x" * 5_000_001)
    value_of(make().invoke("sample", {"do": "print"}))
    assert (logs / "sample.log").stat().st_size < 10_000
    assert (logs / "sample.log.1").stat().st_size > 5_000_000


@pytest.fixture(params=["full disk", "a folder in its place", "a file in its folder's place", "full disk when rolled"])
def unwritable_log(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Let nothing be written to the log."""
    logs = tmp_path / "state" / "logs"
    log = logs / "sample.log"
    if request.param == "a file in its folder's place":
        logs.write_text("no folder")
        return
    logs.mkdir()
    match request.param:
        case "full disk":
            log.symlink_to("/dev/full")
        case "a folder in its place":
            log.mkdir()
        case "full disk when rolled":
            log.write_bytes(b"x" * 5_000_001)
            (logs / "sample.log.1").mkdir()


def test_a_log_that_cannot_be_written_fails_no_invocation(make: Make, unwritable_log: None) -> None:
    pool = make()
    before = value_of(pool.invoke("sample", {}))["pid"]
    assert pool.invoke("sample", {"do": "raise"}) == FunctionError("LookupError", "no such thing")
    for _ in range(2):
        assert value_of(pool.invoke("sample", {"do": "print a lot"}))["pid"] == before


def test_no_more_events_at_once_than_the_concurrency(make: Make) -> None:
    pool = make(concurrency=2)
    pids: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: pids.append(value_of(pool.invoke("sample", {"do": "sleep", "seconds": 0.3}))["pid"])
        )
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 5
    assert len(set(pids)) == 2


def test_warm_environments_take_the_first_events(make: Make, tmp_path: Path) -> None:
    pool = make(concurrency=2)
    pool.warm("sample", 5)
    pool.warm("sample", 2)
    pids = sandboxes(tmp_path)
    assert len(pids) == 2
    assert value_of(pool.invoke("sample", {}))["pid"] in pids


def test_closing_lets_running_events_finish_and_ends_every_process(make: Make, tmp_path: Path) -> None:
    pool = make(concurrency=2)
    pool.warm("sample", 2)
    pids = sandboxes(tmp_path)
    assert len(pids) == 2
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(pool.invoke("sample", {"do": "sleep", "seconds": 0.5})))
    thread.start()
    assert wait_until(pool.is_busy)
    assert pool.close(timedelta(seconds=10)) == 0
    thread.join()
    assert isinstance(results[0], Returned)
    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(PoolClosed):
        pool.invoke("sample", {})


def test_closing_cuts_what_does_not_finish(make: Make) -> None:
    pool = make()
    cut: list[PoolClosed] = []

    def hang() -> None:
        try:
            pool.invoke("sample", {"do": "hang"})
        except PoolClosed as closed:
            cut.append(closed)

    thread = threading.Thread(target=hang)
    thread.start()
    assert wait_until(pool.is_busy)
    assert pool.close(timedelta(seconds=0.1)) == 1
    thread.join()
    assert "cut short" in str(cut[0])


def test_no_process_outlives_a_parent_that_was_killed(make: Make, tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(
        f"""
import sys, time
from datetime import timedelta
from pathlib import Path
from galley_cli.local.pool import FunctionSetup, LambdaPool
import os
setup = FunctionSetup("sample", "sample.handler", Path({str(tmp_path / "code")!r}),
    lambda: dict(os.environ), 256, timedelta(seconds=60), 2)
pool = LambdaPool({{"sample": setup}}, Path({str(tmp_path / "state")!r}))
pool.warm("sample", 2)
print(pool.invoke("sample", {{}}).value["pid"], flush=True)
pool.invoke("sample", {{"do": "hang"}})
""",
        encoding="utf-8",
    )
    make()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "cli"), str(PROJECT / "layers" / "galley")]),
        "GALLEY_STAGE": "local",
    }
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, str(parent)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    answered = int(process.stdout.readline())
    children = sandboxes(tmp_path)
    assert len(children) == 2
    assert answered in children
    time.sleep(0.1)
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until(lambda: not any(is_alive(pid) for pid in children)), "one works, one waits: both must end"
