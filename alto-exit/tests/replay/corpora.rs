use alto_exit::replay::{Corpus, CorpusError, RecordedRun, RunError};

use crate::runs::{chain, corpus, recorded, run};

#[test]
fn the_recorded_runs_are_read_and_in_order() {
    let runs = recorded();
    assert_eq!(runs.len(), 12);
    for run in &runs {
        run.check().unwrap();
        assert_eq!(run.untrained_loss(), Some(1.3875728781896692));
        assert_eq!(run.best().map(|best| best.loss), run.val_loss[1..].iter().copied().reduce(f64::min));
    }
}

#[test]
fn losses_that_are_not_finite_survive_a_file() {
    let mut run = run(3, &[(0, 1.0), (3, f64::NEG_INFINITY)]);
    (run.train_loss[1], run.grad_norm) = (f64::NAN, vec![1.0, f64::INFINITY, 2.0]);
    let text = serde_json::to_string(&run).unwrap();
    assert!(text.contains(r#""train_loss":[1.0,"NaN",1.0],"grad_norm":[1.0,"inf",2.0]"#), "{text}");
    let read: RecordedRun = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{read:?}"), format!("{run:?}"));
}

#[test]
fn an_unknown_field_or_version_is_refused() {
    let refused = |from: &str, to: &str| {
        let text = serde_json::to_string(&corpus(vec![run(1, &[(1, 1.0)])])).unwrap();
        assert!(text.contains(from), "{text}");
        serde_json::from_str::<Corpus>(&text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert!(refused(r#""version":1"#, r#""version":2"#).starts_with("version 2 is unknown, expected 1"));
    assert!(refused(r#""task""#, r#""seed":1,"task""#).starts_with("unknown field `seed`"));
    assert!(refused(r#""rank""#, r#""rnk":1,"rank""#).starts_with("unknown field `rnk`"));
    assert!(refused(r#""version":1,"#, "").starts_with("missing field `version`"));
}

#[test]
fn a_run_that_contradicts_itself_is_named_with_its_index() {
    let broken = |change: fn(&mut RecordedRun)| {
        let mut run = run(4, &[(0, 2.0), (2, 1.5), (4, 1.0)]);
        run.name = Some("broken".to_owned());
        change(&mut run);
        let source = run.check().unwrap_err();
        let found = corpus(vec![crate::runs::run(1, &[(1, 1.0)]), run]).check().unwrap_err();
        assert_eq!(found, CorpusError::Run { index: 1, name: "broken".to_owned(), source });
        chain(&found)
    };
    let why = |text: String| text.strip_prefix("run 1 (broken) can't be replayed: ").unwrap().to_owned();
    assert_eq!(
        why(broken(|run| run.eval_step[2] = 2)),
        "evaluation 2 of the recorded run is at step 2, expected one behind 2"
    );
    assert_eq!(
        why(broken(|run| run.eval_step[2] = 5)),
        "evaluation 2 of the recorded run is at step 5, but it has only 4 steps"
    );
    assert_eq!(why(broken(|run| run.train_loss.push(1.0))), "the recorded run has 5 entries in train_loss, expected 4");
    assert_eq!(why(broken(|run| run.grad_norm.push(1.0))), "the recorded run has 1 entries in grad_norm, expected 4");
    assert_eq!(why(broken(|run| run.batch = 0)), "the recorded run has no rows in a step, expected at least one");
    assert_eq!(why(broken(|run| run.eval_step.clear())), "the recorded run has no evaluations, expected at least one");
}

#[test]
fn an_empty_corpus_and_two_runs_of_one_name_are_refused() {
    assert_eq!(
        corpus(vec![]).check().unwrap_err().to_string(),
        "the corpus of task made by hand has no runs, expected at least one"
    );
    let named = |name: &str| RecordedRun { name: Some(name.to_owned()), ..run(1, &[(1, 1.0)]) };
    let error = corpus(vec![named("a"), named("b"), named("a")]).check().unwrap_err();
    assert_eq!(error.to_string(), "runs 0 and 2 are both named a");
    assert_eq!(corpus(vec![run(1, &[(1, 1.0)]); 2]).check(), Ok(()), "names may be missing");
}

#[test]
fn tasks_of_one_name_are_told_apart_by_their_seed() {
    let seeded = |seed| RecordedRun { seed, ..run(1, &[(1, 1.0)]) };
    assert_eq!(corpus(vec![seeded(Some(3)), seeded(Some(3))]).label(), "made by hand-s3");
    assert_eq!(corpus(vec![seeded(Some(3)), seeded(None)]).label(), "made by hand");
    assert_eq!(corpus(vec![]).label(), "made by hand");
    assert!(matches!(run(1, &[(2, 1.0)]).check(), Err(RunError::Beyond { .. })));
    let many = RecordedRun { batch: usize::MAX, ..run(2, &[(2, 1.0)]) };
    assert!(matches!(many.check(), Err(RunError::TooManySamples { steps: 2, .. })));
}
