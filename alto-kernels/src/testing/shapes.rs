//! One table of awkward batches, which every kernel runs.

use std::ops::Range;

use crate::lanes::{LoraLane, LoraLanes};

/// A batch, and the dimensions of the layers it goes through.
///
/// Its default is narrow layers and no tokens.
#[derive(Debug, Clone)]
pub struct Shape {
    /// What is awkward about it.
    pub name: &'static str,
    /// Tokens of each row, for attention and rotary positions.
    pub row_lengths: Vec<usize>,
    /// Tokens, packed rows and scale of each adapter.
    pub lanes: Vec<LoraLane>,
    /// Rows of the packed factors, which lanes may leave unused.
    pub ranks: usize,
    /// Width that layers take.
    pub d_in: usize,
    /// Width that they give.
    pub d_out: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Rows of the head.
    pub vocabulary: usize,
    /// Of this many tokens, the last has a target; 0 for none.
    pub label_every: usize,
}

impl Shape {
    /// Tokens of all rows together.
    pub fn tokens(&self) -> usize {
        self.row_lengths.iter().sum()
    }

    /// The lanes as kernels take them.
    pub fn lora_lanes(&self) -> LoraLanes {
        LoraLanes::new(self.lanes.clone())
    }

    /// One id or none for each token; different tokens ask for different ids, the first and the last among them.
    pub fn targets(&self) -> Vec<Option<u32>> {
        let labelled = |t: usize| self.label_every > 0 && t % self.label_every == self.label_every - 1;
        (0..self.tokens())
            .map(|t| labelled(t).then_some(((t + 1) * (self.vocabulary - 1) % self.vocabulary) as u32))
            .collect()
    }

    /// The first token of each row and the one past its last.
    pub fn rows(&self) -> Vec<Range<usize>> {
        let ends = self.row_lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        ends.zip(&self.row_lengths).map(|(end, length)| end - length..end).collect()
    }
}

/// Lanes end to end, of so many tokens and of such a rank each.
fn lanes(sizes: &[(usize, usize)]) -> Vec<LoraLane> {
    let (mut rows, mut ranks) = (0, 0);
    let lane = |(i, &(tokens, rank)): (usize, &(usize, usize))| {
        let lane = LoraLane { rows: rows..rows + tokens, ranks: ranks..ranks + rank, scale: SCALES[i % SCALES.len()] };
        (rows, ranks) = (rows + tokens, ranks + rank);
        lane
    };
    sizes.iter().enumerate().map(lane).collect()
}

/// Alpha over the rank or its root, of either sign, and an adapter switched off.
const SCALES: [f32; 5] = [2.0, 0.3, -1.0, 5.656_854, 0.0];

fn lane(rows: Range<usize>, ranks: Range<usize>, scale: f32) -> LoraLane {
    LoraLane { rows, ranks, scale }
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            name: "",
            row_lengths: vec![],
            lanes: vec![],
            ranks: 0,
            d_in: 3,
            d_out: 5,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            vocabulary: 7,
            label_every: 1,
        }
    }
}

