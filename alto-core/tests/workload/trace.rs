//! Traces in CSV.

use std::error::Error;

use alto_core::simulated::workload::{TraceError, TraceTask, Work, read_trace};

fn read(text: &str) -> Result<Vec<TraceTask>, TraceError> {
    read_trace(text.as_bytes())
}

fn refused(text: &str) -> String {
    read(text).expect_err("a broken trace").to_string()
}

#[test]
fn durations_and_job_lists_are_read_from_named_columns() {
    let text = "devices, arrival, duration, model, row_tokens, jobs, kind, name\n\
                4, 0, 3600.5, , , , A100, first\n\
                1, 60, , Llama-3.2-1B, 140, 16:1e-4:2:1000; 64:5e-4:8:500, , \n";
    let tasks = read(text).unwrap();
    assert_eq!((tasks[0].name.as_str(), tasks[0].arrival, tasks[0].devices), ("first", 0.0, 4));
    assert_eq!((tasks[0].kind.as_deref(), &tasks[0].work), (Some("A100"), &Work::Duration(3600.5)));
    assert_eq!((tasks[1].name.as_str(), tasks[1].kind.as_deref()), ("line 3", None));
    let Work::Tuning(task) = &tasks[1].work else { panic!("{:?}", tasks[1].work) };
    assert_eq!((task.model.as_str(), task.row_tokens, task.release, task.devices), ("Llama-3.2-1B", 140, 60.0, 1));
    let jobs: Vec<_> = task.jobs.iter().map(|job| (job.rank, job.learning_rate, job.batch, job.samples)).collect();
    assert_eq!(jobs, [(16, 1e-4, 2, 1000), (64, 5e-4, 8, 500)]);

    let scheduled = tasks[0].to_task(3600.5);
    assert_eq!((scheduled.options[0].width, scheduled.options[0].duration), (4, 3600.5));
    assert_eq!(scheduled.options[0].kind.as_deref(), Some("A100"));
    let scheduled = tasks[1].to_task(2.0);
    assert_eq!((scheduled.release, scheduled.options[0].duration, &scheduled.options[0].kind), (60.0, 2.0, &None));
}

#[test]
fn an_empty_trace_is_no_tasks_but_needs_its_header() {
    assert_eq!(read("arrival,devices,duration\n").unwrap(), []);
    let missing = |column: &str| {
        format!("line 1: column {column} is missing; the header must have arrival, devices, and duration or jobs")
    };
    assert_eq!(refused(""), missing("arrival"));
    assert_eq!(refused("0,4,3600\n1,2,30\n"), missing("arrival"));
    assert_eq!(refused("arrival,duration\n"), missing("devices"));
    assert_eq!(refused("arrival,devices\n"), missing("duration"));
    assert_eq!(refused("arrival,devices,jobs,model\n"), missing("row_tokens"));
    assert!(
        refused("arrival,devices,duration,gpus\n").starts_with("line 1: column \"gpus\" is unknown, expected name")
    );
    assert_eq!(refused("arrival,devices,duration,devices\n"), "line 1: column devices is there twice, expected once");
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    let line = |text: &str, line: u64| {
        let expected = format!("line {line}, column devices: \"x\", expected a whole number of at least 1");
        assert_eq!(refused(text), expected, "{text:?}");
    };
    line("arrival,devices,duration\r\n0,1,5\r\n1,x,5\r\n", 3);
    line("arrival,devices,duration\n\n\n0,1,5\n\n\n1,x,5\n", 7);
    line("\r\narrival,devices,duration\r\n\r\n0,1,5\r\n\r\n1,x,5\r\n", 6);
    line("arrival,devices,duration\r0,1,5\r1,x,5\r", 3);
    line("\u{feff}arrival,devices,duration\r\n0,x,5", 2);
    line("name,arrival,devices,duration\r\n\"a\r\nb\r\nc\",0,1,5\r\nd,1,x,5\r\n", 5);
    let tasks = read("arrival,devices,duration\r\n\r\n0,1,5\r\n1,1,5").unwrap();
    assert_eq!([tasks[0].name.as_str(), tasks[1].name.as_str()], ["line 3", "line 4"]);
}

#[test]
fn a_broken_line_is_named_with_its_column() {
    let after = |line: &str| refused(&format!("arrival,devices,duration\n0,1,1\n{line}\n5,1,1\n"));
    assert_eq!(after("x,1,1"), "line 3, column arrival: \"x\", expected seconds, at least 0");
    assert_eq!(after("-1,1,1"), "line 3, column arrival: \"-1\", expected seconds, at least 0");
    assert_eq!(after("NaN,1,1"), "line 3, column arrival: \"NaN\", expected seconds, at least 0");
    assert_eq!(after("1,0,1"), "line 3, column devices: \"0\", expected a whole number of at least 1");
    assert_eq!(after("1,1.5,1"), "line 3, column devices: \"1.5\", expected a whole number of at least 1");
    assert_eq!(after("1,1,0"), "line 3, column duration: \"0\", expected seconds, over 0");
    assert_eq!(after("1,1,inf"), "line 3, column duration: \"inf\", expected seconds, over 0");
    assert_eq!(after("1,1,"), "line 3, column duration: \"\", expected seconds, or jobs in the column jobs");
    assert_eq!(after("1,1"), "line 3 has 2 fields, expected 3 as in the header");
    assert_eq!(after("1,1,1,1"), "line 3 has 4 fields, expected 3 as in the header");
}

#[test]
fn a_broken_job_list_is_named() {
    let jobs = |rest: &str| refused(&format!("arrival,devices,duration,model,row_tokens,jobs\n0,1,{rest}\n"));
    let expected = "rank:learning_rate:batch:samples, all over 0, several separated by semicolons";
    for list in ["16:1e-4:2", "16:1e-4:2:0", "16:-1:2:10", "16:1e-4:2:10;", "a:1e-4:2:10", "16:1e-4:2:10:9"] {
        assert_eq!(jobs(&format!(",m,8,{list}")), format!("line 2, column jobs: {list:?}, expected {expected}"));
    }
    assert_eq!(jobs(",,8,1:1:1:1"), "line 2, column model: \"\", expected a model's name");
    assert_eq!(jobs(",m,,1:1:1:1"), "line 2, column row_tokens: \"\", expected a whole number of at least 1");
    assert_eq!(jobs("5,m,8,1:1:1:1"), "line 2, column duration: \"5\", expected nothing, since the task has jobs");
}

#[test]
fn a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    assert!(matches!(TraceTask::read_file(&path), Err(TraceError::Open { path: named, .. }) if named == path));
    std::fs::write(&path, "arrival,devices,duration\n1,1,x\n").unwrap();
    let error = TraceTask::read_file(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is not a trace", path.display()));
    assert!(error.source().unwrap().to_string().starts_with("line 2, column duration"));
    std::fs::write(&path, b"arrival,devices,duration\n1,1,\xff\n").unwrap();
    let error = TraceTask::read_file(&path).unwrap_err();
    let csv = error.source().unwrap().source().unwrap().to_string();
    assert!(csv.contains("line 2"), "{csv}");
}
