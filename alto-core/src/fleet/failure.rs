//! A task's failure in words.

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a task's work gives; a panic in it is an error of that task alone.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // The work owns all that it touches, and nobody looks at it afterwards.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = format!("it panicked: {}", message(&*panic));
        // What was thrown may throw again when it is dropped; what comes then isn't dropped.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        words
    })
}

/// The error and what it came from.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "with something that is no text",
    }
}
