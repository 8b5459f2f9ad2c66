#!/usr/bin/env python3
"""Peer: torch.distributed.pipelining on the CPU (Gloo), one thread per rank.

usage: torch_pipeline.py [--schedule=gpipe|1f1b|interleaved|zbv] [--stages=N] [--micro=M] [--steps=S] …

Prints one line of JSON: tokens/s over the timed steps. --stages=1 is plain PyTorch in one process; with --copies=N that
many such processes, which know nothing of each other, run at once and their rates are added.

With --emulate-ms=F a stage does not compute: it waits F ms forward and 2F ms backward (per stage of an N-deep pipeline;
virtual stages share it), so that deep pipelines can be measured on few cores. "busy" is then the time every rank must
wait for its own stages over the time taken.
"""
import argparse
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

WARM_UP_STEPS = 2


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.heads = heads

    def forward(self, x):
        b, t, h = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, h)
        x = x + self.proj(attended)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Stage(nn.Module):
    """Blocks `low` to `high` of a GPT, with the embedding in front and the head behind where they belong."""

    def __init__(self, sizes, low, high):
        super().__init__()
        self.first, self.last = low == 0, high == sizes.layers
        if self.first:
            self.tok, self.pos = nn.Embedding(sizes.vocab, sizes.hidden), nn.Embedding(sizes.seq, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes.hidden, sizes.heads) for _ in range(low, high))
        if self.last:
            self.ln, self.head = nn.LayerNorm(sizes.hidden), nn.Linear(sizes.hidden, sizes.vocab, bias=False)

    def forward(self, x):
        if self.first:
            x = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)) if self.last else x


def wait_exactly(seconds):
    """As Everstep's emulated device does: the last stretch awake, because a sleep ends late."""
    end = time.perf_counter() + seconds
    if seconds > 0.0003:
        time.sleep(seconds - 0.0003)
    while time.perf_counter() < end:
        os.sched_yield()


class Wait(torch.autograd.Function):
    """Waits once forward if asked, once backward: one for the input's gradient and one for the weight's, so that
    schedules that split the backward pay each half once."""

    @staticmethod
    def forward(ctx, x, seconds, waits_forward):
        ctx.seconds = seconds
        wait_exactly(seconds if waits_forward else 0)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        wait_exactly(ctx.seconds)
        return gradient, None, None


class EmulatedStage(nn.Module):
    def __init__(self, sizes, first, seconds):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.hidden, self.first, self.seconds = sizes.hidden, first, seconds

    def forward(self, x):
        if self.first:
            x = x[..., None].float().expand(*x.shape, self.hidden)
        if not x.requires_grad:
            x = x.requires_grad_()
        return Wait.apply(x, self.seconds, True) + Wait.apply(self.weight, self.seconds, False)


def cross_entropy(output, target):
    return F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def plain_step(options, x, y):
    """One update of one process that trains alone."""
    model = Stage(options, 0, options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        for part, labels in zip(x.chunk(options.micro), y.chunk(options.micro)):
            (cross_entropy(model(part), labels) / options.micro).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def stages_of(options, rank):
    """The numbers of this rank's stages, and how many there are in all."""
    if options.schedule in ("1f1b", "gpipe"):
        return [rank], options.stages
    total = 2 * options.stages
    return [rank, rank + options.stages if options.schedule == "interleaved" else total - 1 - rank], total


def pipeline_step(options, rank, x, y):
    from torch.distributed import pipelining
    ids, total = stages_of(options, rank)
    if options.emulate_ms:
        seconds = options.emulate_ms / 1e3 * options.stages / total
        modules = [EmulatedStage(options, i == 0, seconds) for i in ids]
    else:
        cut = [round(i * options.layers / total) for i in range(total + 1)]
        modules = [Stage(options, cut[i], cut[i + 1]) for i in ids]
    optimizer = torch.optim.AdamW([p for module in modules for p in module.parameters()], lr=1e-4)
    stages = [pipelining.PipelineStage(module, i, total, torch.device("cpu")) for module, i in zip(modules, ids)]
    kinds = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B,
             "interleaved": pipelining.ScheduleInterleaved1F1B, "zbv": pipelining.ScheduleZBVZeroBubble}
    loss = (lambda output, target: output.mean()) if options.emulate_ms else cross_entropy
    schedule = kinds[options.schedule](stages if len(stages) > 1 else stages[0], options.micro, loss_fn=loss)

    def step():
        inputs = (x,) if 0 in ids else ()
        labels = {"target": y, "losses": []} if total - 1 in ids else {}
        schedule.step(*inputs, **labels)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def run(rank, options, port, rates):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    processes = max(options.stages, options.copies)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=processes)
    shape = (options.micro * options.mb, options.seq)
    x, y = torch.randint(0, options.vocab, shape), torch.randint(0, options.vocab, shape)
    step = pipeline_step(options, rank, x, y) if options.stages > 1 else plain_step(options, x, y)
    for _ in range(WARM_UP_STEPS):
        step()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(options.steps):
        step()
    if options.stages > 1:
        dist.barrier()
    rates.put(options.steps * x.numel() / (time.perf_counter() - begin))
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = dict(layers=8, hidden=256, heads=8, seq=128, vocab=256, mb=4, micro=4, steps=10, stages=2, copies=1)
    for name, default in sizes.items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--emulate-ms", type=float, default=0)
    parser.add_argument("--schedule", default="1f1b", choices=["gpipe", "1f1b", "interleaved", "zbv"])
    options = parser.parse_args()
    processes = max(options.stages, options.copies)
    rates = mp.get_context("fork").SimpleQueue()
    mp.start_processes(run, (options, free_port(), rates), nprocs=processes, start_method="fork")
    all_rates = [rates.get() for _ in range(processes)]
    rate = min(all_rates) if options.stages > 1 else sum(all_rates)
    result = {"torch": torch.__version__, "schedule": options.schedule if options.stages > 1 else "plain",
              "stages": options.stages, "copies": options.copies, "micro": options.micro, "tokens_per_s": rate}
    if options.emulate_ms:
        result["busy"] = rate * 3 * options.emulate_ms / 1e3 / (options.mb * options.seq)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
