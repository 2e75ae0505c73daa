//! Instructions, decoded: what a warp does at each step.
//!
//! Every register is 64 bits wide and holds its value in the lowest bits, whatever its type. Literals are registers too,
//! filled beforehand.

/// A register's number.
pub(crate) type Register = u32;
/// One register of a warp: a value for each lane.
pub(crate) type Lanes = [u64; 32];

pub(crate) type One = fn(&Lanes) -> Lanes;
pub(crate) type Two = fn(&Lanes, &Lanes) -> Lanes;
pub(crate) type Three = fn(&Lanes, &Lanes, &Lanes) -> Lanes;

/// One instruction, and the predicate that lanes must have to take part.
pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) operation: Operation,
    /// As the module spells it, for messages.
    pub(crate) text: String,
}

#[derive(Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) predicate: Register,
    pub(crate) negated: bool,
}

pub(crate) enum Operation {
    One(One, Register, Register),
    Two(Two, Register, Register, Register),
    Three(Three, Register, Register, Register, Register),
    Special(Special, Register),
    /// Parts of so many bits, the lowest first, into one register.
    Pack(Register, Vec<Register>, u32),
    /// One register into parts of so many bits; a part may be thrown away.
    Unpack(Vec<Option<Register>>, Register, u32),
    Load(Transfer),
    Store(Transfer),
    Branch(usize),
    BlockBarrier,
    WarpBarrier(Register),
    Exit,
    Shuffle {
        how: Shuffle,
        into: Register,
        of: Register,
        by: Register,
        clamp: Register,
        members: Register,
    },
    ActiveLanes(Register),
    Vote {
        how: Vote,
        into: Register,
        predicate: Register,
        members: Register,
    },
    Atomic {
        space: Space,
        bytes: usize,
        then: Two,
        into: Option<Register>,
        address: Address,
        value: Register,
    },
    MatrixLoad(MatrixTransfer),
    MatrixStore(MatrixTransfer),
    MatrixProduct {
        tile: Tile,
        halves: Halves,
        d: Vec<Register>,
        a: Vec<Register>,
        b: Vec<Register>,
        c: Vec<Register>,
    },
}

/// Values of so many bytes each between registers and consecutive places in memory.
pub(crate) struct Transfer {
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) signed: bool,
    pub(crate) registers: Vec<Register>,
    pub(crate) address: Address,
}

/// A matrix between the registers of a warp and memory.
pub(crate) struct MatrixTransfer {
    pub(crate) matrix: FragmentOf,
    pub(crate) space: Space,
    pub(crate) registers: Vec<Register>,
    pub(crate) address: Address,
    /// Entries from one row or column to the next, if not as many as there are in one.
    pub(crate) stride: Option<Register>,
}

/// Numbers that hardware knows, the axis of which is x, y or z.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Special {
    UnitInBlock(usize),
    BlockSize(usize),
    Block(usize),
    Grid(usize),
    Lane,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Space {
    /// Whichever the address is in.
    Generic,
    Global,
    Shared,
    Local,
    Parameter,
}

/// A register, if there is one, plus a number of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) base: Option<Register>,
    pub(crate) offset: i64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shuffle {
    Butterfly,
    Down,
    Index,
    Up,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Vote {
    All,
    Any,
    Ballot,
}

/// The two 16-bit formats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Halves {
    F16,
    Bf16,
}

/// Which elements of a matrix lie where in a warp's registers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FragmentOf {
    /// A matrix of a `wmma`, of 16-bit entries or of f32; hardware leaves open where they lie.
    Whole { rows: usize, columns: usize, column_major: bool, wide: bool },
    /// Tiles of 8 x 8 16-bit entries, each row at an address that a lane gives; `ldmatrix` and `stmatrix`.
    Tiles { count: usize, transposed: bool },
}

/// The shape of a product `[m, k] x [k, n]`, and whose fragments it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tile {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Of `mma`, whose fragments are laid out as the PTX manual says, rather than of `wmma`.
    pub(crate) documented: bool,
    /// Accumulators are 16-bit.
    pub(crate) narrow: bool,
}
