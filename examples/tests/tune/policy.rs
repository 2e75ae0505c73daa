//! Exit policies from files.

use alto_core::trainer::{Ended, Report};

use crate::desk::Desk;

/// How the jobs of a sweep end in which one rate does nothing and the other trains, and how many of its rows were used.
fn ends(desk: &Desk, arguments: &[(&str, &str)]) -> (Vec<Ended>, f64) {
    desk.replace("grid.toml", "[1e-3, 2e-3]", "[1e-9, 2e-3]");
    desk.replace("grid.toml", "steps = 1", "steps = 4");
    let output = desk.run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&std::fs::read(desk.path("out/report.json")).unwrap()).unwrap();
    (report.jobs.into_iter().map(|job| job.ended).collect(), report.totals.saved())
}

#[test]
fn without_a_file_it_is_the_papers_policy() {
    let (ends, saved) = ends(&Desk::new(), &[]);
    // The worse of two at the rung, which is the first of four steps.
    assert_eq!(ends[0].word(), "underperforming");
    assert!(saved >= 3.0 / 8.0, "{saved}");
}

#[test]
fn a_file_names_the_policy() {
    let desk = Desk::new();
    desk.write("never.json", r#"{"version": 1, "policy": "never"}"#);
    assert_eq!(ends(&desk, &[("--policy", "never.json")]), (vec![Ended::Finished, Ended::Finished], 0.0));
}

#[test]
fn an_audit_trains_ended_jobs_on_and_tells_whether_the_policy_was_right() {
    let desk = Desk::new();
    let (ends, saved) = ends(&desk, &[("--audit", "1")]);
    assert_eq!((ends[0].word(), ends[1].word()), ("underperforming", "finished"));
    assert!(saved >= 3.0 / 8.0, "what the audit takes is counted apart: {saved}");
    let report: Report = serde_json::from_slice(&std::fs::read(desk.path("out/report.json")).unwrap()).unwrap();
    let audit = report.audit.expect("there was one");
    assert_eq!((audit.rates[0].exits, audit.rates[0].audited, audit.rates[0].wrong), (1, 1, 0));
    assert_eq!((audit.jobs[0].job, audit.jobs[0].ended.word()), (0, "finished"));
}

#[test]
fn a_file_that_is_no_policy_is_named_with_the_field() {
    for (text, expected) in [
        (r#"{"version": 2, "policy": "never"}"#, "the policy has version 2, expected 1"),
        (r#"{"version": 1, "policy": "nevr"}"#, "unknown variant `nevr`, expected one of `never`"),
        (r#"{"version": 1}"#, "missing field `policy`"),
        (r#"{"version": 1, "policy": "never", "seed": 1}"#, "unknown field `seed`"),
        (r#"{"version": 1, "policy": {"diverging": {"windw": 3}}}"#, "unknown field `windw`"),
        (
            r#"{"version": 1, "policy": {"underperforming": {"keep": 25}}}"#,
            "underperforming: keep is 25, but must be over 0 and at most 1",
        ),
        ("never", "line 1 column 2"),
    ] {
        let desk = Desk::new();
        desk.write("policy.json", text);
        desk.refuses(&[("--policy", "policy.json")], &["policy.json is not a policy: ", expected]);
    }
    Desk::new().refuses(&[("--policy", "nothing.json")], &["can't read nothing.json", "No such file"]);
}
