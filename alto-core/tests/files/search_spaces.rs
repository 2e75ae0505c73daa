use std::collections::BTreeSet;
use std::fs;

use alto_core::job::{AccumulationMode, Decay, Job};
use alto_core::search_space::{Method, SearchSettings, SearchSpace, SearchSpaceError};
use alto_exit::Curve;
use alto_exit::search::{Point, Trial};
use proptest::prelude::*;

use crate::{assert_error, scratch};

const SMALL: &str = "version = 1\nlearning_rate = [1e-3]\nrank = [8]\nbatch = [2]\nsteps = 10\n";

/// The jobs of the small grid with more lines, and without the lines that start with `without`.
fn jobs(without: &str, more: &str) -> Result<Vec<Job>, SearchSpaceError> {
    let kept = SMALL.lines().filter(|line| without.is_empty() || !line.starts_with(without));
    let text = kept.chain([more]).collect::<Vec<_>>().join("\n");
    SearchSpace::from_toml(&text)?.jobs(1000)
}

#[test]
fn what_is_not_given_has_its_documented_default() {
    let jobs = jobs("", "").unwrap();
    let [job] = jobs.as_slice() else { panic!("{} jobs", jobs.len()) };
    assert_eq!((job.name.as_str(), job.steps, job.batch, job.accumulation, job.seed), ("r8-lr0.001-b2", 10, 2, 1, 0));
    assert_eq!((job.adapter.rank, job.adapter.alpha, job.adapter.rank_stabilized), (8, 16.0, false));
    assert_eq!((job.optimizer.learning_rate, job.optimizer.weight_decay, job.optimizer.clip), (1e-3, 0.0, None));
    assert_eq!((job.schedule.decay, job.schedule.warmup_steps), (Decay::Linear, 0));
    assert_eq!(job.accumulation_mode, AccumulationMode::TokenMean);
    let seven = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    assert_eq!(job.adapter.targets, seven.map(str::to_owned).into());
}

#[test]
fn everything_given_reaches_the_job() {
    let jobs = jobs(
        "",
        "alpha_per_rank = [0.5]\nweight_decay = [0.01]\nseed = [7]\naccumulation = 4\nclip = 1.0\n\
         accumulation_mode = \"mean_of_means\"\ndecay = \"cosine\"\nwarmup_ratio = 0.25\n\
         target_modules = [\"v_proj\", \"q_proj\"]\nrank_stabilized = true",
    );
    let job = &jobs.unwrap()[0];
    assert_eq!((job.adapter.alpha, job.adapter.rank_stabilized), (4.0, true));
    assert_eq!(job.adapter.targets, ["q_proj", "v_proj"].map(str::to_owned).into());
    assert_eq!((job.optimizer.weight_decay, job.optimizer.clip, job.seed), (0.01, Some(1.0), 7));
    assert_eq!((job.schedule.decay, job.schedule.warmup_steps), (Decay::Cosine, 3));
    assert_eq!((job.accumulation, job.accumulation_mode), (4, AccumulationMode::MeanOfMeans));
}

#[test]
fn the_grid_has_its_documented_order_and_names() {
    let text = "version = 1\nlearning_rate = [1e-5, 0.02]\nrank = [8, 4]\nbatch = [1, 2]\nepochs = 1";
    let names = |text: &str| -> Vec<String> {
        SearchSpace::from_toml(text).unwrap().jobs(10).unwrap().into_iter().map(|job| job.name).collect()
    };
    let expected = [
        "r8-lr1e-5-b1",
        "r8-lr1e-5-b2",
        "r8-lr0.02-b1",
        "r8-lr0.02-b2",
        "r4-lr1e-5-b1",
        "r4-lr1e-5-b2",
        "r4-lr0.02-b1",
        "r4-lr0.02-b2",
    ];
    assert_eq!(names(text), expected);
    let more = format!("{text}\nalpha_per_rank = [1, 2]\nweight_decay = [0, 0.1]\nseed = [1, 2]");
    let all = names(&more);
    assert_eq!((all.len(), all[0].as_str(), all[1].as_str()), (64, "r8-a1-lr1e-5-wd0-b1-s1", "r8-a1-lr1e-5-wd0-b1-s2"));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 64);
}

