#!/usr/bin/env python3
"""Peer: torchft, which goes on with the replicas that are left (Gloo, CPU).

usage: torchft_recover.py [--after=SECONDS]

Two replica groups of one process train a small model, 50 ms a step. One is killed after some seconds (3) of steps, and
a new one joins later. Prints one line of JSON: seconds from the kill to the survivor's next completed step, the usual
time of a step, how much longer than that the longest pause was while the new one joined, how long that took in all, and
how many tries failed before: now and then the survivor breaks off too.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
from datetime import timedelta

sys.dont_write_bytecode = True
from step_log import (first_step_of_others, first_success, free_port, log_step, read_steps, stall,  # noqa: E402
                      usual_step_time, wait_for)

DIRECTORY = "EVERSTEP_PEER_DIRECTORY"  # set for the replicas
REPLICA = "EVERSTEP_PEER_REPLICA"
STEP_SECONDS = 0.05
STORE = "import sys, time, torch.distributed as dist\n" \
        "store = dist.TCPStore('127.0.0.1', int(sys.argv[1]), is_master=True, wait_for_workers=False)\n" \
        "time.sleep(600)"


def train(directory, replica):
    import torch
    from torch import nn
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    plain_optimizer = torch.optim.AdamW(model.parameters())

    def load(state):
        model.load_state_dict(state["model"])
        plain_optimizer.load_state_dict(state["optimizer"])

    def save():
        return {"model": model.state_dict(), "optimizer": plain_optimizer.state_dict()}

    manager = Manager(pg=ProcessGroupGloo(timeout=timedelta(seconds=5)), min_replica_size=1, load_state_dict=load,
                      state_dict=save, replica_id=f"replica-{replica}", timeout=timedelta(seconds=10), rank=0,
                      world_size=1, store_addr="127.0.0.1", store_port=int(os.environ["MASTER_PORT"]))
    parallel, optimizer = DistributedDataParallel(manager, model), Optimizer(manager, plain_optimizer)
    last = 0
    while True:
        optimizer.zero_grad()
        parallel(torch.randn(32, 256)).square().mean().backward()
        optimizer.step()
        time.sleep(STEP_SECONDS)
        if manager.current_step() > last:  # else the step failed, and is done again
            last = manager.current_step()
            log_step(directory / f"steps-{replica}", last, manager.num_participants())


class Replicas:
    def __init__(self, directory):
        self.directory = directory
        self.log = directory / "log"
        self.processes = []
        self.lighthouse = f"127.0.0.1:{free_port()}"
        program = pathlib.Path(sys.executable).parent / "torchft_lighthouse"
        self.start([program, "--min_replicas", "1", "--bind", self.lighthouse, "--join_timeout_ms", "1000"], {})

    def start(self, command, environment):
        with self.log.open("a") as log:
            process = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def start_replica(self, number):
        port = str(free_port())
        self.start([sys.executable, "-c", STORE, port], {})
        return self.start([sys.executable, __file__], {
            DIRECTORY: str(self.directory), REPLICA: str(number), "TORCHFT_LIGHTHOUSE": f"http://{self.lighthouse}",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(directory, after):
    steps = lambda: read_steps(directory / "steps-0")
    replicas = Replicas(directory)
    try:
        survivor, victim = replicas.start_replica(0), replicas.start_replica(1)
        wait = lambda what, condition: wait_for(what, condition, survivor, replicas.log)
        wait("both replicas", lambda: sum(step.group == 2 for step in steps()) > 10)
        time.sleep(after)
        killed = time.monotonic()
        victim.kill()
        found = wait("a step after the kill", lambda: first_step_of_others(steps(), killed, 2))
        usual = usual_step_time([step for step in steps() if step.group == 2], killed)
        time.sleep(after)
        started = time.monotonic()
        replicas.start_replica(1)
        joined = wait("the new replica", lambda: first_step_of_others(steps(), started, 1))
        time.sleep(1)
        alone = [step for step in steps() if step.at > found.at]
        return {"recovery_s": found.at - killed, "step_s": usual, "join_s": joined.at - started,
                "join_stall_s": stall(alone, started, joined.at + 1)}
    finally:
        replicas.end()


def main():
    if DIRECTORY in os.environ:
        train(pathlib.Path(os.environ[DIRECTORY]), os.environ[REPLICA])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--after", type=float, default=3)
    options = parser.parse_args()
    print(json.dumps(first_success(lambda directory: measure(directory, options.after))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
