//! Random snapshots with every feature mixed: kinds, islands, memory, releases, options, weights, running tasks.

use alto_sched::{Choice, Cluster, Node, Running, Snapshot, Task};
use proptest::prelude::*;

const KINDS: [&str; 3] = ["A100", "H100", "L40"];

fn node() -> impl Strategy<Value = (usize, u32, Option<u64>)> {
    (0..KINDS.len(), 1..=6_u32, prop_oneof![Just(None), Just(Some(40)), Just(Some(80))])
}

fn cluster() -> impl Strategy<Value = Cluster> {
    (prop::collection::vec(node(), 1..=3), any::<bool>()).prop_map(|(nodes, twins)| {
        let mut cluster = Cluster::default();
        let mut next = 0;
        for (kind, devices, memory) in nodes.iter().chain(nodes.iter().take(usize::from(twins))) {
            // Numbers with gaps, not in order of the nodes.
            let devices = (next..next + devices).map(|device| 1000 - 3 * device).collect();
            next += 6;
            cluster.nodes.push(Node { kind: KINDS[*kind].to_owned(), devices, memory: *memory });
        }
        cluster
    })
}

/// An option that some node of the cluster can run.
fn choice(cluster: &Cluster, (node, width, duration, any_kind): (prop::sample::Index, u32, u32, bool)) -> Choice {
    let node = node.get(&cluster.nodes);
    Choice {
        kind: (!any_kind).then(|| node.kind.clone()),
        width: 1 + width % node.devices.len() as u32,
        duration: f64::from(duration),
        memory: node.memory.unwrap_or(0) / 2,
    }
}

fn task(cluster: Cluster, longest: u32) -> impl Strategy<Value = Task> {
    let option = (any::<prop::sample::Index>(), any::<u32>(), 1..=longest, prop::bool::weighted(0.2));
    let release = prop_oneof![2 => Just(0), 1 => 0..longest];
    (prop::collection::vec(option, 1..=3), release, 0..4_u8).prop_map(move |(options, release, weight)| Task {
        name: "t".to_owned(),
        release: f64::from(release),
        weight: f64::from(weight) / 2.0,
        options: options.into_iter().map(|option| choice(&cluster, option)).collect(),
    })
}

/// Up to so many tasks of up to so many seconds.
pub(crate) fn snapshot(tasks: usize, longest: u32) -> impl Strategy<Value = Snapshot> {
    let with_cluster = move |cluster: Cluster| {
        let devices: Vec<u32> = cluster.nodes.iter().flat_map(|node| node.devices.clone()).collect();
        let most = devices.len().min(2);
        let held = prop::sample::subsequence(devices, 0..=most);
        let running = prop::collection::vec((held, 0..2 * longest), 0..=2);
        let waiting = prop::collection::vec(task(cluster.clone(), longest), 0..=tasks);
        (Just(cluster), running, waiting, 0..longest / 2 + 1)
    };
    cluster().prop_flat_map(with_cluster).prop_map(|(cluster, running, waiting, now)| {
        let mut taken = Vec::new();
        let running = running.into_iter().map(|(mut devices, until)| {
            devices.retain(|device| !taken.contains(device));
            taken.extend(&devices);
            Running { name: "r".to_owned(), devices, until: f64::from(until) }
        });
        Snapshot { running: running.collect(), cluster, now: f64::from(now), waiting, ..Snapshot::default() }
    })
}

/// Up to so many tasks on one node, each in one way.
pub(crate) fn rigid(tasks: usize, devices: u32, longest: u32) -> impl Strategy<Value = Snapshot> {
    prop::collection::vec((1..=devices, 1..=longest), 0..=tasks).prop_map(move |tasks| Snapshot {
        cluster: Cluster::single("H100", devices),
        waiting: tasks.into_iter().map(|(width, duration)| Task::rigid("t", width, f64::from(duration))).collect(),
        ..Snapshot::default()
    })
}
