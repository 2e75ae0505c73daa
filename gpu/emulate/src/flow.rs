//! Where units that part meet again: the first instruction that all ways from a branch lead through.
//!
//! That is where compilers for GPUs let them meet. Immediate post-dominators, found as by Cooper, Harvey and Kennedy (2001)
//! on the reversed graph.

use crate::instruction::{Instruction, Operation};

/// For each instruction, where units meet that part at it; past the last instruction if they don't.
pub(crate) fn meeting_points(instructions: &[Instruction]) -> Vec<usize> {
    let end = instructions.len();
    let mut before = vec![Vec::new(); end + 1];
    for (at, instruction) in instructions.iter().enumerate() {
        for next in following(at, instruction, end) {
            before[next].push(at);
        }
    }
    let order = from_the_end(&before);
    let mut place = vec![usize::MAX; end + 1];
    for (position, &at) in order.iter().enumerate() {
        place[at] = position;
    }
    // Nobody knows yet, but for the end, which meets itself.
    let mut meeting = vec![usize::MAX; end + 1];
    meeting[end] = end;
    loop {
        let mut changed = false;
        for &at in order.iter().filter(|&&at| at != end) {
            let known = following(at, &instructions[at], end).filter(|&next| meeting[next] != usize::MAX);
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    if place[a] > place[b] { a = meeting[a] } else { b = meeting[b] }
                }
                a
            });
            let common = common.unwrap_or(usize::MAX);
            changed |= meeting[at] != common;
            meeting[at] = common;
        }
        if !changed {
            break;
        }
    }
    // What never ends meets nobody.
    meeting.truncate(end);
    meeting.into_iter().map(|at| at.min(end)).collect()
}

/// The instructions that may come next.
fn following(at: usize, instruction: &Instruction, end: usize) -> impl Iterator<Item = usize> + use<> {
    let falls = instruction.guard.is_some().then_some(at + 1);
    let (first, second) = match instruction.operation {
        Operation::Branch(target) => (target, falls),
        Operation::Exit => (end, falls),
        _ => (at + 1, None),
    };
    std::iter::once(first).chain(second)
}

/// All that lead to the end, each after everything that follows it, as far as loops allow.
fn from_the_end(before: &[Vec<usize>]) -> Vec<usize> {
    let (mut seen, mut done) = (vec![false; before.len()], Vec::new());
    let mut path = vec![(before.len() - 1, 0)];
    seen[before.len() - 1] = true;
    while let Some((at, next)) = path.last_mut() {
        let at = *at;
        match before[at].get(*next) {
            Some(&from) => {
                *next += 1;
                if !seen[from] {
                    seen[from] = true;
                    path.push((from, 0));
                }
            }
            None => {
                done.push(at);
                path.pop();
            }
        }
    }
    done.reverse();
    done
}
