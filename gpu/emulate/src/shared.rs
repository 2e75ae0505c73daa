//! Shared memory of one block, and who touched what since the last barrier.

use crate::memory::POISON;

/// Bytes that are watched as one.
const GRAIN: usize = 2;
/// A lane number that stands for several of a warp, or for the warp as a whole.
pub(crate) const WHOLE_WARP: u8 = 0xfe;
/// A warp number that stands for several.
const SEVERAL: u8 = 0xff;

/// Who touches memory, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Access {
    pub(crate) warp: u8,
    pub(crate) lane: u8,
    /// Barriers that this warp's own units have had since the block's last.
    pub(crate) warp_barriers: u16,
    /// Barriers that the block has had; 0 is before everything.
    pub(crate) barriers: u32,
}

const NEVER: Access = Access { warp: 0, lane: 0, warp_barriers: 0, barriers: 0 };

impl Access {
    /// Whether a barrier, or the order of one unit's own instructions, lies between this and a later access.
    fn is_before(self, later: Self) -> bool {
        self.barriers != later.barriers
            || (self.warp == later.warp
                && (self.warp_barriers != later.warp_barriers || (self.lane == later.lane && self.lane != WHOLE_WARP)))
    }

    fn unit(self) -> String {
        match (self.warp, self.lane) {
            (SEVERAL, _) => "units of several warps".to_string(),
            (warp, WHOLE_WARP) => format!("units of warp {warp}"),
            (warp, lane) => format!("unit {}", u32::from(warp) * 32 + u32::from(lane)),
        }
    }
}

pub(crate) struct Shared {
    bytes: Vec<u8>,
    written: Vec<Access>,
    read: Vec<Access>,
}

impl Shared {
    pub(crate) fn new(bytes: usize) -> Self {
        let grains = bytes.div_ceil(GRAIN);
        Self { bytes: vec![POISON; bytes], written: vec![NEVER; grains], read: vec![NEVER; grains] }
    }

    /// As for a block that hasn't begun.
    pub(crate) fn clear(&mut self) {
        self.bytes.fill(POISON);
        self.written.fill(NEVER);
        self.read.fill(NEVER);
    }

    pub(crate) fn load(&mut self, at: usize, into: &mut [u8], by: Access) -> Result<(), String> {
        let range = self.range(at, into.len())?;
        for grain in range {
            let writer = self.written[grain];
            if !writer.is_before(by) {
                return Err(race(grain, by, "reads", writer, "wrote"));
            }
            let reader = &mut self.read[grain];
            *reader = if reader.is_before(by) {
                by
            } else if reader.warp == by.warp {
                Access { lane: WHOLE_WARP, ..by }
            } else {
                Access { warp: SEVERAL, ..by }
            };
        }
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }

    pub(crate) fn store(&mut self, at: usize, from: &[u8], by: Access) -> Result<(), String> {
        let range = self.range(at, from.len())?;
        // Units may agree on what they write.
        let same = self.bytes[at..at + from.len()] == *from;
        for grain in range {
            let (writer, reader) = (self.written[grain], self.read[grain]);
            if !writer.is_before(by) && !same {
                return Err(race(grain, by, "writes", writer, "wrote"));
            }
            if !reader.is_before(by) && !same {
                return Err(race(grain, by, "writes", reader, "read"));
            }
            self.written[grain] = by;
        }
        self.bytes[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn range(&self, at: usize, bytes: usize) -> Result<std::ops::Range<usize>, String> {
        if !at.is_multiple_of(bytes.max(1)) {
            return Err(format!("shared address {at} isn't a multiple of the {bytes} bytes accessed"));
        }
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes.len()) {
            return Err(format!(
                "shared address {at}, {bytes} bytes, is past the {} bytes there are",
                self.bytes.len()
            ));
        }
        Ok(at / GRAIN..(at + bytes).div_ceil(GRAIN))
    }
}

fn race(grain: usize, by: Access, does: &str, other: Access, did: &str) -> String {
    let (unit, other) = (by.unit(), other.unit());
    format!("race: {unit} {does} shared address {}, which {other} {did} with no barrier since", grain * GRAIN)
}
