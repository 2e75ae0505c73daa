#!/usr/bin/env python3
"""Makes the corpora of recorded sweeps beside this file: trains every configuration of a task to its end with the
example `tune`, and writes its losses. Python's standard library is enough.

    cargo build --locked --release --examples
    python3 testdata/curves/make_corpora.py                              # all tasks on gsm-nano, seeds 0 and 1
    python3 testdata/curves/make_corpora.py gsm-nano/answer --seeds 1    # one of them
    python3 testdata/curves/make_corpora.py smollm2-135m/cram --seeds 0 --model DIR    # SmolLM2-135M lies in DIR
    python3 testdata/curves/make_corpora.py --table                      # what is in the corpora, as README.md has it

A corpus is only written once the whole sweep is there. Which processor trains changes the last digits, and of runs
that diverge more than those.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUICKSTART = HERE.parent / "quickstart"
TUNE = HERE.parent.parent / "target" / "release" / "examples" / "tune"

# Nobody exits: everyone stays at these rungs. They are there for evaluations at 1% and 5% between those at each 2%.
POLICY = {
    "version": 1,
    "policy": {"any_of": [{"underperforming": {"mark": mark, "keep": 1.0}} for mark in (0.01, 0.05)]},
}


def gsm8k(*files):
    """Question, worked solution and final number of the rows of these files."""
    for file in files:
        for line in (QUICKSTART / "data" / f"{file}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            question = row["prompt"].removeprefix("Question: ").removesuffix("\nAnswer:")
            solution = row.get("completion", row.get("chosen")).strip()
            yield question, solution, solution.rpartition("#### ")[2]


def solve(question, solution, _number):
    return {"prompt": f"Question: {question}\nAnswer:", "completion": f" {solution}"}


def answer(question, _solution, number):
    return {"prompt": f"Question: {question}\nAnswer:", "completion": f" {number}"}


def ask(question, solution, _number):
    return {"prompt": f"Answer: {solution}\nQuestion:", "completion": f" {question}"}


class Task:
    """Rows to train and validate on, which come one after the other from the files, and a grid of configurations.

    Rows are short, at most `longest` bytes of prompt and completion: most of the time goes into the evaluations, one at
    every `interval` of progress.
    """

    def __init__(self, row, files, longest, train, val, epochs, lr, rank, batch, schedule, interval=0.02):
        self.lr, self.rank, self.batch, self.epochs, self.schedule = lr, rank, batch, epochs, schedule
        self.interval = interval
        rows = [row(*parts) for parts in gsm8k(*files)]
        rows = [row for row in rows if len((row["prompt"] + row["completion"]).encode()) <= longest]
        assert len(rows) >= train + val, f"{len(rows)} rows of at most {longest} bytes, expected {train + val}"
        self.train, self.val = rows[:train], rows[train : train + val]

    def grid(self, seed):
        keys = {"version": 1, "learning_rate": self.lr, "rank": self.rank, "batch": self.batch, "seed": [seed]}
        keys |= {"epochs": self.epochs} | self.schedule
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


# What gsm-nano was pretrained on are the questions of `train` and `preference`, without answers, and nothing of `val`.
TASKS = {
    "gsm-nano/solve": lambda: Task(
        solve, ["train", "preference"], longest=360, train=300, val=64, epochs=1.6,
        lr=[1e-5, 1e-4, 5e-4, 2e-3, 1e-2, 5e-2], rank=[4, 32], batch=[2, 4],
        schedule={"decay": "constant"},
    ),
    "gsm-nano/answer": lambda: Task(
        answer, ["train"], longest=200, train=120, val=96, epochs=4,
        lr=[1e-5, 1e-4, 1e-3, 4e-3, 1.5e-2, 1e-1], rank=[2, 16], batch=[1, 4],
        schedule={"decay": "cosine", "warmup_ratio": 0.05},
    ),
    # Of rows that were not pretrained on: for the others training losses start below validation losses.
    "gsm-nano/ask": lambda: Task(
        ask, ["val"], longest=600, train=40, val=40, epochs=12,
        lr=[3e-5, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1], rank=[8, 64], batch=[1, 4],
        schedule={"decay": "linear", "warmup_ratio": 0.03},
    ),
    # Few rows and many epochs.
    "gsm-nano/cram": lambda: Task(
        solve, ["train", "preference"], longest=300, train=32, val=64, epochs=16,
        lr=[1e-4, 5e-4, 2e-3, 5e-3, 2e-2, 5e-2], rank=[4, 16], batch=[1, 4],
        schedule={"decay": "cosine", "warmup_ratio": 0.1},
    ),
    "smollm2-135m/cram": lambda: Task(
        solve, ["train"], longest=260, train=24, val=16, epochs=4,
        lr=[1e-5, 1e-4, 5e-4, 2e-3, 1e-2, 5e-2], rank=[4, 16], batch=[2],
        schedule={"decay": "linear", "warmup_ratio": 0.03}, interval=0.05,
    ),
}


def sweep(tune, model, task, seed, threads):
    """The report of `tune` on all configurations of a task."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        for name, rows in (("train", task.train), ("val", task.val)):
            (scratch / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        (scratch / "grid.toml").write_text(task.grid(seed))
        (scratch / "policy.json").write_text(json.dumps(POLICY))
        command = [tune, "--model", model, "--threads", str(threads), "--out", scratch / "out"]
        command += ["--interval", str(task.interval)]
        for name in ("train.jsonl", "val.jsonl", "grid.toml", "policy.json"):
            command += [f"--{name.partition('.')[0]}", scratch / name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads((scratch / "out" / "report.json").read_text())


def number(value):
    """A loss of the report to 6 significant digits; one that is not finite is a string there, and stays one."""
    return value if isinstance(value, str) else float(f"{value:.6g}")


def recorded(job):
    """A job of the report as a recorded run."""
    config, curve, name = job["job"], job["curve"], job["job"]["name"]
    train, evaluations = curve["train"], curve["evaluations"]
    if job["ended"] != "finished" or job["skipped"]:
        # A run without all its losses can't be replayed; a lower rate diverges without leaving f32.
        sys.exit(f"{name} has {job['skipped']} skipped steps and ended as {job['ended']}, expected none and finished")
    assert [point["step"] for point in train] == list(range(1, config["steps"] + 1)), name
    return {
        "name": name,
        "seed": config["seed"],
        "rank": config["adapter"]["rank"],
        "alpha": config["adapter"]["alpha"],
        "lr": config["optimizer"]["learning_rate"],
        "batch": config["batch"] * config["accumulation"],
        "steps": config["steps"],
        "train_loss": [number(point["loss"]) for point in train],
        "eval_step": [point["step"] for point in evaluations],
        "val_loss": [number(point["loss"]) for point in evaluations],
        "seconds": round(job["seconds"], 2),
    }


def write(path, task, model, runs):
    """A corpus with one run a line, complete or not at all."""
    dump = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    head = dump({"version": 1, "task": task, "model": model})
    text = head[:-1] + ',"runs":[\n' + ",\n".join(map(dump, runs)) + "\n]}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def best(run, until=math.inf):
    """The lowest validation loss after the first step, up to a step."""
    points = zip(run["eval_step"], map(float, run["val_loss"]))
    return min((loss for step, loss in points if 0 < step <= until and math.isfinite(loss)), default=math.inf)


def training(run, step):
    """The mean training loss over the tenth of the run up to this step."""
    return statistics.fmean(map(float, run["train_loss"][max(step - max(run["steps"] // 10, 1), 0) : step]))


def fate(run):
    """Whether it ends well, overfits, or diverges: more than 2% above its best validation loss, or above the untrained
    one, with a training loss that has fallen by 10% since that best and is below the untrained validation loss, or without.
    """
    losses, lowest = list(map(float, run["val_loss"])), best(run)
    if losses[-1] <= min(1.02 * lowest, losses[0]):
        return "ends well"
    at = run["eval_step"][losses.index(lowest)] if math.isfinite(lowest) else 1
    last = training(run, run["steps"])
    return "overfits" if last < min(0.9 * training(run, at), losses[0]) else "diverges"


def mark(run, share):
    """The validation loss of the first evaluation at or past this progress."""
    at = next(i for i, step in enumerate(run["eval_step"]) if step >= share * run["steps"])
    loss = float(run["val_loss"][at])
    return loss if math.isfinite(loss) else math.inf


def late(runs, share=0.05):
    """How many of the best quarter in the end were not in the best quarter at this progress."""
    quarter = len(runs) // 4
    first = lambda key: set(sorted(range(len(runs)), key=lambda i: key(runs[i]))[:quarter])
    return len(first(best) - first(lambda run: mark(run, share)))


def table():
    """What is in the corpora, in Markdown."""
    print("| corpus | runs | steps | untrained | best | median | worst | overfit | diverge | best run at 5% | late | KB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for path in sorted(HERE.glob("*/*.json")):
        runs = json.loads(path.read_text())["runs"]
        losses = sorted(map(best, runs))
        winner = min(runs, key=best)
        place = 1 + sum(mark(run, 0.05) < mark(winner, 0.05) for run in runs)
        steps, fates = [run["steps"] for run in runs], list(map(fate, runs))
        print(
            f"| `{path.parent.name}/{path.stem}` | {len(runs)} | {min(steps)} to {max(steps)} | {runs[0]['val_loss'][0]:.3f}"
            f" | {losses[0]:.3f} | {statistics.median(losses):.3f} | {losses[-1]:.3f}"
            f" | {fates.count('overfits')} | {fates.count('diverges')}"
            f" | {winner['name']}, place {place} | {late(runs)} | {path.stat().st_size / 1000:.0f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="all on gsm-nano by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], metavar="N")
    parser.add_argument("--model", type=Path, default=QUICKSTART / "gsm-nano", metavar="DIR")
    parser.add_argument("--tune", type=Path, default=TUNE, metavar="FILE", help="the built example")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR", help="where the corpora go")
    parser.add_argument("--table", action="store_true", help="only describe what there is")
    arguments = parser.parse_args()
    if arguments.table:
        return table()
    for task in arguments.tasks:
        if task not in TASKS:
            parser.error(f"no task {task}, expected one of {', '.join(TASKS)}")
    for key in arguments.tasks or [key for key in TASKS if key.startswith("gsm-nano/")]:
        model, _, name = key.partition("/")
        task = TASKS[key]()
        for seed in arguments.seeds:
            report = sweep(arguments.tune, arguments.model, task, seed, arguments.threads)
            path = arguments.out / model / f"{name}-s{seed}.json"
            write(path, name, model, [recorded(job) for job in report["jobs"]])
            print(f"{path}: {len(report['jobs'])} runs, {report['totals']['seconds']:.0f} s")


if __name__ == "__main__":
    main()
