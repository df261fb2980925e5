"""One execution environment of one function: ``python -m galley_cli.local.sandbox FUNCTION --handler MODULE.NAME ...``.

The process imports the handler once and then serves events one at a time, as JSON lines: a request on standard
input, an answer on standard output. What the code prints goes to the function's log. When standard input ends, the
process ends at once, wherever it is: so no function outlives the system that started it, even one that was killed.
"""

import argparse
import importlib
import io
import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from galley import system
from galley_cli.local.deployment import deployed
from galley_cli.local.environment import MODEL_KEY, MODEL_KEY_ARN
from galley_cli.local.state import StateDirectory
from galley_cli.local.system import LocalSystem

LOG_BYTES = 5_000_000
"""How large a function's log may be when an invocation begins; beyond it the log becomes the previous one."""

IMPORT_ERROR = "Runtime.ImportModuleError"
"""Lambda's name for what is wrong with a function whose handler cannot be imported."""

Handler = Callable[[Any, "Context"], Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda tells a handler about its invocation.

    https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
    """

    function_name: str
    memory_limit_in_mb: str
    aws_request_id: str
    log_stream_name: str
    deadline: float
    function_version: str = "$LATEST"
    identity: None = None
    client_context: None = None

    @property
    def invoked_function_arn(self) -> str:
        """The function's ARN."""
        return f"arn:aws:lambda:local:000000000000:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        """The function's log group."""
        return f"/aws/lambda/{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the invocation may still run."""
        return max(0, int((self.deadline - time.monotonic()) * 1000))


class _LosingFile(io.FileIO):
    """A file that loses what cannot be written to it: on a full disk a function still answers, it only says less."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


class Log:
    """A function's log file: everything that the process writes to its standard output and error.

    What cannot be written is lost, and is no error to whoever wrote it.
    """

    def __init__(self, path: Path, limit: int = LOG_BYTES) -> None:
        """Open the log, shared with the function's other processes, and send the process's own output there."""
        self._path = path
        self._limit = limit
        logging.raiseExceptions = False
        try:
            self._redirect(path)
        except OSError:
            self._redirect(Path(os.devnull))  # what is printed must not go into the protocol's own pipe
        sys.stdout, sys.stderr = _losing(1), _losing(2)

    def roll(self) -> None:
        """Begin a new file when this one is full, or when another process has begun one."""
        with suppress(OSError):
            self._roll()

    def _roll(self) -> None:
        here = os.fstat(1)
        try:
            there = self._path.stat()
        except FileNotFoundError:
            self._redirect(self._path)
            return
        if not os.path.samestat(here, there):
            self._redirect(self._path)
        elif there.st_size > self._limit:
            self._path.replace(self._path.with_suffix(".log.1"))
            self._redirect(self._path)

    def _redirect(self, path: Path) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)


def _losing(descriptor: int) -> io.TextIOWrapper:
    file = io.BufferedWriter(_LosingFile(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def error_of(error: BaseException) -> dict[str, Any]:
    """Return an exception as Lambda reports it to whoever invoked the function."""
    return {
        "errorType": type(error).__name__,
        "errorMessage": str(error),
        "stackTrace": traceback.format_tb(error.__traceback__),
    }


def answer(handler: Handler, event: Any, context: Context) -> str:
    """Invoke the handler and return the line that answers the request."""
    try:
        result = handler(event, context)
    except Exception as error:
        traceback.print_exc()
        return json.dumps({"error": error_of(error)})
    try:
        return json.dumps({"result": result})
    except (TypeError, ValueError) as error:
        return json.dumps({"error": {**error_of(error), "errorType": "Runtime.MarshalError"}})


def main(arguments: list[str] | None = None) -> None:
    """Serve events until standard input ends."""
    options = _options(arguments)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(_own_stdin(), requests), daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers, ExitStack() as held:
        log = Log(options.state / "logs" / f"{options.function}.log")
        try:
            state = StateDirectory.open_existing(options.state)
            held.enter_context(state.lock_for_working())
            _install_local_system(state)
        except Exception as error:
            traceback.print_exc()
            _say(answers, json.dumps({"init_error": error_of(error)}))
            return
        try:
            handler = _handler(options)
        except Exception as error:
            traceback.print_exc()
            told = {"errorType": IMPORT_ERROR, "errorMessage": f"{type(error).__name__}: {error}"}
            _say(answers, json.dumps({"init_error": {**error_of(error), **told}}))
            return
        _say(answers, json.dumps({"ready": True}))
        _serve(handler, requests, answers, log, options)


def _serve(
    handler: Handler, requests: "queue.SimpleQueue[str]", answers: IO[str], log: Log, options: argparse.Namespace
) -> NoReturn:
    stream = f"{os.getpid()}/[$LATEST]"
    while True:
        request = json.loads(requests.get())
        log.roll()
        started = time.monotonic()
        context = Context(
            function_name=options.function,
            memory_limit_in_mb=str(options.memory),
            aws_request_id=request["request_id"],
            log_stream_name=stream,
            deadline=started + request["limit_seconds"],
        )
        line = answer(handler, request["event"], context)
        milliseconds = (time.monotonic() - started) * 1000
        sys.stdout.write(f"REPORT RequestId: {context.aws_request_id} Duration: {milliseconds:.2f} ms\n")
        sys.stdout.flush()
        sys.stderr.flush()
        _say(answers, line)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m galley_cli.local.sandbox")
    parser.add_argument("function")
    parser.add_argument("--handler", required=True, help="MODULE.NAME in the code root")
    parser.add_argument("--code", required=True, type=Path, help="the function's code root")
    parser.add_argument("--state", required=True, type=Path, help="the state directory of the local system")
    parser.add_argument("--memory", required=True, type=int, help="what the handler is told of its memory, in MB")
    return parser.parse_args(arguments)


def _own_stdin() -> IO[str]:
    """Return this process's standard input, and leave an empty one to the function, as Lambda does.

    A function that read the real one would take our requests, or wait for ever on the thread that reads them.
    """
    requests_in = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    return requests_in


def _read(requests_in: IO[str], requests: "queue.SimpleQueue[str]") -> None:
    for line in requests_in:
        requests.put(line)
    os._exit(0)


def _handler(options: argparse.Namespace) -> Handler:
    sys.path.insert(0, str(options.code))
    module, _, name = options.handler.partition(".")
    handler: Handler = getattr(importlib.import_module(module), name)
    return handler


def _install_local_system(state: StateDirectory) -> None:
    """Let the handler's code meet this machine where it would meet AWS.

    The model's key leaves the environment: the code asks for it as a secret, as it does in AWS.
    """
    key = os.environ.pop(MODEL_KEY, None)
    secrets = {} if key is None else {MODEL_KEY_ARN: key}
    system.install(LocalSystem(state, deployed(state.root), secrets))


def _say(answers: IO[str], line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
