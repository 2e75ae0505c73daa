//! Grids that give no jobs, or jobs that this model can't train.

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
