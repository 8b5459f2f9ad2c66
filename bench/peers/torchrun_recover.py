#!/usr/bin/env python3
"""Peer: torchrun restarts its workers when one dies (Gloo, CPU).

usage: torchrun_recover.py [--workers=N] [--after=SECONDS]

Trains a small model data-parallel on N (2) workers, with a checkpoint after every step of 50 ms; kills one of them
after some seconds (3) of steps. Prints one line of JSON: seconds from the kill to the next completed step, the usual
time of a step, how many steps were done again, and how many tries failed before: now and then the workers that torchrun
has started again wait for each other in Gloo and never begin.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from step_log import (first_step_of_others, first_success, free_port, log_step, read_steps,  # noqa: E402
                      usual_step_time, wait_for)

DIRECTORY = "EVERSTEP_PEER_DIRECTORY"  # set for the processes that torchrun starts
STEP_SECONDS = 0.05


def train(directory):
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    (directory / f"pid-{rank}").write_text(str(os.getpid()))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    checkpoint, unfinished, step = directory / "checkpoint", directory / "unfinished", 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    while True:
        parallel(torch.randn(32, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        time.sleep(STEP_SECONDS)
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, unfinished)
            unfinished.replace(checkpoint)
            log_step(directory / "steps", step, int(os.environ["TORCHELASTIC_RESTART_COUNT"]))


def measure(directory, workers, after):
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", **{DIRECTORY: str(directory)})
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={workers}",
               f"--master-port={free_port()}", "--max-restarts=3", "--monitor-interval=0.1", __file__]
    steps = lambda: read_steps(directory / "steps")
    log = directory / "log"
    with log.open("w") as file:
        run = subprocess.Popen(command, env=environment, stderr=file, stdout=file)
    try:
        wait_for("steps", lambda: len(steps()) > 10, run, log)
        time.sleep(after)
        killed = time.monotonic()
        os.kill(int((directory / f"pid-{workers - 1}").read_text()), signal.SIGKILL)
        found = wait_for("a step after the kill", lambda: first_step_of_others(steps(), killed, 0), run, log)
    finally:
        run.terminate()
        run.wait()
    last = max(step.step for step in steps() if step.group == 0)
    return {"recovery_s": found.at - killed, "step_s": usual_step_time(steps(), killed),
            "steps_redone": last - found.step + 1}


def main():
    if DIRECTORY in os.environ:
        train(pathlib.Path(os.environ[DIRECTORY]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--after", type=float, default=3)
    options = parser.parse_args()
    print(json.dumps(first_success(lambda directory: measure(directory, options.workers, options.after))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
