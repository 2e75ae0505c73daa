//! The order in which a job sees its samples: a shuffle of its own for every pass over the data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The index of the row that a job with this seed sees as its `k`-th sample, from 0.
///
/// Each pass over `rows` rows is a shuffle (Fisher and Yates) drawn from ChaCha8, seeded with the job's seed and the
/// number of the pass: the same on every machine and in every version, whoever trains beside the job.
///
/// It shuffles anew at every call; a [`Dataset`](super::Dataset) remembers.
///
/// # Panics
/// If there are no rows.
pub fn sample(seed: u64, rows: usize, k: u64) -> usize {
    shuffle(seed, k / rows as u64, rows)[(k % rows as u64) as usize]
}

fn shuffle(seed: u64, epoch: u64, rows: usize) -> Vec<usize> {
    let mut key = *b"________________the order of row";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&epoch.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    let mut order: Vec<usize> = (0..rows).collect();
    for last in (1..rows).rev() {
        order.swap(last, below(&mut random, last as u64 + 1) as usize);
    }
    order
}

/// A number below `bound`, each as likely (Lemire, 2019).
fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    let uneven = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(random.next_u64()) * u128::from(bound);
        if product as u64 >= uneven {
            return (product >> 64) as u64;
        }
    }
}

/// Most row indices remembered (64 MB).
const REMEMBERED: usize = 8 << 20;

/// Shuffled row indices.
type Order = Arc<Vec<usize>>;

/// Shuffles by pass and seed, so that each is made once.
#[derive(Debug, Default)]
pub(super) struct Orders {
    known: Mutex<BTreeMap<(u64, u64), Order>>,
}

impl Orders {
    /// The rows seen as samples `first .. first + count`.
    pub(super) fn samples(&self, seed: u64, rows: usize, first: u64, count: usize) -> Vec<usize> {
        let mut samples = Vec::with_capacity(count);
        let (mut epoch, mut from) = (first / rows as u64, (first % rows as u64) as usize);
        while samples.len() < count {
            let upto = rows.min(from + count - samples.len());
            samples.extend_from_slice(&self.order(seed, rows, epoch)[from..upto]);
            (epoch, from) = (epoch + 1, 0);
        }
        samples
    }

    fn order(&self, seed: u64, rows: usize, epoch: u64) -> Order {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let order = known.entry((epoch, seed)).or_insert_with(|| Arc::new(shuffle(seed, epoch, rows))).clone();
        // The earliest passes are the first to go: jobs only move on.
        while known.len() > 1 && known.len() * rows > REMEMBERED {
            known.pop_first();
        }
        order
    }
}
