//! Between tasks, on a cluster: what goes where, and when.
//!
//! The caller's side is `snapshot`, `plan`, `scheduler`, `error` and `check`. Inside, `problem` is a snapshot in whole
//! numbers and `schedule` a plan in them; the schedulers work between these two.

mod assign;
mod bounds;
mod check;
mod devices;
mod error;
mod faults;
mod front;
mod gantt;
mod greedy;
mod instance;
mod late;
mod list;
mod order;
mod plan;
mod problem;
mod profile;
mod random;
mod reduce;
mod replan;
mod schedule;
mod scheduler;
mod search;
mod serial;
mod snapshot;
mod time;

pub use check::{CheckError, Holder};
pub use error::{PlanError, PlanFileError, RunningFault, TaskFault};
pub use gantt::Gantt;
pub use instance::{Instance, InstanceError, InstanceOption, InstanceTask};
pub use list::{Backfill, FirstComeFirstServed, LongestFirst, ShortestFirst};
pub use plan::{PLAN_VERSION, Placement, Plan, Refused};
pub use scheduler::Scheduler;
pub use search::{Makespan, Second};
pub use snapshot::{Choice, Cluster, Node, Running, Snapshot, Task};
