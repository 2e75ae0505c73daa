//! A directory with everything that `tune` needs, for a test to spoil.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small model, four rows to train on, two to validate on, and a grid of two jobs with a step each.
pub(crate) struct Desk {
    dir: tempfile::TempDir,
}

const MODEL: [&str; 4] = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

pub(crate) const GRID: &str = "version = 1\nlearning_rate = [1e-3, 2e-3]\nrank = [2]\nbatch = [1]\nsteps = 1\n";

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(desk.path("model")).unwrap();
        for file in MODEL {
            fs::copy(testdata("quickstart/gsm-nano").join(file), desk.path("model").join(file)).unwrap();
        }
        desk.write("train.jsonl", &rows(4));
        desk.write("val.jsonl", &rows(2));
        desk.write("grid.toml", GRID);
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Changes a file's text.
    pub(crate) fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, &text.replace(from, to));
    }

    /// Runs `tune` on the desk's files, with these arguments added; a name with a value in place of an own one replaces it.
    pub(crate) fn run(&self, arguments: &[(&str, &str)]) -> Output {
        let own = [
            ("--model", "model"),
            ("--train", "train.jsonl"),
            ("--val", "val.jsonl"),
            ("--out", "out"),
            ("--grid", "grid.toml"),
            ("--threads", "1"),
        ];
        let kept = own.into_iter().filter(|(name, _)| arguments.iter().all(|(other, _)| name != other));
        self.command()
            .args(kept.chain(arguments.iter().copied()).flat_map(|(name, value)| [name, value]))
            .output()
            .unwrap()
    }

    /// `tune`, to be run on the desk.
    pub(crate) fn command(&self) -> Command {
        // The test is in `deps`, beside `examples`.
        let test = std::env::current_exe().unwrap();
        let tune =
            test.ancestors().nth(2).unwrap().join("examples").join(format!("tune{}", std::env::consts::EXE_SUFFIX));
        assert!(
            tune.exists(),
            "{} is missing, run `cargo test --workspace` or build the examples first",
            tune.display()
        );
        let mut command = Command::new(tune);
        command.current_dir(self.dir.path());
        command
    }

    /// Checks that `tune` says what is wrong in one line with all of this in it, trains nothing, and leaves all as it was.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[(&str, &str)], expected: &[&str]) {
        let before = self.listing();
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "one line of error in:\n{stderr}");
        assert_eq!(stderr.lines().last(), Some(errors[0]), "the error is the last line of:\n{stderr}");
        for part in expected {
            assert!(errors[0].contains(part), "no {part:?} in:\n{}", errors[0]);
        }
        assert!(output.stdout.is_empty(), "nothing is trained, but there is a table");
        assert_eq!(self.listing(), before, "what lies on the desk");
    }

    /// Every path on the desk, with the bytes of each file.
    pub(crate) fn listing(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        fn list(dir: &Path, into: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                into.push((path.clone(), fs::read(&path).ok()));
                if path.is_dir() {
                    list(&path, into);
                }
            }
        }
        let mut paths = vec![];
        list(self.dir.path(), &mut paths);
        paths.sort();
        paths
    }
}

pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(name)
}

/// The first rows of the quick start's training set.
fn rows(count: usize) -> String {
    let text = fs::read_to_string(testdata("quickstart/data/train.jsonl")).unwrap();
    text.lines().take(count).map(|line| format!("{line}\n")).collect()
}
