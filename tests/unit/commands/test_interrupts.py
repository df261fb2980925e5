"""Signals to a running system: one asks for a clean stop, the second ends it at once, and none of them can hang it."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

from galley_cli.commands.run import Interrupts
from support.real_system import environment

ROUNDS = 3000


@pytest.mark.timeout(30)
def test_handlers_that_interrupt_each_other_hang_nothing() -> None:
    with Interrupts() as interrupts:

        def bombard() -> None:
            for number in range(ROUNDS):
                os.kill(os.getpid(), signal.SIGUSR1)
                if number % 100 == 0:
                    time.sleep(0.001)  # so that the other thread comes to its turn between two handlers, too
            os.kill(os.getpid(), signal.SIGTERM)

        sender = threading.Thread(target=bombard)
        sender.start()
        asked = sum(1 for _ in interrupts.requests_until_stop())
        sender.join()
    assert 1 <= asked <= ROUNDS


def test_a_stop_that_was_asked_for_before_the_wait_ends_it_at_once() -> None:
    with Interrupts() as interrupts:
        assert interrupts.wait(timedelta(0)) is False
        os.kill(os.getpid(), signal.SIGINT)
        began = time.monotonic()
        assert interrupts.wait(timedelta(seconds=20)) is True
        assert list(interrupts.requests_until_stop()) == []
        assert time.monotonic() - began < 5


def test_a_second_signal_ends_the_process_at_once() -> None:
    code = """
import os, signal, time
from galley_cli.commands.run import Interrupts
with Interrupts() as interrupts:
    os.kill(os.getpid(), signal.SIGINT)
    print("still here", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
"""
    ended = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGTERM, "still here\n", "")


def test_what_listened_before_listens_again() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)] == before
