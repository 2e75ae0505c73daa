//! Exit policies in files.

use std::fs;
use std::path::Path;

use alto_core::exit::{Policy, PolicyFile};

/// Reads the policy that a JSON file holds, its settings checked.
///
/// # Errors
/// Names the file, and what is wrong in it with its place.
pub fn read_policy(path: &Path) -> Result<Policy, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("can't read {shown}: {error}"))?;
    let file: PolicyFile = serde_json::from_str(&text).map_err(|error| format!("{shown} is not a policy: {error}"))?;
    Ok(file.policy)
}
