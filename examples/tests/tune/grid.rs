//! Grids that give no jobs, or jobs that this model can't train.

use std::fs;

use alto_core::trainer::Report;

use crate::desk::{Desk, GRID};

#[test]
fn a_grid_that_can_not_be_is_refused_with_the_value_and_what_would_be_right() {
    for (from, to, expected) in [
        ("rank = [2]", "rank = [0]", "rank is 0, but must be at least 1"),
        ("rank = [2]", "rank = []", "rank is an empty list, expected at least one entry"),
        ("[1e-3, 2e-3]", "[]", "learning_rate is an empty list, expected at least one entry"),
        ("[1e-3, 2e-3]", "[nan]", "learning rate is NaN, but must be a finite positive number"),
        ("[1e-3, 2e-3]", "[inf]", "learning rate is inf, but must be a finite positive number"),
        ("[1e-3, 2e-3]", "[0.0]", "learning rate is 0, but must be a finite positive number"),
        ("[1e-3, 2e-3]", "[-1e-3]", "learning rate is -0.001, but must be a finite positive number"),
        ("[1e-3, 2e-3]", "[1e-3, 1e-3]", "learning_rate has 0.001 twice, expected each entry once"),
        ("batch = [1]", "batch = [0]", "batch is 0, but must be at least 1"),
        ("steps = 1", "steps = 0", "steps is 0, but must be at least 1"),
        ("steps = 1", "", "0 of epochs, steps and samples are given, expected exactly one"),
        (
            "steps = 1",
            "steps = 1\ntarget_modules = [\"query\"]",
            "unknown target module query, this model has down_proj",
        ),
        ("steps = 1", "steps = 1\ntarget_modules = []", "target_modules is an empty list, expected at least one entry"),
    ] {
        let desk = Desk::new();
        desk.replace("grid.toml", from, to);
        desk.refuses(&[], &[expected]);
    }
}

#[test]
fn a_search_that_can_not_be_is_refused_with_the_value_and_what_would_be_right() {
    for (to, expected) in [
        ("{ log = [1e-2, 1e-3] }", "parameter learning_rate: the range from 0.01 to 0.001 is empty"),
        ("{ log = [0.0, 1e-3] }", "parameter learning_rate: a logarithmic range starts over 0, but this one at 0"),
        ("{ normal = [1e-3, 2e-3] }", "unknown variant `normal`, expected one of `log`, `uniform`, `choice`"),
    ] {
        let desk = Desk::new();
        desk.replace("grid.toml", "[1e-3, 2e-3]", to);
        desk.replace("grid.toml", "steps = 1", "steps = 1\n[search]\nmethod = \"tpe\"\njobs = 3\n");
        desk.refuses(&[], &[expected]);
    }
}

#[test]
fn a_search_trains_as_many_jobs_as_it_is_told_and_reports_what_each_was_made_of() {
    let desk = Desk::new();
    desk.replace("grid.toml", "[1e-3, 2e-3]", "{ log = [1e-3, 1e-2] }");
    desk.replace("grid.toml", "steps = 1", "steps = 1\n[search]\nmethod = \"random\"\njobs = 3\nfirst = 1\n");
    let run = desk.run(&[("--slots", "1")]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Report = serde_json::from_slice(&fs::read(desk.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(report.jobs.len(), 3);
    for job in &report.jobs {
        let rate = job.point.as_ref().and_then(|point| point.number("learning_rate")).unwrap();
        assert!((1e-3..=1e-2).contains(&rate) && job.job.optimizer.learning_rate == rate);
    }
}

#[test]
fn a_file_that_is_no_grid_is_named_with_the_line() {
    for (text, expected) in [
        ("", "version is missing, expected 1"),
        ("version = 2", "version is 2, expected 1"),
        (&*format!("{GRID}ranks = [4]"), "line 6, column 1"),
        (&*format!("{GRID}ranks = [4]"), "unknown field `ranks`"),
        ("version = ", "line 1"),
    ] {
        let desk = Desk::new();
        desk.write("grid.toml", text);
        desk.refuses(&[], &["grid.toml", expected]);
    }
    Desk::new().refuses(&[("--grid", "nothing.toml")], &["can't read nothing.toml", "No such file"]);
}
