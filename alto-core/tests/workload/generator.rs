//! Tasks out of a seed.

use std::collections::BTreeMap;

use alto_core::simulated::workload::{Arrivals, DataSize, Generator, ModelShare, Space};

fn generator() -> Generator {
    Generator::paper(9, 2000, Arrivals::Poisson { per_hour: 60.0 })
}

#[test]
fn the_paper_s_grids_have_60_and_64_jobs() {
    let single = Space::paper(1).jobs(100);
    let several = Space::paper(4).jobs(100);
    assert_eq!((single.len(), several.len()), (60, 64));
    let ranks = |jobs: &[alto_core::simulated::workload::TaskJob]| {
        let ranks: std::collections::BTreeSet<usize> = jobs.iter().map(|job| job.rank).collect();
        ranks.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(ranks(&single), [16, 32, 64]);
    assert_eq!(ranks(&several), [16, 32, 64, 128]);
    assert_eq!(single.iter().map(|job| job.steps()).max(), Some(100));
    assert_eq!(single.iter().map(|job| job.steps()).min(), Some(13));
    for job in single {
        job.to_job("a job", 0).check().unwrap();
    }
}

#[test]
fn the_same_seed_gives_the_same_tasks_and_arrivals_do_not_change_them() {
    let tasks = generator().tasks().unwrap();
    assert_eq!(generator().tasks().unwrap(), tasks);
    assert_ne!(Generator { seed: 10, ..generator() }.tasks().unwrap(), tasks);
    let at_once = Generator { arrivals: Arrivals::AtOnce, ..generator() }.tasks().unwrap();
    let models = |tasks: &[alto_core::simulated::workload::TuningTask]| {
        tasks.iter().map(|task| task.model.clone()).collect::<Vec<_>>()
    };
    assert_eq!(models(&at_once), models(&tasks));
}

#[test]
fn models_come_by_their_weights_and_data_evenly() {
    let mut generator = generator();
    generator.models[0].weight = 3.0;
    generator.data.push(DataSize { rows: 10, row_tokens: 7 });
    let tasks = generator.tasks().unwrap();
    let mut counts = BTreeMap::new();
    for task in &tasks {
        *counts.entry(task.model.as_str()).or_insert(0) += 1;
        assert_eq!(task.jobs.len(), if task.devices == 1 { 60 } else { 64 });
    }
    // 3 of 6, and 1 of 6 for each other.
    assert!((900..1100).contains(&counts["Llama-3.1-8B"]), "{counts:?}");
    for model in ["Qwen2.5-7B", "Qwen2.5-32B", "Llama-3.1-70B"] {
        assert!((270..400).contains(&counts[model]), "{counts:?}");
    }
    let short = tasks.iter().filter(|task| task.row_tokens == 7).count();
    assert!((900..1100).contains(&short), "{short}");
    assert!(tasks.iter().all(|task| task.jobs[0].samples == if task.row_tokens == 7 { 30 } else { 3 * 7473 }));
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |change: fn(&mut Generator)| {
        let mut generator = generator();
        change(&mut generator);
        generator.tasks().expect_err("a setting that makes no sense").to_string()
    };
    assert_eq!(refused(|g| g.models.clear()), "models is empty, expected at least one entry");
    assert_eq!(refused(|g| g.data.clear()), "data is empty, expected at least one entry");
    assert_eq!(refused(|g| g.models[1].weight = -1.0), "weight is -1, expected a finite number over 0");
    assert_eq!(refused(|g| g.models[1].devices = 0), "devices is 0, expected at least 1");
    assert_eq!(refused(|g| g.epochs = 0.0), "epochs is 0, expected a finite number over 0");
    let unknown = Generator {
        models: vec![ModelShare { model: "Llama-4".to_owned(), devices: 1, weight: 1.0 }],
        tasks: 1,
        ..generator()
    };
    let device = alto_core::simulated::systems::Device::named("H100 SXM").unwrap();
    let task = &unknown.tasks().unwrap()[0];
    let error = task.setup(alto_core::simulated::systems::System::AdapterParallel, &device).unwrap_err();
    assert!(error.to_string().starts_with("no model is named \"Llama-4\""), "{error}");
}
