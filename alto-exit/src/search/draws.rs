//! Random numbers that follow from a seed.

/// SplitMix64 (Steele, Lea and Flood, 2014).
///
/// Written out here so that a seed in a file means the same points in every later version.
#[derive(Debug)]
pub(super) struct Draws(u64);

const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    /// The stream of this number among those of the seed.
    pub(super) fn new(seed: u64, stream: usize) -> Self {
        // The seed is mixed before the stream is added, so that no two seeds share streams.
        Self(mix(mix(seed.wrapping_add(STRIDE)).wrapping_add((stream as u64).wrapping_mul(STRIDE))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STRIDE);
        mix(self.0)
    }

    /// At least 0 and under 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of `0..count`, for a count of at least 1.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count - 1)
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
