//! The recorded instances, by every scheduler.

use alto_sched::{Instance, Makespan, Scheduler};

use crate::lists::lists;

fn instances(file: &str) -> Vec<Instance> {
    let path = format!("{}/../testdata/sched/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("a readable file")).expect("instances")
}

fn all() -> impl Iterator<Item = Instance> {
    instances("rigid").into_iter().chain(instances("heterogeneous"))
}

#[test]
fn every_scheduler_plans_every_instance_and_no_bound_is_over_the_best_known() {
    for instance in all() {
        let snapshot = instance.snapshot().unwrap();
        let search = Makespan { steps: 200, ..Makespan::default() };
        for scheduler in lists().into_iter().chain([Box::new(search) as Box<dyn Scheduler>]) {
            let plan = scheduler.plan(&snapshot).unwrap();
            plan.check(&snapshot).unwrap();
            let best = instance.best_known.expect("recorded");
            assert!(plan.lower_bound <= best, "{}: {} by {scheduler:?}", instance.name, plan.lower_bound);
            let least = instance.lower_bound.expect("recorded");
            assert!(plan.makespan >= least, "{}: {} by {scheduler:?}", instance.name, plan.makespan);
        }
    }
}

#[test]
fn instances_of_up_to_eleven_tasks_are_proven_with_the_default_steps() {
    for instance in all().filter(|instance| instance.tasks.len() <= 11) {
        let plan = Makespan::default().plan(&instance.snapshot().unwrap()).unwrap();
        assert_eq!((Some(plan.makespan), plan.proven), (instance.best_known, true), "{}", instance.name);
    }
}

/// Branch and bound alone doesn't end on these in minutes.
#[cfg(feature = "exact")]
#[test]
fn the_engine_proves_what_branch_and_bound_cannot() {
    let instance = instances("rigid").into_iter().find(|instance| instance.name == "real_n20_G8_1").expect("recorded");
    let plan = Makespan { steps: 50_000, ..Makespan::default() }.plan(&instance.snapshot().unwrap()).unwrap();
    assert_eq!((Some(plan.makespan), plan.proven), (instance.best_known, true));
}

#[test]
fn many_tasks_end_close_to_the_bound_with_the_default_steps() {
    let large: Vec<Instance> = instances("rigid").into_iter().filter(|instance| instance.tasks.len() >= 100).collect();
    let gap = |instance: &Instance| {
        let plan = Makespan::default().plan(&instance.snapshot().unwrap()).unwrap();
        plan.makespan / instance.lower_bound.expect("recorded") - 1.0
    };
    let mean = large.iter().map(gap).sum::<f64>() / large.len() as f64;
    assert!(mean <= 0.0015, "mean gap {mean}");
}

#[test]
fn an_instance_that_does_not_say_what_there_is_is_refused() {
    let instance = |text: &str| serde_json::from_str::<Instance>(text).expect("fields").snapshot().unwrap_err();
    let error = instance(r#"{"name": "x", "tasks": []}"#).to_string();
    assert_eq!(error, "instance \"x\" must have either `gpus` or `pools`");
    let error = instance(r#"{"name": "x", "gpus": 2, "tasks": [{"gpus": 2}]}"#).to_string();
    assert_eq!(error, "task 0 of instance \"x\" must have either `gpus` and `duration`, or `options`");
    let error = instance(r#"{"name": "x", "pools": {"A": 4294967295, "B": 4294967295}, "tasks": []}"#).to_string();
    assert_eq!(error, "instance \"x\" has 8589934590 devices, expected at most 1048576");
}

#[test]
fn a_misspelt_field_is_an_error_that_names_it_and_its_task() {
    let error = |text: &str| serde_json::from_str::<Instance>(text).unwrap_err().to_string();
    let good = r#"{"gpus": 1, "duration": 5}"#;
    let tasks = |bad: &str| format!(r#"{{"name": "x", "gpus": 2, "tasks": [{good}, {bad}]}}"#);
    let found = error(&tasks(r#"{"gpus": 1, "duration": 5, "relese": 7}"#));
    assert!(found.starts_with("task 1: unknown field `relese`, expected one of `gpus`"), "{found}");
    let found = error(&tasks(r#"{"options": [{"kind": "A", "gpu": 1, "duration": 5}]}"#));
    assert!(found.starts_with("task 1: unknown field `gpu`, expected"), "{found}");
    let found = error(&tasks(r#"{"gpus": -1, "duration": 5}"#));
    assert!(found.starts_with("task 1: invalid value: integer `-1`, expected u32"), "{found}");
    let found = error(r#"{"name": "x", "gpus": 2, "islandsize": 2, "tasks": []}"#);
    assert!(found.starts_with("unknown field `islandsize`, expected one of `name`"), "{found}");
}
