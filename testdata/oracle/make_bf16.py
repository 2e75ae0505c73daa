#!/usr/bin/env python3
"""Makes the cases whose frozen model is in bf16 and whose adapters are in f32, as PEFT trains by default (transformers + peft + torch, CPU, 1 thread). Deterministic.

usage: make_bf16.py ORACLE      ORACLE is the directory that make_fixtures.py wrote; cases are added to its models

ORACLE/<model>/bf16_<case>/     batches, settings and starting adapter of ORACLE/<model>/<case>, trained twice:
  `bf16`: weights and activations in bf16, adapters, their gradients and AdamW's moments in f32, logits taken to f32 before the loss
  `f32`:  the same weights, rounded to bf16, with everything computed in f32
trace.json holds both records. grad0.safetensors, logits.safetensors and final/ are those of the f32 run. Under `bf16` there is also `maxdiff`: how far the two
runs are apart at most, over STARTS pairs of them, as few numbers of one pair say little of how far rounding can lead. The first pair is the recorded one; each
other starts, both runs alike, from an adapter whose entries are about a percent off, so that everything rounds anew. Losses and norms relative, gradients relative
to their tensor's largest entry, logits and adapters absolute.
"""
import json, os, shutil, sys
os.environ["HF_HUB_OFFLINE"] = "1"; os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, get_constant_schedule_with_warmup, get_cosine_schedule_with_warmup,
                          get_linear_schedule_with_warmup)
from peft import PeftModel, get_peft_model_state_dict

CASES = [("llama_untied", "r4_cosine"), ("llama_untied", "r8_qv_nowd"), ("llama_tied", "r4_cosine")]
STARTS = 8

torch.set_num_threads(1); torch.use_deterministic_algorithms(True)

def tensors(batch): return {k: torch.tensor(v) for k, v in batch.items()}

def logits(model, batch): return model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.float()

def loss_sum(model, batch):
    scores = logits(model, batch)[:, :-1]; labels = batch["labels"][:, 1:].reshape(-1)
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels, ignore_index=-100, reduction="sum"), int((labels != -100).sum())

def schedule(optimizer, case):
    if case["sched"] == "linear": return get_linear_schedule_with_warmup(optimizer, case["warmup"], case["steps"])
    if case["sched"] == "cosine": return get_cosine_schedule_with_warmup(optimizer, case["warmup"], case["steps"])
    return get_constant_schedule_with_warmup(optimizer, case["warmup"])

def evaluate(model, batches):
    total = count = 0
    with torch.no_grad():
        for batch in batches:
            s, n = loss_sum(model, tensors(batch)); total += s.item(); count += n
    return total / count

def load(model_dir, adapter_dir, dtype, start):
    base = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.bfloat16, attn_implementation="eager").to(dtype)
    model = PeftModel.from_pretrained(base, adapter_dir, is_trainable=True)
    noise = torch.Generator().manual_seed(start)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == ("lora_" in name)
        assert parameter.dtype == (torch.float32 if "lora_" in name else dtype), name
        if start > 0 and "lora_" in name: parameter.data.mul_(1 + 0.01 * torch.randn(parameter.shape, generator=noise))
    return model

