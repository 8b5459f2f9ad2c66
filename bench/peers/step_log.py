"""When steps were completed, and what a change of membership cost: one measure for every system that is compared.

Times are of the system's monotonic clock, which all processes of a machine share. A group is any number that changes
when workers go or come: how often torchrun has restarted, how many replicas take part, Everstep's generation.
"""
import pathlib
import random
import socket
import statistics
import sys
import tempfile
import time
from typing import NamedTuple


class Step(NamedTuple):
    at: float
    step: int
    group: int


def log_step(path, step, group):
    with open(path, "a", encoding="ascii") as file:
        file.write(f"{time.monotonic()} {step} {group}\n")


def read_steps(path):
    path = pathlib.Path(path)
    lines = path.read_text(encoding="ascii").splitlines(keepends=True) if path.exists() else []
    fields = [line.split() for line in lines if line.endswith("\n")]
    return [Step(float(at), int(step), int(group)) for at, step, group in fields]


def usual_step_time(steps, until):
    """The median time of the steps before."""
    times = [step.at for step in steps if step.at <= until]
    return statistics.median(after - before for before, after in zip(times, times[1:]))


def first_step_of_others(steps, since, group_before):
    """The first step that was completed without the worker that is gone, or None."""
    return next((step for step in steps if step.at > since and step.group != group_before), None)


def stall(steps, since, until):
    """How much longer than usual the longest pause between two steps was."""
    before = [step.at for step in steps if step.at <= since][-1:]
    times = before + [step.at for step in steps if since < step.at <= until]
    return max(after - before for before, after in zip(times, times[1:])) - usual_step_time(steps, since)


def free_port(following=0):
    """A port that nobody has, nor so many that follow it; below those that connections are given."""
    while True:
        first = random.randrange(10_000, 30_000)
        try:
            for port in range(first, first + following + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


class InVain(Exception):
    """What was waited for will not happen."""


def wait_for(what, condition, process, log, seconds=60):
    """Until the condition gives something, which is returned. The process, whose log that is, is to live meanwhile."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if process.poll() is not None or time.monotonic() > end:
            raise InVain(f"waited for {what} in vain:\n{log.read_text()[-2000:]}")
        time.sleep(0.02)
    return found


def first_success(measure, tries=5):
    """What measure(directory) gives, and how often it failed before: peers do not always survive what they are for."""
    for failed in range(tries):
        with tempfile.TemporaryDirectory() as directory:
            try:
                return measure(pathlib.Path(directory)) | {"failed": failed}
            except InVain as error:
                last = error
    sys.exit(f"failed {tries} times: {last}")