#[test]
fn budgets_come_to_whole_steps() {
    let steps = |budget: &str| jobs("steps", budget).unwrap()[0].steps;
    assert_eq!(steps("epochs = 3"), 1500);
    assert_eq!(steps("epochs = 0.5"), 250);
    assert_eq!(steps("samples = 5"), 3);
    assert_eq!(steps("samples = 1\naccumulation = 8"), 1);
    assert_eq!(steps("samples = 33\naccumulation = 8"), 3);
    assert_eq!(steps("epochs = 0.0001"), 1);
}

#[test]
fn wrong_grids_are_refused_by_key_and_value() {
    let cases: [(&str, &str, &[&str]); 33] = [
        ("version", "", &["version is missing", "expected 1"]),
        ("version", "version = 2", &["version is 2", "expected 1"]),
        ("learning_rate", "", &["missing field `learning_rate`"]),
        ("rank", "", &["missing field `rank`"]),
        ("", "ranks = [8]", &["unknown field `ranks`", "line 6"]),
        ("rank", "rank = 8", &["rank = 8", "expected a sequence"]),
        ("rank", "rank = [-8]", &["-8"]),
        ("rank", "rank = [0]", &["r0-", "rank is 0", "at least 1"]),
        ("rank", "rank = []", &["rank", "empty"]),
        ("rank", "rank = [8, 4, 8]", &["rank has 8 twice"]),
        ("learning_rate", "learning_rate = []", &["learning_rate", "empty"]),
        ("learning_rate", "learning_rate = [0.001, 1e-3]", &["learning_rate has 0.001 twice"]),
        ("learning_rate", "learning_rate = [0.0]", &["learning rate is 0", "finite positive"]),
        ("learning_rate", "learning_rate = [-1]", &["learning rate is -1"]),
        ("learning_rate", "learning_rate = [nan]", &["learning rate is NaN"]),
        ("learning_rate", "learning_rate = [inf]", &["learning rate is inf"]),
        ("learning_rate", "learning_rate = [\"fast\"]", &["fast"]),
        ("batch", "batch = [0]", &["batch is 0"]),
        ("", "accumulation = 0", &["accumulation is 0"]),
        ("", "alpha_per_rank = [0]", &["alpha is 0"]),
        ("", "weight_decay = [-0.1]", &["weight decay is -0.1"]),
        ("", "clip = 0.0", &["clip norm is 0"]),
        ("", "seed = []", &["seed", "empty"]),
        ("", "target_modules = []", &["target_modules", "empty"]),
        ("", "target_modules = [\"q_proj\", \"q_proj\"]", &["target_modules has q_proj twice"]),
        ("", "decay = \"exponential\"", &["exponential", "`cosine`"]),
        ("steps", "", &["0 of epochs, steps and samples", "exactly one"]),
        ("", "epochs = 1", &["2 of epochs, steps and samples", "exactly one"]),
        ("steps", "steps = 0", &["steps is 0"]),
        ("steps", "epochs = -1.0", &["epochs is -1"]),
        ("steps", "samples = 0", &["samples is 0"]),
        ("", "warmup_ratio = 1.0", &["warmup_ratio is 1", "under 1"]),
        ("", "warmup_steps = 10", &["r8-lr0.001-b2", "warm-up of 10 steps", "only 10"]),
    ];
    for (without, more, parts) in cases {
        assert_error(jobs(without, more), parts);
    }
    assert_error(jobs("", "warmup_steps = 1\nwarmup_ratio = 0.1"), &["warmup_ratio and warmup_steps"]);
}

#[test]
fn absurd_sizes_are_refused_not_multiplied() {
    let most = i64::MAX;
    assert_error(jobs("batch", &format!("batch = [{most}]\naccumulation = {most}")), &["samples", "at most"]);
    assert_error(jobs("steps", &format!("steps = {most}")), &["samples", "at most"]);
    assert_error(jobs("steps", "epochs = 1e300"), &["samples", "at most"]);
    let samples = |samples: u64| jobs("steps", &format!("samples = {samples}"));
    assert_eq!(samples(1 << 53).unwrap()[0].steps, 1 << 52);
    assert_error(samples((1 << 53) + 1), &["samples", "at most"]);
}

