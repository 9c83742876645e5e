//! What a site does to memory.

/// The operations that have two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Buffers that do not overlap.
    Copy = 0,
    /// Buffers that may.
    Move = 1,
    /// One byte, not 0.
    Fill = 2,
    /// Zeros.
    Zero = 3,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] =
        [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero];

    /// The name that profiles and tables use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Copy => "copy",
            Operation::Move => "move",
            Operation::Fill => "fill",
            Operation::Zero => "zero",
        }
    }

    /// The operation of that [name](Operation::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }
}
