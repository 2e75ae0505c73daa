#!/usr/bin/env python3
"""Times in PyTorch what `check` times in ours, on the same machine: `torch_times.py OUT.json [--device D] [--rehearse]`.

Base products, what adapters add to a linear layer, the other kernels, and whole optimizer steps of many adapters: grouped
in every way that PyTorch offers, and one after another with PEFT and without it. Everything is eager. Weights and activations
are bf16; adapters are f32 masters, cast for their products. What this machine's versions lack is said in the output and
otherwise left out. Times are seconds, medians over samples from the first call to the end of what the last one queued.
"""

import argparse
import gc
import json
import math
import pathlib
import time
import warnings

import torch
import torch.nn.functional as F

DTYPE = torch.bfloat16
EPSILON = 1e-5
THETA = 500_000.0


class Record:
    """What was measured, and what wasn't."""

    def __init__(self, sizes, device, rehearsal):
        self.sizes, self.device, self.rehearsal = sizes, device, rehearsal
        self.times, self.missing, self.bandwidth = {}, [], None

    def sync(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def sample(self, calls, call):
        self.sync()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        self.sync()
        return (time.perf_counter() - start) / calls

    def time(self, call):
        for _ in range(2):
            self.sample(1, call)
        once = max(self.sample(1, call), 1e-6)
        calls = min(max(math.ceil(self.sizes["sample_seconds"] / once), 1), 1000)
        return sorted(self.sample(calls, call) for _ in range(self.sizes["samples"]))[self.sizes["samples"] // 2]

    def measure(self, what, way, make, factor=1):
        """Takes down the time of what `make` returns, or why there is none."""
        try:
            self.times.setdefault(what, {})[way] = factor * self.time(make())
        except Exception as error:  # Whatever it is, the others are measured all the same.
            lines = str(error).strip().splitlines() or [""]
            self.missing.append(f"{what}, {way}: {type(error).__name__}: {lines[0][:200]}")
        finally:
            # What an exception's frames hold is gone only now.
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def less(self, what, way, part):
        """Takes the time of a part off a time."""
        if way in self.times.get(what, {}) and way in self.times.get(part, {}):
            self.times[what][way] -= self.times[part][way]
        else:
            self.times.get(what, {}).pop(way, None)

    def random(self, *shape, scale=1.0, dtype=DTYPE):
        return torch.randn(*shape, device=self.device, dtype=dtype).mul_(scale)


def grouped_product():
    """The grouped product of whatever version this is."""
    public = getattr(F, "grouped_mm", None)
    if public is not None:
        return public
    if hasattr(torch, "_grouped_mm"):
        return torch._grouped_mm
    raise RuntimeError(f"PyTorch {torch.__version__} has no grouped_mm")


def adapters_output(way, x, a, b, offsets):
    """What the adapters add: `x` is [tokens, d_in], `a` [adapters, rank, d_in], `b` [adapters, d_out, rank]."""
    groups = a.shape[0]
    a, b = a.to(x.dtype), b.to(x.dtype)
    if way == "one":
        return F.linear(F.linear(x, a[0]), b[0])
    if way == "grouped_mm":
        product = grouped_product()
        return product(product(x, a.transpose(1, 2), offs=offsets), b.transpose(1, 2), offs=offsets)
    if way == "bmm":
        down = torch.bmm(x.view(groups, -1, x.shape[1]), a.transpose(1, 2))
        return torch.bmm(down, b.transpose(1, 2)).flatten(0, 1)
    parts = [F.linear(F.linear(part, a[i]), b[i]) for i, part in enumerate(x.chunk(groups))]
    return torch.cat(parts)


GROUPINGS = ["grouped_mm", "bmm", "loop"]


def offsets_of(record, tokens):
    groups = record.sizes["adapters"]
    return torch.arange(1, groups + 1, device=record.device, dtype=torch.int32) * (tokens // groups)


def linear_shapes(sizes):
    """The shapes of a block's linear layers by name, (d_out, d_in)."""
    hidden, heads, inner = sizes["hidden"], sizes["heads"], sizes["intermediate"]
    kv = sizes["kv_heads"] * (hidden // heads)
    return {
        "q": (hidden, hidden), "k": (kv, hidden), "v": (kv, hidden), "o": (hidden, hidden),
        "gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner),
    }


def time_copy(record):
    source = record.random(record.sizes["copied"])
    target = torch.empty_like(source)
    seconds = record.time(lambda: target.copy_(source))
    record.bandwidth = 2 * source.nbytes / seconds


def time_products(record, tokens):
    for d_out, d_in in sorted(set(linear_shapes(record.sizes).values())):
        name = f"{d_out}x{d_in} over {tokens}"
        x, dy, weight = record.random(tokens, d_in), record.random(tokens, d_out), record.random(d_out, d_in, scale=0.02)
        record.measure(f"gemm forward {name}", "matmul", lambda: lambda: torch.matmul(x, weight.T))
        record.measure(f"gemm backward {name}", "matmul", lambda: lambda: torch.matmul(dy, weight))
        adapters, rank = record.sizes["adapters"], record.sizes["rank"]
        a = record.random(adapters, rank, d_in, scale=0.02, dtype=torch.float32)
        b = record.random(adapters, d_out, rank, scale=0.02, dtype=torch.float32)
        base, offsets = torch.matmul(x, weight.T), offsets_of(record, tokens)
        for way in GROUPINGS:

            def forward(way=way):
                return lambda: torch.add(base, adapters_output(way, x, a, b, offsets), alpha=2.0)

            def both_ways(way=way):
                leaves = [leaf.detach().requires_grad_() for leaf in (x, a, b)]

                def call():
                    y = torch.add(base, adapters_output(way, *leaves, offsets), alpha=2.0)
                    torch.autograd.grad(y, leaves, dy)

                return call

            record.measure(f"lora forward {name}", way, forward)
            record.measure(f"lora backward {name}", way, both_ways)
            record.less(f"lora backward {name}", way, f"lora forward {name}")


def attention(q, k, v):
    """Causal attention, [rows, heads, length, dim], with grouped queries."""
    try:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    except TypeError:  # Versions before 2.5.
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def norm(x, weight):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, (x.shape[-1],), weight, EPSILON)
    factor = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + EPSILON)
    return (x.float() * factor).to(x.dtype) * weight


def time_others(record, tokens):
    sizes = record.sizes
    hidden, heads, kv_heads, row = sizes["hidden"], sizes["heads"], sizes["kv_heads"], sizes["row"]
    rows, dim = tokens // row, hidden // heads

    def differentiated(compute, *inputs):
        """A call that computes and goes backward to the inputs, from a gradient of ones."""
        leaves = [leaf.detach().requires_grad_() for leaf in inputs]

        def call():
            y = compute(*leaves)
            torch.autograd.grad(y, leaves, torch.ones_like(y))

        return call

    q, k, v = (record.random(rows, count, row, dim) for count in (heads, kv_heads, kv_heads))
    record.measure(f"attention forward over {tokens}", "sdpa", lambda: lambda: attention(q, k, v))
    record.measure(f"attention, both ways, over {tokens}", "sdpa", lambda: differentiated(attention, q, k, v))
    del q, k, v
    x, weight = record.random(tokens, hidden), record.random(hidden)
    record.measure(f"norm, both ways, over {tokens}", "rms_norm", lambda: differentiated(lambda x: norm(x, weight), x))
    head = record.random(sizes["vocabulary"], hidden, scale=0.05)
    targets = torch.arange(tokens, device=record.device) * 31 % sizes["vocabulary"]

    def log_probs(x):
        return -F.cross_entropy(F.linear(x, head).float(), targets, reduction="none")

    what = f"log-probabilities, both ways, over {tokens}"
    record.measure(what, "cross_entropy", lambda: differentiated(log_probs, x))
    del x, head
    gate, up = (record.random(tokens, sizes["intermediate"]) for _ in range(2))
    record.measure(
        f"swiglu, both ways, over {tokens}", "silu", lambda: differentiated(lambda g, u: F.silu(g) * u, gate, up)
    )
    del gate, up

    def optimizer():
        adapters = Adapters(record, sizes["adapters"])
        adapters.gradient.normal_()
        return adapters.update

    record.measure(f"optimizer of {sizes['adapters']} adapters", "fused", optimizer)


class Adapters:
    """Factors of all modules as views of one flat tensor, and an optimizer over it."""

    def __init__(self, record, count):
        sizes = record.sizes
        rank, shapes = sizes["rank"], list(linear_shapes(sizes).items()) * sizes["layers"]
        each = sum(rank * (d_out + d_in) for _, (d_out, d_in) in shapes)
        self.flat = record.random(count, each, scale=0.01, dtype=torch.float32)
        self.gradient = torch.zeros_like(self.flat)
        self.flat.grad = self.gradient
        self.factors, end = [], 0

        def leaf(rows, columns):
            nonlocal end
            start, end = end, end + rows * columns
            view = self.flat.detach()[:, start:end].view(count, rows, columns).requires_grad_()
            view.grad = self.gradient[:, start:end].view(count, rows, columns)
            return view

        for _, (d_out, d_in) in shapes:
            self.factors.append((leaf(rank, d_in), leaf(d_out, rank)))
        fused = {"fused": True} if record.device.type == "cuda" else {}
        self.optimizer = torch.optim.AdamW([self.flat], lr=2e-4, weight_decay=0.01, **fused)

    def update(self):
        norms = self.gradient.norm(dim=1, keepdim=True)
        self.gradient.mul_((1.0 / (norms + 1e-6)).clamp_(max=1.0))
        self.optimizer.step()


class Llama:
    """A frozen model of random weights, with adapters grouped in one of several ways."""

    def __init__(self, record):
        sizes = record.sizes
        self.sizes, self.record = sizes, record
        self.embedding = record.random(sizes["vocabulary"], sizes["hidden"], scale=0.03)
        self.ones = torch.ones(sizes["hidden"], device=record.device, dtype=DTYPE)

        def linear(shape):
            return record.random(*shape, scale=shape[1] ** -0.5)

        shapes = linear_shapes(sizes)
        self.blocks = [{name: linear(shape) for name, shape in shapes.items()} for _ in range(sizes["layers"])]
        dim = sizes["hidden"] // sizes["heads"]
        frequencies = THETA ** (-torch.arange(0, dim, 2, device=record.device).float() / dim)
        angles = torch.arange(sizes["row"], device=record.device).float().outer(frequencies)
        self.cos, self.sin = (torch.cat([t, t], -1).to(DTYPE) for t in (angles.cos(), angles.sin()))

    def turn(self, x):
        half = x.shape[-1] // 2
        return x * self.cos + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin

    def hidden(self, ids, adapters, way):
        sizes = self.sizes
        rows, length = ids.shape
        heads, kv_heads, dim = sizes["heads"], sizes["kv_heads"], sizes["hidden"] // sizes["heads"]
        offsets, factors = offsets_of(self.record, ids.numel()), iter(adapters.factors)

        def linear(block, name, x):
            a, b = next(factors)
            return torch.add(F.linear(x, block[name]), adapters_output(way, x, a, b, offsets), alpha=2.0)

        x = F.embedding(ids.flatten(), self.embedding)
        for block in self.blocks:
            normed = norm(x, self.ones)
            q, k, v = (linear(block, name, normed) for name in "qkv")
            q, k, v = (
                t.view(rows, length, count, dim).transpose(1, 2)
                for t, count in ((q, heads), (k, kv_heads), (v, kv_heads))
            )
            attended = attention(self.turn(q), self.turn(k), v).transpose(1, 2).reshape(rows * length, -1)
            x = x + linear(block, "o", attended)
            normed = norm(x, self.ones)
            gate, up = linear(block, "gate", normed), linear(block, "up", normed)
            x = x + linear(block, "down", F.silu(gate) * up)
        return norm(x, self.ones)

    def step(self, ids, adapters, way):
        """One optimizer step of every adapter, each on its share of the rows and by its own mean loss."""
        adapters.gradient.zero_()
        logits = F.linear(self.hidden(ids, adapters, way), self.embedding)
        targets = ids.roll(-1, 1).flatten()
        loss = F.cross_entropy(logits.float(), targets, reduction="sum") * (adapters.flat.shape[0] / ids.numel())
        loss.backward()
        adapters.update()
        return loss


def random_ids(record, rows):
    return torch.randint(record.sizes["vocabulary"], (rows, record.sizes["row"]), device=record.device)


def time_steps(record, batch):
    sizes, what = record.sizes, f"step {batch}"
    model = Llama(record)

    def steps(way, count):
        adapters = Adapters(record, count)
        ids = random_ids(record, count * batch)
        first, last = (model.step(ids, adapters, way).item() for _ in range(2))
        if not last < first:
            raise RuntimeError(f"the loss of the same rows goes from {first} to {last}")
        return lambda: model.step(ids, adapters, way)

    for way in GROUPINGS:
        record.measure(what, way, lambda way=way: steps(way, sizes["adapters"]))
    record.measure(what, "plain, one after another", lambda: steps("one", 1), factor=sizes["adapters"])
    del model
    record.measure(what, "PEFT, one after another", lambda: peft_step(record, batch), factor=sizes["adapters"])


def peft_step(record, batch):
    """A step of one adapter with transformers and PEFT, as their Trainer does it in bf16: under autocast, adapters in f32."""
    import peft
    import transformers

    sizes = record.sizes
    config = transformers.LlamaConfig(
        hidden_size=sizes["hidden"], num_hidden_layers=sizes["layers"], num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"], intermediate_size=sizes["intermediate"],
        vocab_size=sizes["vocabulary"], tie_word_embeddings=True, max_position_embeddings=2048,
        attn_implementation="sdpa", bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )
    with torch.device(record.device):
        model = transformers.LlamaForCausalLM(config).to(DTYPE)
    names = [f"{name}_proj" for name in linear_shapes(sizes)]
    lora = peft.LoraConfig(r=sizes["rank"], lora_alpha=2 * sizes["rank"], target_modules=names, lora_dropout=0.0)
    model = peft.get_peft_model(model, lora)
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fused = {"fused": True} if record.device.type == "cuda" else {}
    optimizer = torch.optim.AdamW(trained, lr=2e-4, weight_decay=0.01, **fused)
    ids = random_ids(record, batch)

    def call():
        with torch.autocast(record.device.type, DTYPE):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--device", help="cuda:0 where there is one, else cpu")
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes, to see that everything runs")
    arguments = parser.parse_args()
    device = torch.device(arguments.device or ("cuda:0" if torch.cuda.is_available() else "cpu"))
    if device.type == "cpu" and not arguments.rehearse:
        parser.error("there is no GPU that PyTorch can use; --rehearse runs on the CPU")
    sizes = json.loads((pathlib.Path(__file__).parent / "sizes.json").read_text())
    sizes = sizes["rehearsal" if arguments.rehearse else "full"]
    torch.manual_seed(0)
    if arguments.rehearse:
        # Threads that wait for each other would take longer than the work.
        torch.set_num_threads(1)
    # The factors lie in one flat tensor on purpose.
    warnings.filterwarnings("ignore", message="grad and param do not obey")
    record = Record(sizes, device, arguments.rehearse)
    batches = [(batch, batch * sizes["adapters"] * sizes["row"]) for batch in sizes["batches"]]
    time_copy(record)
    for _, tokens in batches:
        time_products(record, tokens)
    time_others(record, batches[0][1])
    for batch, _ in batches:
        time_steps(record, batch)
    facts = {"version": torch.__version__, "device": str(device)}
    if device.type == "cuda":
        facts |= {"name": torch.cuda.get_device_name(device), "CUDA": str(torch.version.cuda)}
    for module in ("transformers", "peft"):
        try:
            facts[module] = __import__(module).__version__
        except ImportError:
            record.missing.append(f"{module} isn't installed: one after another is without it")
    arguments.out.write_text(
        json.dumps(
            {
                "facts": facts, "rehearsal": record.rehearsal, "times": record.times,
                "bandwidth": record.bandwidth, "missing": record.missing,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