/// The table: no tokens, one, unequal ranks, empty lanes, no multiple of any tile, many lanes, one long row, any order.
pub fn shapes() -> Vec<Shape> {
    vec![
        Shape { name: "no tokens and no lanes", ..Shape::default() },
        Shape {
            name: "no tokens, lanes waiting",
            row_lengths: vec![0],
            lanes: lanes(&[(0, 2), (0, 3)]),
            ranks: 5,
            ..Shape::default()
        },
        Shape {
            name: "everything is one",
            row_lengths: vec![1],
            lanes: lanes(&[(1, 1)]),
            ranks: 1,
            d_in: 1,
            d_out: 1,
            heads: 1,
            kv_heads: 1,
            head_dim: 2,
            vocabulary: 1,
            label_every: 1,
        },
        Shape {
            name: "one token",
            row_lengths: vec![1],
            lanes: lanes(&[(1, 8)]),
            ranks: 8,
            d_in: 17,
            ..Shape::default()
        },
        Shape { name: "no lanes", row_lengths: vec![3, 4], ranks: 4, label_every: 0, ..Shape::default() },
        Shape {
            name: "an empty lane between others",
            row_lengths: vec![2, 0, 3],
            lanes: lanes(&[(2, 4), (0, 8), (3, 2)]),
            ranks: 14,
            label_every: 2,
            ..Shape::default()
        },
        Shape {
            name: "a lane that doesn't target the layer",
            row_lengths: vec![2, 3, 1],
            lanes: lanes(&[(2, 4), (3, 0), (1, 2)]),
            ranks: 6,
            label_every: 3,
            ..Shape::default()
        },
        Shape {
            name: "unequal ranks",
            row_lengths: vec![5, 9, 1, 17, 2, 33],
            lanes: lanes(&[(5, 1), (9, 128), (1, 3), (17, 16), (2, 64), (33, 2)]),
            ranks: 214,
            d_in: 33,
            d_out: 70,
            heads: 6,
            kv_heads: 2,
            head_dim: 6,
            vocabulary: 65,
            label_every: 4,
        },
        Shape {
            name: "ranks larger than the width",
            row_lengths: vec![6, 4],
            lanes: lanes(&[(6, 33), (4, 7)]),
            ranks: 40,
            d_in: 5,
            d_out: 3,
            ..Shape::default()
        },
        Shape {
            name: "no multiple of any tile",
            row_lengths: vec![17, 33, 70, 9],
            lanes: lanes(&[(17, 9), (33, 17), (79, 33)]),
            ranks: 59,
            d_in: 129,
            d_out: 70,
            heads: 3,
            kv_heads: 1,
            head_dim: 18,
            vocabulary: 257,
            ..Shape::default()
        },
        Shape {
            name: "multiples of every tile",
            row_lengths: vec![64, 128, 64],
            lanes: lanes(&[(64, 16), (128, 16), (64, 32)]),
            ranks: 64,
            d_in: 64,
            d_out: 128,
            heads: 4,
            kv_heads: 4,
            head_dim: 64,
            vocabulary: 512,
            label_every: 2,
        },
        Shape {
            name: "wider than long",
            row_lengths: vec![3, 4],
            lanes: lanes(&[(3, 4), (4, 9)]),
            ranks: 13,
            d_in: 530,
            d_out: 1_030,
            heads: 5,
            kv_heads: 5,
            head_dim: 130,
            vocabulary: 2_051,
            ..Shape::default()
        },
        Shape {
            name: "64 lanes",
            row_lengths: (0..64).map(|i| 1 + i % 3).collect(),
            lanes: lanes(&(0..64).map(|i| (1 + i % 3, 1 + i % 8)).collect::<Vec<_>>()),
            ranks: 288,
            d_in: 40,
            d_out: 24,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            vocabulary: 33,
            label_every: 3,
        },
        Shape {
            name: "one long row beside tiny ones",
            row_lengths: vec![1, 300, 2, 1, 0, 3],
            lanes: lanes(&[(1, 8), (300, 8), (2, 4), (1, 16), (0, 8), (3, 1)]),
            ranks: 45,
            d_in: 129,
            d_out: 130,
            heads: 2,
            kv_heads: 2,
            head_dim: 32,
            vocabulary: 1_000,
            ..Shape::default()
        },
        Shape {
            name: "tokens in no lane, ranks of nobody",
            row_lengths: vec![4, 3, 5, 2],
            lanes: vec![lane(4..7, 2..5, 0.5), lane(9..12, 9..10, 2.0)],
            ranks: 12,
            d_in: 9,
            d_out: 11,
            label_every: 5,
            ..Shape::default()
        },
        Shape {
            name: "lanes in no order",
            row_lengths: vec![7, 2, 6],
            lanes: vec![lane(9..15, 3..5, 0.5), lane(0..7, 9..12, 2.0), lane(7..9, 0..3, 1.5)],
            ranks: 12,
            d_in: 10,
            d_out: 6,
            ..Shape::default()
        },
    ]
}
