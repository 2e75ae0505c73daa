"""Replays recorded runs under Optuna's pruners, beside ours: samples saved against regret.

    pip install optuna
    cargo run --release -p alto-exit --example replay -- FILE.json... --slots 4 --json > ours.json
    python alto-exit/examples/against_optuna.py FILE.json... --slots 4 --ours ours.json

As many trials as there are slots train at a time, a step each in turn, and the next begins where one ended. A trial reports
its validation loss when its progress passes another hundredth of its budget, that being the step by which Optuna compares
trials, and asks whether it should be pruned. Optuna's verdicts depend on the order in which trials come: numbers are means
over several orders. Ours come from one replay, in the order of the files, and are compared at the same evaluations.

saved:  samples that trials were spared, as a share of all budgets.
regret: the best loss left behind less the best there was, in nats per token; a trial leaves behind the best until its end.
        The mean over tasks and orders, and the worst.
kept:   share of the sweeps in which the best loss there was is left behind.
A policy marked * saves more than every other whose mean regret is as low.
"""

import argparse
import json
import math
import pathlib
import random
from collections import defaultdict

import optuna
from optuna.pruners import HyperbandPruner, MedianPruner, PercentilePruner, SuccessiveHalvingPruner

# Resources and steps are hundredths of the budget.
PRUNERS = {
    "optuna median": lambda: MedianPruner(),
    "optuna median, from 5%": lambda: MedianPruner(n_startup_trials=4, n_warmup_steps=5),
    "optuna percentile 25, from 5%": lambda: PercentilePruner(25.0, n_startup_trials=4, n_warmup_steps=5),
    "optuna successive halving": lambda: SuccessiveHalvingPruner(min_resource=5, reduction_factor=4),
    "optuna successive halving, by 2": lambda: SuccessiveHalvingPruner(min_resource=5, reduction_factor=2),
    "optuna hyperband": lambda: HyperbandPruner(min_resource=1, max_resource=100, reduction_factor=3),
    "optuna hyperband, from 5%": lambda: HyperbandPruner(min_resource=5, max_resource=100, reduction_factor=4),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="corpora, or recorded runs")
    parser.add_argument("--slots", type=int, default=4, help="trials that train at a time")
    parser.add_argument("--orders", type=int, default=10, help="orders in which the trials come")
    parser.add_argument("--ours", type=pathlib.Path, help="what `replay --json` printed for the same files and slots")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    tasks = read(args.files)
    # For each policy and task, (share saved, regret) of every order.
    outcomes = defaultdict(dict)
    if args.ours:
        for report in json.loads(args.ours.read_text()):
            if report["replay"]["slots"] != args.slots:
                parser.error(f"{args.ours}: replayed with {report['replay']['slots']} slots, expected {args.slots}")
            for task in report["tasks"]:
                kept = math.inf if task["kept"] is None else float(task["kept"])
                saved = sum(task["saved"].values()) / task["budget"]
                outcomes[report["policy"]][task["task"]] = [(saved, kept - task["best"])]
            if set(outcomes[report["policy"]]) != set(tasks):
                parser.error(f"{args.ours}: not a replay of the same tasks")
    for name, pruner in PRUNERS.items():
        for task, runs in tasks.items():
            orders = range(args.orders)
            outcomes[name][task] = [sweep(task, runs, pruner(), args.slots, order) for order in orders]
    print(f"optuna {optuna.__version__}, {args.slots} slots, {args.orders} orders, {len(tasks)} tasks together")
    print(together(outcomes, {task: sum(map(budget, runs)) for task, runs in tasks.items()}))
    print("\nsaved and regret, task by task")
    print(by_task(outcomes, list(tasks)))


def sweep(task, runs, pruner, slots, order):
    """Share of the samples saved, and regret."""
    random.Random(order).shuffle(runs := list(runs))
    # Hyperband draws a trial's bracket from the study's name and the trial's number.
    name = f"{task} {order}"
    study = optuna.create_study(study_name=name, pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=order))
    waiting = [Job(run) for run in runs]
    jobs, resident = list(waiting), []
    while waiting or resident:
        while waiting and len(resident) < slots:
            job = waiting.pop(0)
            job.trial = study.ask()
            resident.append(job)
        steps = min(job.until_due() for job in resident)
        for job in list(resident):
            job.step += steps
            if job.until_due() == 0 and job.is_over_after_its_evaluation(study):
                resident.remove(job)
    saved = sum((job.run["steps"] - job.step) * job.run["batch"] for job in jobs)
    best = min(best_until(run, run["steps"]) for run in runs)
    kept = min(best_until(job.run, job.step) for job in jobs)
    return saved / sum(map(budget, runs)), kept - best


