//! A random case of any operation, which proptest draws and the fuzzer's bytes spell: `corpus` replays the fuzzers' files.
//!
//! The bytes are little-endian fields in the order of the struct, zero where the input ends early, reduced to the range
//! a field has, so that every input is a case: a length takes 3 bytes, a place 2, the seed 2, a distance 3, the byte 4;
//! edits are what the last two are, 4 bytes each.

use super::Checked;
use super::arena::{Arena, Call, MARGIN};
use cachewise_kernels::{Features, Kernel, Operation, PAGE_SIZE, TABLE};
use std::cell::RefCell;

/// The longest buffer of a case. Beyond 64 KiB, so that every block size has a second block.
pub const LONGEST: usize = 70_000;

/// Two buffers of the longest length overlapping by a byte, or none, and room to shift them.
const ROOM: usize = 2 * LONGEST + 4 * MARGIN;

/// Position of a buffer in its guarded room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub edge: Edge,
    /// Bytes away from that edge, or from the alignment to 64 in the middle; below 64. Of a block of pages, pages below 8.
    pub shift: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Start,
    Middle,
    End,
}

impl Place {
    /// Offset of n bytes in a room, in units.
    pub fn offset(self, room: usize, n: usize, unit: usize) -> usize {
        let shift = usize::from(if unit > 1 { self.shift % 8 } else { self.shift }) * unit;
        match self.edge {
            Edge::Start => shift,
            Edge::Middle => MARGIN.next_multiple_of(unit) + shift,
            Edge::End => room - n - shift,
        }
    }
}

/// Parameters of one call; an operation uses those that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub n: usize,
    /// Of overlapping buffers, the span that both cover.
    pub dst: Place,
    pub src: Place,
    pub seed: u16,
    /// How far a move's destination is above its source in one room; 0 for two rooms.
    pub distance: isize,
    pub byte: i32,
    /// Bytes of the right side that differ: place modulo n, and the byte.
    pub edits: Vec<(usize, u8)>,
}

/// Checks the case that the bytes spell on every kernel of the operations that this CPU can run.
///
/// # Panics
/// When a kernel and the oracle disagree.
pub fn replay(operations: &[Operation], bytes: &[u8]) {
    let (case, available) = (Case::decode(bytes), Features::detect());
    let wanted = TABLE.iter().filter(|kernel| operations.contains(&kernel.operation()));
    for kernel in wanted.filter(|kernel| kernel.runs_on(available)) {
        if let Err(complaint) = case.check(kernel) {
            panic!("{complaint}\nwith {case:?}");
        }
    }
}

impl Case {
    pub fn decode(bytes: &[u8]) -> Case {
        let mut rest = Reader(bytes);
        let (n, dst, src, seed) = (rest.length(), rest.place(), rest.place(), rest.take());
        let mut edits = Vec::new();
        let mut of_edits = Reader(rest.0);
        while !of_edits.0.is_empty() && edits.len() < 64 {
            edits.push((of_edits.length(), of_edits.take::<1>()[0]));
        }
        let [a, b, c] = rest.take();
        let far = (u32::from_le_bytes([a, b, c & 0x7f, 0]) as usize % (LONGEST + 1)) as isize;
        let distance = if c & 0x80 == 0 { far } else { -far };
        let (seed, byte) = (u16::from_le_bytes(seed), i32::from_le_bytes(rest.take()));
        Case { n, dst, src, seed, distance, byte, edits }
    }

    /// Runs the kernel and the oracle on it, in this thread's rooms.
    pub fn check(&self, kernel: &'static Kernel) -> Checked {
        thread_local! {
            static ARENA: RefCell<Option<(u16, Arena)>> = const { RefCell::new(None) };
        }
        let seed = self.seed % 16;
        let (known, mut arena) =
            ARENA.take().unwrap_or_else(|| (seed, Arena::new(ROOM, seed.into())));
        if known != seed {
            arena = Arena::new(ROOM, seed.into());
        }
        let checked = self.check_in(&mut arena, kernel);
        // What a kernel did wrong may still be in the rooms.
        ARENA.set(checked.is_ok().then_some((seed, arena)));
        checked
    }

    fn check_in(&self, arena: &mut Arena, kernel: &'static Kernel) -> Checked {
        let (room, operation) = (arena.room(), kernel.operation());
        let pages = matches!(operation, Operation::CopyPages | Operation::ZeroPages);
        let (n, unit) = match pages {
            true => (PAGE_SIZE << (self.n / PAGE_SIZE).checked_ilog2().unwrap_or(0), PAGE_SIZE),
            false => (self.n, 1),
        };
        let within = operation == Operation::Move && self.distance != 0;
        let (mut dst, mut src) = (self.dst.offset(room, n, unit), self.src.offset(room, n, unit));
        if within {
            let far = self.distance.unsigned_abs();
            let low = self.dst.offset(room, n + far, 1);
            (dst, src) = if self.distance < 0 { (low, low + far) } else { (low + far, low) };
        }
        let mut edits = Vec::new();
        for &(at, byte) in self.edits.iter().filter(|_| n > 0) {
            edits.push((at % n, arena.source(src + at % n), byte));
        }
        let edits = &edits[..];
        arena.check(kernel, &Call { n, dst, src, within, byte: self.byte, edits })
    }
}

/// Takes fields off the front of the input.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.0.len().min(N);
        let mut field = [0; N];
        field[..taken].copy_from_slice(&self.0[..taken]);
        self.0 = &self.0[taken..];
        field
    }

    fn length(&mut self) -> usize {
        let [a, b, c] = self.take();
        u32::from_le_bytes([a, b, c, 0]) as usize % (LONGEST + 1)
    }

    fn place(&mut self) -> Place {
        let [edge, shift] = self.take();
        let edge = [Edge::Start, Edge::Middle, Edge::End][usize::from(edge) % 3];
        Place { edge, shift: shift % 64 }
    }
}