def train(model_dir, adapter_dir, trace, dtype, start, out=None):
    """The record, and what the two runs are compared in: first gradients, logits, final adapter."""
    case = trace["case"]
    model = load(model_dir, adapter_dir, dtype, start); model.train()
    adapter = {n.replace(".default", ""): p for n, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(adapter.values(), lr=case["lr"], betas=(0.9, 0.999), eps=1e-8, weight_decay=case["wd"])
    rates = schedule(optimizer, case)
    record = dict(loss=[], lr=[], grad_norm=[], eval_loss=[evaluate(model, trace["eval"])], eval_step=[0])
    first = {k: v[:1] for k, v in tensors(trace["eval"][0]).items()}
    scores, gradients = {}, None
    with torch.no_grad():
        scores["init"] = logits(model, first)[0]
        with model.disable_adapter(): scores["base"] = logits(model, first)[0]
    for step, micro_batches in enumerate(trace["train"]):
        micro_batches = [tensors(b) for b in micro_batches]
        labelled = sum(int((b["labels"][:, 1:] != -100).sum()) for b in micro_batches); total = 0.0
        for batch in micro_batches:
            s, n = loss_sum(model, batch)
            loss = s / labelled if case["accum_mode"] == "token_mean" else s / n / len(micro_batches)
            loss.backward(); total += loss.item()
        if step == 0: gradients = {n: p.grad.detach().clone().contiguous() for n, p in adapter.items()}
        norm = torch.nn.utils.clip_grad_norm_(adapter.values(), case["clip"] if case["clip"] else float("inf")).item()
        record["loss"].append(total); record["lr"].append(rates.get_last_lr()[0]); record["grad_norm"].append(norm)
        optimizer.step(); rates.step(); optimizer.zero_grad()
        if step + 1 in trace["f32"]["eval_step"]: record["eval_loss"].append(evaluate(model, trace["eval"])); record["eval_step"].append(step + 1)
    with torch.no_grad(): scores["final"] = logits(model, first)[0]
    if out:
        model.save_pretrained(out + "/final"); clean(out + "/final")
        save_file(gradients, out + "/grad0.safetensors"); save_file({k: v.contiguous() for k, v in scores.items()}, out + "/logits.safetensors")
    return record, (gradients, scores, {k: v.clone() for k, v in get_peft_model_state_dict(model).items()})

def clean(folder):
    readme = folder + "/README.md"
    if os.path.exists(readme): os.remove(readme)
    path = folder + "/adapter_config.json"; settings = json.load(open(path))
    settings["base_model_name_or_path"] = ""; settings["target_modules"] = sorted(settings["target_modules"])  # PEFT keeps a set: its order varies
    json.dump(settings, open(path, "w"), indent=1, sort_keys=True)

def most(a, b): return max((a[k].double() - b[k].double()).abs().max().item() for k in a)

def most_relative(a, b):
    """Relative to each tensor's largest entry; a tensor that is all zero in one is so in the other."""
    of = lambda x, y: (x.double() - y.double()).abs().max().item() / y.abs().max().item() if y.abs().max() > 0 else float(x.abs().max() > 0)
    return max(of(a[k], b[k]) for k in a)

def main():
    oracle = sys.argv[1]
    for model, name in CASES:
        source, out = f"{oracle}/{model}/{name}", f"{oracle}/{model}/bf16_{name}"
        shutil.rmtree(out, ignore_errors=True); shutil.copytree(source + "/init", out + "/init")
        trace = json.load(open(source + "/trace.json"))
        recorded, apart = None, []
        for start in range(STARTS):
            single, exact = train(f"{oracle}/{model}", out + "/init", trace, torch.float32, start, out if start == 0 else None)
            half, rounded = train(f"{oracle}/{model}", out + "/init", trace, torch.bfloat16, start)
            gap = lambda key: max(abs(a - b) / abs(b) for a, b in zip(half[key], single[key]))
            apart.append(dict(loss=gap("loss"), eval_loss=gap("eval_loss"), grad_norm=gap("grad_norm"), gradient=most_relative(rounded[0], exact[0]),
                              logits=most(rounded[1], exact[1]), adapter=most(rounded[2], exact[2])))
            if start == 0: recorded = (single, half)
        single, half = recorded
        half["maxdiff"] = {kind: max(pair[kind] for pair in apart) for kind in apart[0]}
        kept = {k: trace[k] for k in ("kind", "case", "optimizer", "train", "eval")}
        json.dump(kept | dict(dtype="bf16", f32=single, bf16=half), open(out + "/trace.json", "w"))
        print(model, name, *({k: f"{v:.1e}" for k, v in pair.items()} for pair in (apart[0], half["maxdiff"])), sep="\n  ")

main()