#[test]
fn a_grid_of_millions_is_refused_before_it_is_built() {
    let list = |entries: usize| (0..entries).map(|seed| seed.to_string()).collect::<Vec<_>>().join(", ");
    let grid = |entries| jobs("learning_rate", &format!("learning_rate = [{}]", list(entries)));
    assert_error(grid(100_001), &["100001 jobs", "at most 100000"]);
    let more = format!("seed = [{0}]\nweight_decay = [{0}]\nalpha_per_rank = [{0}]", list(10_000));
    assert_error(jobs("", &more), &["1000000000000 jobs", "at most 100000"]);
    assert_eq!(jobs("", &format!("seed = [{}]", list(300))).unwrap().len(), 300);
}

/// The small grid, with ranges, lists and a search.
const SEARCHED: &str = "version = 1\nlearning_rate = { log = [1e-5, 1e-2] }\nrank = { choice = [8, 16] }\n\
                        batch = { uniform = [1, 4] }\nseed = [3]\nepochs = 2\n\
                        [search]\nmethod = \"tpe\"\njobs = 20\nseed = 7\nfirst = 5\n";

#[test]
fn a_search_chooses_from_ranges_and_lists() {
    let space = SearchSpace::from_toml(SEARCHED).unwrap();
    let settings = SearchSettings { method: Method::Tpe, jobs: 20, seed: 7, first: 5 };
    assert_eq!(space.search, Some(settings));
    let search = space.to_search().unwrap().unwrap();
    let (mut points, curve) = (vec![], Curve::default());
    for index in 0..50 {
        let tried: Vec<Trial> = points.iter().map(|point| Trial { point, curve: &curve }).collect();
        let point = search.next(&tried).unwrap();
        let job = space.job(index, &point, 100).unwrap();
        assert!((1e-5..=1e-2).contains(&job.optimizer.learning_rate));
        assert!([8, 16].contains(&job.adapter.rank) && job.adapter.alpha == 2.0 * job.adapter.rank as f64);
        assert!((1..=4).contains(&job.batch) && job.seed == 3);
        assert_eq!(job.steps, 200_u64.div_ceil(job.batch as u64));
        let expected = format!("{index}-r{}-lr{:.2e}-b{}", job.adapter.rank, job.optimizer.learning_rate, job.batch);
        assert_eq!(job.name, expected);
        points.push(point);
    }
    assert!((1..=4).all(|batch| points.iter().any(|point| point.integer("batch") == Some(batch))));
    assert_error(space.jobs(100), &["[search]", "not known from the start"]);
    assert_error(space.job(0, &Point::default(), 100), &["the point has no rank"]);
    assert_eq!(SearchSpace::from_toml(&toml::to_string(&space).unwrap()).unwrap(), space);
}

#[test]
fn a_grid_that_is_searched_has_the_jobs_of_the_grid_in_order() {
    let text = "version = 1\nlearning_rate = [1e-4, 1e-3]\nrank = [8, 4]\nbatch = [1, 2]\nsteps = 10\n";
    let grid = SearchSpace::from_toml(text).unwrap().jobs(10).unwrap();
    let space = SearchSpace::from_toml(&format!("{text}[search]\nmethod = \"grid\"\njobs = 100")).unwrap();
    assert!(space.to_search().unwrap().is_some());
    let search = space.to_search().unwrap().unwrap();
    let (mut points, curve) = (vec![], Curve::default());
    loop {
        let tried: Vec<Trial> = points.iter().map(|point| Trial { point, curve: &curve }).collect();
        let Some(point) = search.next(&tried) else { break };
        points.push(point);
    }
    let searched = points.iter().enumerate().map(|(index, point)| space.job(index, point, 10).unwrap());
    let unnamed = |job: Job| Job { name: String::new(), ..job };
    assert!(searched.map(unnamed).eq(grid.into_iter().map(unnamed)));
}

