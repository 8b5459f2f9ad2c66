#!/usr/bin/env python3
"""Peer: torch.distributed.checkpoint in one process.

usage: torch_dcp.py DIRECTORY [--mib=512] [--tensors=64]

Saves that many MiB of fp32 in that many tensors below DIRECTORY, files fsynced, and loads them again. Prints one line of
JSON, in seconds: a plain save; an asynchronous one, until training may go on (its staging buffers are warm by then) and
until it is done; a load into tensors that exist, of files that are in the page cache.
"""
import json
import os
import pathlib
import socket
import sys
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(directory, mib, tensors):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=0, world_size=1)
    state = {f"t{i}": torch.randn(mib * 2**20 // 4 // tensors) for i in range(tensors)}
    result = {"torch": torch.__version__}

    def writer(name):
        return dcp.FileSystemWriter(directory / name, sync_files=True)

    begin = time.perf_counter()
    dcp.save(state, storage_writer=writer("plain"))
    result["save_s"] = time.perf_counter() - begin
    for name in ("cold", "warm"):
        begin = time.perf_counter()
        pending = dcp.async_save(state, storage_writer=writer(name))
        result["stall_s"] = time.perf_counter() - begin
        pending.result()
        result["async_save_s"] = time.perf_counter() - begin

    loaded = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    begin = time.perf_counter()
    dcp.load(loaded, checkpoint_id=directory / "plain")
    result["load_s"] = time.perf_counter() - begin
    assert all(torch.equal(state[name], loaded[name]) for name in state), "what was loaded is not what was saved"
    dist.destroy_process_group()
    return result


def main():
    options = {"mib": 512, "tensors": 64}
    directories = []
    for argument in sys.argv[1:]:
        name, _, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in options and value.isdigit():
            options[name] = int(value)
        elif argument.startswith("-"):
            directories.clear()
            break
        else:
            directories.append(argument)
    if len(directories) != 1:
        print(__doc__.strip())
        return 0 if {"-h", "--help"} & set(sys.argv) else 64
    print(json.dumps(measure(pathlib.Path(directories[0]), **options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
