//! How a cube multiplies `C += L R`: sizes, and how operands lie in shared memory. [`accumulators`](super::accumulators) has
//! the device's part.

/// Rows and columns of a fragment, and its depth.
pub(super) const FRAGMENT: usize = 16;
/// Units of a plane, where there are matrix units.
pub(super) const PLANE: usize = 32;
/// Rows and columns of a unit's micro tile.
pub(super) const MICRO: usize = 4;
/// Bytes that vectors and fragments in shared memory are aligned to.
pub(super) const ALIGNMENT: usize = 32;

/// How a cube multiplies; known when a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tile {
    /// Units of a cube.
    pub(super) units: usize,
    /// Rows of `C` that leave the registers at a time; with matrix units, a row of fragments for each plane.
    pub(super) strip: usize,
    /// How many strips `C` has.
    pub(super) strips: usize,
    /// Columns of `C`.
    pub(super) n: usize,
    /// Products that are staged at a time.
    pub(super) k: usize,
    /// Which way round `L` is staged.
    pub(super) left: Order,
    /// Which way round `R` is staged.
    pub(super) right: Order,
    /// Entries that a unit loads at a time.
    pub(super) vector: usize,
    /// Entries between the staged rows, against conflicts of memory banks.
    pub(super) gap: usize,
    /// Vectors that a unit holds in registers at most while it loads others.
    pub(super) held: usize,
    /// Whether operands are staged as matrix units want them: vectors stored whole, zeros around what there is.
    pub(super) padded: bool,
    /// Whether matrix units multiply.
    pub(super) matrix: bool,
}

impl Tile {
    /// Rows of `C`.
    pub(super) fn m(&self) -> usize {
        self.strip * self.strips
    }

    /// Entries between rows of the strip through which `C` leaves.
    pub(super) fn out_stride(&self) -> usize {
        self.n + 4
    }

    /// Entries of that strip.
    pub(super) fn out_len(&self) -> usize {
        self.strip * self.out_stride()
    }

    /// Micro tiles of a strip.
    pub(super) fn micro_tiles(&self) -> usize {
        (self.strip / MICRO) * (self.n / MICRO)
    }

    /// Micro tiles of a strip that one unit has.
    pub(super) fn micro_tiles_per_unit(&self) -> usize {
        self.micro_tiles().div_ceil(self.units)
    }

    /// Fragments of `C` that a plane has.
    pub(super) fn fragments(&self) -> usize {
        if self.matrix { self.strips * (self.n / FRAGMENT) } else { 0 }
    }

    /// Entries of `C` that a unit has, of the plain variant; an array can't be empty.
    pub(super) fn registers(&self) -> usize {
        if self.matrix { 1 } else { self.strips * self.micro_tiles_per_unit() * MICRO * MICRO }
    }

    /// `L` in shared memory.
    pub(super) fn left_block(&self) -> Block {
        match self.left {
            Order::Straight => Block { rows: self.m(), columns: self.k, stride: self.k + self.gap },
            Order::Transposed => Block { rows: self.k, columns: self.m(), stride: self.m() + self.gap },
        }
    }

    /// `R` in shared memory.
    pub(super) fn right_block(&self) -> Block {
        match self.right {
            Order::Straight => Block { rows: self.k, columns: self.n, stride: self.n + self.gap },
            Order::Transposed => Block { rows: self.n, columns: self.k, stride: self.k + self.gap },
        }
    }

    /// Entries from a row of `L` to the next, and from a column to the next.
    pub(super) fn left_steps(&self) -> (usize, usize) {
        match self.left {
            Order::Straight => (self.left_block().stride, 1),
            Order::Transposed => (1, self.left_block().stride),
        }
    }

    /// Entries from a column of `R` to the next, and from a row to the next.
    pub(super) fn right_steps(&self) -> (usize, usize) {
        match self.right {
            Order::Straight => (1, self.right_block().stride),
            Order::Transposed => (self.right_block().stride, 1),
        }
    }
}

/// A matrix in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: usize,
}

impl Block {
    /// Entries that it takes.
    pub(super) fn len(&self) -> usize {
        self.rows * self.stride
    }
}

/// Which way round an operand is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Order {
    /// As it is multiplied: `[m, k]` or `[k, n]`.
    Straight,
    /// `[k, m]` or `[n, k]`.
    Transposed,
}