#[test]
fn wrong_searches_are_refused_by_key_and_value() {
    let dir = scratch();
    let path = dir.path().join("search.toml");
    for (right, wrong, parts) in [
        ("1e-5, 1e-2", "1e-2, 1e-5", ["parameter learning_rate", "is empty"]),
        ("1e-5, 1e-2", "0, 1e-2", ["parameter learning_rate", "starts over 0"]),
        ("1e-5, 1e-2", "1e-5, 1e60", ["learning rate is", "within f32"]),
        ("[8, 16]", "[]", ["parameter rank", "at least one"]),
        ("[8, 16]", "[8, 8]", ["parameter rank", "8 twice"]),
        ("[8, 16]", "[8, 65537]", ["rank is 65537", "at most 65536"]),
        ("[1, 4]", "[0, 4]", ["batch is 0", "at least 1"]),
        ("[1, 4]", "[-1, 4]", ["-1", "line"]),
        ("uniform = [1, 4]", "uniform = [1, 2, 4]", ["two ends", "3 numbers"]),
        ("uniform", "normal", ["unknown variant `normal`", "`uniform`"]),
        ("\"tpe\"", "\"bayes\"", ["unknown variant `bayes`", "`tpe`"]),
        ("\"tpe\"", "\"grid\"", ["parameter learning_rate is a range", "list the values"]),
        ("jobs = 20", "jobs = 0", ["search: jobs is 0", "1 to 100000"]),
        ("first = 5", "first = 0", ["search: first is 0", "1 to 100000"]),
        ("first = 5", "frist = 5", ["unknown field `frist`", "line"]),
        ("epochs = 2", "epochs = -1", ["epochs is -1", "positive"]),
    ] {
        assert!(SEARCHED.contains(right));
        fs::write(&path, SEARCHED.replace(right, wrong)).unwrap();
        let [first, second] = parts;
        assert_error(SearchSpace::read(&path), &["search.toml", first, second]);
    }
    fs::write(&path, SEARCHED).unwrap();
    SearchSpace::read(&path).unwrap();
    let range = SMALL.replace("[1e-3]", "{ uniform = [1e-4, 1e-3] }");
    fs::write(&path, range).unwrap();
    assert_error(SearchSpace::read(&path), &["learning_rate is a range", "add a table [search]"]);
}

#[test]
fn a_file_is_named_in_its_errors() {
    let dir = scratch();
    let path = dir.path().join("grid.toml");
    assert_error(SearchSpace::read(&path), &["grid.toml", "No such file"]);
    fs::write(&path, "version = 1\nrank = [8\n").unwrap();
    assert_error(SearchSpace::read(&path), &["grid.toml", "line"]);
    fs::write(&path, b"\xff\xfe").unwrap();
    assert_error(SearchSpace::read(&path), &["grid.toml"]);
    for (right, wrong, parts) in [
        ("[8]", "[]", ["rank is an empty list", "expected at least one"]),
        ("[8]", "[0]", ["rank is 0", "at least 1"]),
        ("[8]", "[65537]", ["rank is 65537", "at most 65536"]),
        ("[1e-3]", "[1e-46]", ["learning rate is", "within f32"]),
        ("steps = 10", "epochs = -1", ["epochs is -1", "positive"]),
        ("steps = 10", "steps = 10\nwarmup_steps = 10", ["warm-up of 10", "only 10"]),
    ] {
        fs::write(&path, SMALL.replace(right, wrong)).unwrap();
        let [first, second] = parts;
        assert_error(SearchSpace::read(&path), &["grid.toml", first, second]);
    }
    // Whether such a warm-up is too long is for the number of rows to tell.
    fs::write(&path, SMALL.replace("steps = 10", "epochs = 0.5\nwarmup_steps = 500")).unwrap();
    let space = SearchSpace::read(&path).unwrap();
    assert_error(space.jobs(2000), &["warm-up of 500"]);
    assert_eq!(space.jobs(2004).unwrap()[0].steps, 501);
    fs::write(&path, SMALL).unwrap();
    assert_eq!(SearchSpace::read(&path).unwrap().jobs(1).unwrap().len(), 1);
}

#[test]
fn what_is_written_reads_back() {
    let space = SearchSpace::from_toml(SMALL).unwrap();
    assert_eq!(SearchSpace::from_toml(&toml::to_string(&space).unwrap()).unwrap(), space);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_numbers_give_checked_jobs_or_an_error(
        rate in any::<f64>(), rank in any::<u32>(), batch in any::<u32>(), epochs in any::<f64>(), rows in 0usize..9999,
    ) {
        let lists = format!("learning_rate = [{rate:e}]\nrank = [{rank}]\nbatch = [{batch}]");
        let text = format!("version = 1\n{lists}\nepochs = {epochs:e}");
        if let Ok(jobs) = SearchSpace::from_toml(&text).and_then(|space| space.jobs(rows)) {
            prop_assert!(jobs.iter().all(|job| job.check().is_ok() && job.samples(job.steps) > 0));
        }
    }

    #[test]
    fn random_text_is_an_error(text in "\\PC{0,100}") {
        prop_assert!(SearchSpace::from_toml(&text).is_err());
    }
}
