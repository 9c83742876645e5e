//! `enum cw_error`, with the texts and the `errno` of each.

use cachewise_pages::PoolError;
use cachewise_pages::buddy::FreeError;
use core::ffi::{CStr, c_int};

/// Why a call is refused.
pub(crate) type Refused = (Code, String);

macro_rules! codes {
    ($($(#[$about:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        /// `enum cw_error`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Code { $($(#[$about])* $name = $value),* }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            pub(crate) fn text(self) -> &'static CStr {
                match self { $(Code::$name => $text),* }
            }
        }
    };
}

codes! {
    /// Done.
    Ok = 0, c"no error";
    /// An argument or setting.
    Invalid = 1, c"an argument or a setting is outside what is accepted";
    /// A `struct_size` of another version.
    Version = 2, c"struct_size: this library does not know a structure of that size";
    /// More memory than there is.
    OverMemory = 3, c"more capacity than memory this process may use";
    /// Nothing left.
    Exhausted = 4, c"no free block that large, and the pool may not grow so far";
    /// The system has nothing left.
    NoMemory = 5, c"the system has no memory";
    /// Any other system call.
    System = 6, c"the system refused";
    /// An order above the highest.
    Order = 7, c"above the pool's highest order";
    /// A pointer from elsewhere.
    Foreign = 8, c"not a block of this pool";
    /// A pointer into a block.
    Misaligned = 9, c"not where a block begins";
    /// Freed twice.
    Free = 10, c"a block that is free already: freed twice";
    /// Freed with another order.
    WrongOrder = 11, c"a block of another order";
    /// Destroyed.
    Closed = 12, c"not a pool, or a destroyed pool";
    /// In a signal handler.
    Reentered = 13, c"called from a signal handler that interrupted this pool";
    /// A block known to be zero was not.
    NotZero = 14, c"a block known to be zero was not, and has been withdrawn";
    /// Overwritten bookkeeping.
    Damaged = 15, c"the pool's bookkeeping was overwritten";
    /// In a forked child.
    Forked = 16, c"a pool of the parent's, in a child made by fork";
}

impl Code {
    pub(crate) fn of(error: &PoolError) -> Code {
        match error {
            PoolError::Setting { .. } | PoolError::TooLarge { .. } => Code::Invalid,
            PoolError::OverMemory { .. } => Code::OverMemory,
            PoolError::Exhausted { .. } => Code::Exhausted,
            PoolError::NoMemory { .. } => Code::NoMemory,
            PoolError::Order { .. } => Code::Order,
            PoolError::Closed => Code::Closed,
            PoolError::Forked => Code::Forked,
            PoolError::Reentered => Code::Reentered,
            PoolError::NotZero { .. } => Code::NotZero,
            PoolError::Damaged(_) => Code::Damaged,
            PoolError::Free { why, .. } => match why {
                FreeError::Foreign => Code::Foreign,
                FreeError::Misaligned | FreeError::Interior => Code::Misaligned,
                FreeError::DoubleFree => Code::Free,
                FreeError::WrongOrder { .. } => Code::WrongOrder,
            },
            // All other errors, and later ones, are the system's.
            _ => Code::System,
        }
    }

    pub(crate) fn errno(self) -> c_int {
        match self {
            Code::Exhausted | Code::NoMemory => libc::ENOMEM,
            Code::Reentered => libc::EDEADLK,
            Code::NotZero | Code::Damaged => libc::EFAULT,
            _ => libc::EINVAL,
        }
    }
}
