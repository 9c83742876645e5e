//! A cell: where the operands are when the operation starts, what is restored before each sample,
//! and who comes after it.

use cachewise_measure::{Contents, Delay, Destination, Level, PagePolicy, ReaderSpec};

/// The place of one operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// The level it is placed in and proved at; none is one buffer that every call uses.
    pub level: Option<Level>,
    /// Bytes into a page (into a line, where an operand is smaller than a page).
    pub offset: usize,
}

impl Placement {
    /// One buffer over and over, that many bytes into a page.
    pub const fn reused(offset: usize) -> Placement {
        Placement { level: None, offset }
    }

    pub const fn at(level: Level, offset: usize) -> Placement {
        Placement { level: Some(level), offset }
    }
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub label: String,
    /// The source's place; ignored by operations that have none.
    pub source: Placement,
    pub destination: Placement,
    /// The part of a reused destination's state that is restored.
    pub restore: Destination,
    /// The least distance in bytes from the source up to the destination; a multiple of a page.
    pub apart: usize,
    pub pages: PagePolicy,
    /// The destination's contents; none: those that the operation asks for.
    pub contents: Option<Contents>,
    /// Writes every slot of the source before anything is measured, where its bytes matter.
    pub written: Option<fn(&mut [u8])>,
    /// The reader of the destination, and what comes between.
    pub reader: Option<ReaderSpec>,
    /// Bytes of the bystander's working set.
    pub bystander: Option<usize>,
}

impl Cell {
    /// One pair of buffers over and over, left where the last call left them. The source starts 512
    /// bytes into a page where the destination starts at one, so that a load never has the low
    /// twelve bits of a store shortly before it.
    pub fn reused(label: impl Into<String>) -> Cell {
        Cell {
            label: label.into(),
            source: Placement::reused(512),
            destination: Placement::reused(0),
            restore: Destination::Repeated,
            apart: 0,
            pages: PagePolicy::Huge,
            contents: None,
            written: None,
            reader: None,
            bystander: None,
        }
    }

    fn warm_as(state: &str, destination: usize, source: usize) -> Cell {
        Cell {
            destination: Placement::reused(destination),
            source: Placement::reused(source),
            restore: Destination::Cached,
            ..Cell::reused(state)
        }
    }

    /// One pair of buffers over and over, the destination brought into the cache before each sample.
    pub fn warm() -> Cell {
        Cell::warm_as("warm", 0, 512)
    }

    /// Warm, misaligned against each other and to every vector.
    pub fn misaligned() -> Cell {
        Cell::warm_as("misaligned", 24, 512 + 9)
    }

    /// Warm, the destination 32 bytes above the source plus a power of two: the slow case of
    /// `rep movsb` on AMD CPUs.
    pub fn above_power(size: usize) -> Cell {
        let apart = size.next_power_of_two().max(cachewise_kernels::PAGE_SIZE);
        Cell { apart, ..Cell::warm_as("above 2^n", 32, 0) }
    }

    /// Warm; afterwards the destination is read, every line.
    pub fn read() -> Cell {
        Cell::warm_as("read", 0, 512).read_after(Delay::None, 1.0)
    }

    pub fn placed(source: Level, destination: Level) -> Cell {
        Cell {
            source: Placement::at(source, 512),
            destination: Placement::at(destination, 0),
            ..Cell::reused("placed")
        }
    }

    /// Operands in memory; afterwards a bystander walks what was its warm working set.
    pub fn beside(bystander: usize) -> Cell {
        Cell {
            label: "beside".to_owned(),
            bystander: Some(bystander),
            ..Cell::placed(Level::Dram, Level::Dram)
        }
    }

    /// With a reader of that fraction of the destination's lines, after `delay`.
    #[must_use]
    pub fn read_after(self, delay: Delay, touched_fraction: f64) -> Cell {
        Cell { reader: Some(ReaderSpec { touched_fraction, delay }), ..self }
    }

    /// Both at the beginning of a page, as in a kernel.
    #[must_use]
    pub fn page_aligned(mut self) -> Cell {
        (self.source.offset, self.destination.offset) = (0, 0);
        self
    }
}
