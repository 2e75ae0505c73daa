//! The report and the events as files, and the table.

use alto_core::trainer::{Event, Report, Trainer};
use alto_exit::LossAware;

use super::setup::{backend, candidates, job, line, recorded, recorded_sweep, rows, run};

/// A run with a winner, a lagging and a quarantined job; all its numbers are short in binary.
fn report() -> Report {
    let policy =
        LossAware { underperforming: alto_exit::Underperforming { mark: 0.5, keep: 0.5 }, ..LossAware::default() };
    let jobs = [
        (job("good", 8), line(8, 1.0)),
        (job("lags", 8), line(8, 1.5)),
        (job("broken", 8), recorded(vec![f64::NAN; 8], &[(0, 2.0)])),
    ];
    let (mut outcome, _) = run(&Trainer { interval: 0.125, ..Trainer::default() }, &jobs, &policy);
    outcome.report.totals.seconds = 1.5;
    outcome.report.jobs.iter_mut().for_each(|job| job.seconds = 0.5);
    outcome.report
}

#[test]
fn a_report_survives_json() {
    let report = report();
    let text = serde_json::to_string_pretty(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
}

#[test]
fn an_unknown_field_or_version_of_a_report_is_refused() {
    let text = serde_json::to_string(&report()).unwrap();
    let with =
        |from: &str, to: &str| serde_json::from_str::<Report>(&text.replacen(from, to, 1)).unwrap_err().to_string();
    assert!(with("{", "{\"surprise\":1,").contains("surprise"));
    assert!(with("\"skipped\"", "\"surprise\"").contains("surprise"));
    assert!(with("\"version\":1", "\"version\":9").contains("version 9 is unknown, expected 1"));
}

#[test]
fn events_survive_json_and_refuse_unknown_fields() {
    let jobs = recorded_sweep();
    let mut lines = vec![];
    let mut events = vec![];
    let mut observe = |event: &Event| {
        let event = Event { seconds: 0.25, ..event.clone() };
        lines.push(serde_json::to_string(&event).unwrap());
        events.push(event);
    };
    let policy = LossAware::default();
    let trainer = Trainer { slots: Some(4), ..Trainer::default() };
    trainer.run(&mut backend(&jobs), &rows(8), &rows(3), candidates(&jobs), &policy, &mut observe).unwrap();
    for (line, event) in lines.iter().zip(&events) {
        let read: Event = serde_json::from_str(line).unwrap();
        assert_eq!(std::mem::discriminant(&read.kind), std::mem::discriminant(&event.kind), "{line}");
        assert_eq!(read.kind.to_string(), event.kind.to_string());
    }
    assert!(serde_json::from_str::<Event>(&lines[0].replacen("\"job\"", "\"surprise\":1,\"job\"", 1)).is_err());
}

#[test]
fn the_table_tells_how_each_job_ended_and_who_won() {
    let mut report = report();
    report.validation.bytes = Some(18);
    report.warnings.push("2 of 8 completions of the training set are cut off by the context length".into());
    let table = report.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines,
        [
            "job     rank    lr  batch  ended            best loss  at step    used  why",
            "good       4  1e-3      1  finished            1.0000        8  100.0%",
            "lags       4  1e-3      1  underperforming     1.7500        4   50.0%  at step 4: place 2 \
             of 2 at progress 0.5 with loss 1.7500, but only the best 1 stay, up to 1.5000",
            "broken     4  1e-3      1  quarantined              -        -   37.5%  at step 3: loss was not \
             finite, step 3 in a row",
            "",
            "Best: good, validation loss 1.0000 nats per token (0.7213 bits per byte) after 8 steps.",
            "15 of 24 samples (38% saved), 88 tokens, 1.5 s.",
            "Warning: 2 of 8 completions of the training set are cut off by the context length.",
        ],
        "{table}"
    );
}
