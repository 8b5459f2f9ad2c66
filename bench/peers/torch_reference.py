#!/usr/bin/env python3
"""Trains with PyTorch what dump_training wrote, as PyTorch's users would: autograd, torch.optim.AdamW, clip_grad_norm_.

usage: torch_reference.py DIR

Prints one line of JSON: the loss and the norm of the gradient (before clipping) of every update. Nothing here is shared
with Everstep but the names of the parameters, which are Hugging Face's.
"""
import json
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

GPT_EPSILON = 1e-5
BERT_EPSILON = 1e-12
IGNORED = -100


class Model:
    """The weights by name; the head's copy of the token embedding is the same tensor."""

    def __init__(self, run, directory):
        self.run = run
        flat = torch.from_numpy(numpy.fromfile(directory / "weights.f32", dtype="<f4"))
        self.weights, self.decayed, self.plain = {}, [], []
        tied = None
        for entry in run["parameters"]:
            size = numpy.prod(entry["shape"], dtype=int)
            value = flat[entry["offset"]:entry["offset"] + size].reshape(entry["shape"]).clone()
            if entry["tied"] and tied is not None:
                assert torch.equal(value, tied), "tied parameters must start equal"
                self.weights[entry["name"]] = tied
                continue
            parameter = torch.nn.Parameter(value)
            self.weights[entry["name"]] = parameter
            (self.decayed if entry["decay"] else self.plain).append(parameter)
            tied = parameter if entry["tied"] else tied

    def norm(self, name, x, epsilon):
        return F.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"], epsilon)

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def conv1d(self, name, x):
        """GPT-2 stores its matrices the other way round."""
        return x @ self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def attention(self, query, key, value, **options):
        rows, length, hidden = query.shape
        heads = [t.view(rows, length, self.run["heads"], -1).transpose(1, 2) for t in (query, key, value)]
        return F.scaled_dot_product_attention(*heads, **options).transpose(1, 2).reshape(rows, length, hidden)


def gpt_loss(model, batch):
    weights = model.weights
    x = weights["transformer.wte.weight"][batch["tokens"]] + weights["transformer.wpe.weight"]
    for layer in range(model.run["layers"]):
        name = f"transformer.h.{layer}."
        projected = model.conv1d(name + "attn.c_attn", model.norm(name + "ln_1", x, GPT_EPSILON))
        attended = model.attention(*projected.chunk(3, dim=-1), is_causal=True)
        x = x + model.conv1d(name + "attn.c_proj", attended)
        wide = model.conv1d(name + "mlp.c_fc", model.norm(name + "ln_2", x, GPT_EPSILON))
        x = x + model.conv1d(name + "mlp.c_proj", F.gelu(wide, approximate="tanh"))
    x = model.norm("transformer.ln_f", x, GPT_EPSILON)
    scores = x @ weights["lm_head.weight"].T
    return F.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten())


def bert_encoder(model, batch):
    weights = model.weights
    x = (weights["bert.embeddings.word_embeddings.weight"][batch["tokens"]]
         + weights["bert.embeddings.position_embeddings.weight"]
         + weights["bert.embeddings.token_type_embeddings.weight"][batch["segments"]])
    x = model.norm("bert.embeddings.LayerNorm", x, BERT_EPSILON)
    seen = torch.arange(model.run["sequence"])[None, :] < batch["used"][:, None]
    mask = seen[:, None, None, :]
    for layer in range(model.run["layers"]):
        name = f"bert.encoder.layer.{layer}."
        parts = [model.linear(f"{name}attention.self.{part}", x) for part in ("query", "key", "value")]
        attended = model.linear(name + "attention.output.dense", model.attention(*parts, attn_mask=mask))
        x = model.norm(name + "attention.output.LayerNorm", x + attended, BERT_EPSILON)
        wide = F.gelu(model.linear(name + "intermediate.dense", x))
        x = model.norm(name + "output.LayerNorm", x + model.linear(name + "output.dense", wide), BERT_EPSILON)
    return x


def bert_loss(model, batch):
    x = bert_encoder(model, batch)
    hidden = F.gelu(model.linear("cls.predictions.transform.dense", x))
    hidden = model.norm("cls.predictions.transform.LayerNorm", hidden, BERT_EPSILON)
    scores = F.linear(hidden, model.weights["cls.predictions.decoder.weight"], model.weights["cls.predictions.bias"])
    loss = F.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED)
    if model.run["next_sentence"]:
        pooled = torch.tanh(model.linear("bert.pooler.dense", x[:, 0]))
        loss = loss + F.cross_entropy(model.linear("cls.seq_relationship", pooled), batch["follows"])
    return loss


def read_batches(run, directory):
    rows, length = run["minibatch"], run["sequence"]
    parts = {"tokens": (rows, length), "labels": (rows, length)}
    if run["family"] == "bert":
        parts |= {"segments": (rows, length), "used": (rows,), "follows": (rows,)}
    numbers = torch.from_numpy(numpy.fromfile(directory / "batches.i64", dtype="<i8"))
    for batch in numbers.view(run["steps"] * run["window"], -1):
        pieces = batch.split([numpy.prod(shape, dtype=int) for shape in parts.values()])
        yield {name: piece.view(shape) for (name, shape), piece in zip(parts.items(), pieces)}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        return 0 if "--help" in sys.argv else 2
    directory = pathlib.Path(sys.argv[1])
    run = json.loads((directory / "training.json").read_text())
    torch.set_num_threads(1)
    model = Model(run, directory)
    loss_of = gpt_loss if run["family"] == "gpt" else bert_loss
    optimizer = torch.optim.AdamW([{"params": model.decayed, "weight_decay": run["weight_decay"]},
                                   {"params": model.plain, "weight_decay": 0.0}],
                                  betas=(run["beta1"], run["beta2"]), eps=run["epsilon"])
    batches = read_batches(run, directory)
    losses, norms = [], []
    for rate in run["learning_rates"]:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        total = 0.0
        for _ in range(run["window"]):
            loss = loss_of(model, next(batches))
            (loss / run["window"]).backward()
            total += loss.item()
        norms.append(torch.nn.utils.clip_grad_norm_(model.decayed + model.plain, run["clip_norm"] or torch.inf).item())
        losses.append(total / run["window"])
        optimizer.step()
    print(json.dumps({"torch": torch.__version__, "loss": losses, "gradient_norm": norms}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
