#!/usr/bin/env python3
"""Does PEFT load what `tune` wrote, and get the same validation loss?

usage: check_with_peft.py MODEL ADAPTER VAL.jsonl      (ADAPTER holds report.json too, as tune leaves it)
Needs torch, transformers and peft; versions in testdata/oracle/requirements.lock.txt. Prints both losses; exit code 1 if
they differ by more than 1e-5 of themselves. For tokenizers without a post-processor, whose model names <s> and </s>.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

model_dir, adapter_dir, rows_file = sys.argv[1:4]
base = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32, attn_implementation="eager")
tokenizer = AutoTokenizer.from_pretrained(model_dir)
model = PeftModel.from_pretrained(base, adapter_dir).eval()
encode = lambda text: tokenizer(text, add_special_tokens=False).input_ids

total, count = 0.0, 0
with torch.no_grad():
    for line in open(rows_file):
        row = json.loads(line)
        prompt = [tokenizer.bos_token_id] + encode(row["prompt"])
        tokens = prompt + encode(row["completion"]) + [tokenizer.eos_token_id]
        log_probs = torch.log_softmax(model(torch.tensor([tokens])).logits[0].double(), -1)
        for at in range(len(prompt), len(tokens)):
            total -= log_probs[at - 1, tokens[at]].item()
            count += 1

report = json.load(open(os.path.join(adapter_dir, "report.json")))
reported = report["jobs"][report["winner"]]["best"]["loss"]
computed = total / count
print(f"PEFT {computed:.8f}, reported {reported:.8f}, over {count} tokens")
sys.exit(abs(computed - reported) > 1e-5 * reported)