class Job:
    """A run that is being replayed."""

    def __init__(self, run):
        self.run, self.step, self.evaluated, self.reported, self.trial = run, 0, 0, 0, None
        # Step 0 is of no trial's making.
        while self.run["eval_step"][self.evaluated : self.evaluated + 1] == [0]:
            self.evaluated += 1

    def until_due(self):
        rest = self.run["eval_step"][self.evaluated :]
        return (rest[0] if rest else self.run["steps"]) - self.step

    def is_over_after_its_evaluation(self, study):
        finished = self.step == self.run["steps"]
        if self.evaluated < len(self.run["eval_step"]) and self.run["eval_step"][self.evaluated] == self.step:
            loss = self.run["val_loss"][self.evaluated]
            self.evaluated += 1
            hundredth = int(100 * self.step / self.run["steps"] + 1e-9)
            if hundredth > self.reported:
                self.reported = hundredth
                self.trial.report(loss, hundredth)
                if not finished and self.trial.should_prune():
                    study.tell(self.trial, state=optuna.trial.TrialState.PRUNED)
                    return True
        if finished:
            loss = best_until(self.run, self.step)
            failed = not math.isfinite(loss)
            state = optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE
            study.tell(self.trial, None if failed else loss, state=state)
        return finished


def best_until(run, last):
    losses = [loss for step, loss in zip(run["eval_step"], run["val_loss"]) if 0 < step <= last]
    return min(filter(math.isfinite, losses), default=math.inf)


def budget(run):
    return run["steps"] * run["batch"]


def read(files):
    """Runs by task, named as `replay` names them."""
    tasks = {}
    for path in files:
        content = json.loads(path.read_text())
        if "runs" in content:
            runs = content["runs"]
            seeds = {run.get("seed") for run in runs}
            label = content["task"] + (f"-s{seeds.pop()}" if len(seeds) == 1 and None not in seeds else "")
            tasks[label] = runs
        else:
            tasks.setdefault(path.parent.name or "runs", []).append(content)
    for run in (run for runs in tasks.values() for run in runs):
        run["val_loss"] = [float(loss) for loss in run["val_loss"]]
    return tasks


def together(outcomes, budgets):
    totals = {}
    for name, by in outcomes.items():
        mean = {task: sum(saved for saved, _ in orders) / len(orders) for task, orders in by.items()}
        saved = sum(mean[task] * budgets[task] for task in by) / sum(budgets.values())
        # Each task counts alike.
        regrets = [(regret, 1 / len(orders) / len(by)) for orders in by.values() for _, regret in orders]
        kept = sum(weight for regret, weight in regrets if regret == 0)
        totals[name] = saved, sum(r * w for r, w in regrets), max(r for r, _ in regrets), kept
    lines = [["", "policy", "saved", "regret", "worst", "kept"]]
    for name, (saved, regret, worst, kept) in totals.items():
        others = [(s, r) for other, (s, r, _, _) in totals.items() if other != name]
        dominated = any(s >= saved and r <= regret and (s, r) != (saved, regret) for s, r in others)
        mark = "" if dominated else "*"
        lines.append([mark, name, f"{saved:.1%}", f"{regret:.4f}", f"{worst:.4f}", f"{kept:.0%}"])
    return aligned(lines)


def by_task(outcomes, tasks):
    lines = [["", "policy", *(cell for task in tasks for cell in (task, ""))]]
    for name, by in outcomes.items():
        cells = []
        for task in tasks:
            saved, regret = (sum(column) / len(by[task]) for column in zip(*by[task]))
            cells += [f"{saved:.1%}", f"{regret:.4f}"]
        lines.append(["", name, *cells])
    return aligned(lines)


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    cells = lambda line: (f"{c:<{w}}" if i < 2 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(line, widths)))
    return "\n".join("  ".join(cells(line)).rstrip() for line in lines)


if __name__ == "__main__":
    main()
