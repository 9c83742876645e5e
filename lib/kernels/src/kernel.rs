//! The type of a kernel: its operation, its calling contract, and what its row in the
//! [table](crate::table) says of it.

use crate::isa::Features;
use core::fmt;

/// `memcpy`'s contract: copies `n` bytes between buffers that do not overlap, returns `dst`.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes, they do not overlap, and the CPU has the
/// kernel's required features.
pub type CopyFn = unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;

/// `memmove`'s contract: as [`CopyFn`], but the buffers may overlap.
///
/// # Safety
/// As [`CopyFn`], overlap allowed.
pub type MoveFn = CopyFn;

/// `memset`'s contract: stores the low byte of `byte` in `n` bytes, returns `dst`.
///
/// # Safety
/// `dst` is writable for `n` bytes, and the CPU has the kernel's required features.
pub type FillFn = unsafe extern "C" fn(dst: *mut u8, byte: i32, n: usize) -> *mut u8;

/// Zeroes `n` bytes, returns `dst`.
///
/// # Safety
/// As [`FillFn`].
pub type ZeroFn = unsafe extern "C" fn(dst: *mut u8, n: usize) -> *mut u8;

/// `memcmp`'s contract: negative, zero or positive by the first differing byte, unsigned.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and the CPU has the kernel's required features.
pub type CompareFn = unsafe extern "C" fn(a: *const u8, b: *const u8, n: usize) -> i32;

/// 1 when the `n` bytes are equal, 0 when they are not.
///
/// # Safety
/// As [`CompareFn`].
pub type EqualFn = CompareFn;

/// Copies a block of `PAGE_SIZE << order` bytes (seed 003.2).
///
/// # Safety
/// Both blocks are valid for that many bytes, aligned to `PAGE_SIZE`, and do not overlap; the CPU
/// has the kernel's required features.
pub type CopyPagesFn = unsafe extern "C" fn(dst: *mut u8, src: *const u8, order: u32);

/// Zeroes a block of `PAGE_SIZE << order` bytes (seed 003.2).
///
/// # Safety
/// `dst` is writable for that many bytes and aligned to `PAGE_SIZE`; the CPU has the kernel's
/// required features.
pub type ZeroPagesFn = unsafe extern "C" fn(dst: *mut u8, order: u32);

/// Operation on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Copy between buffers that do not overlap.
    Copy,
    /// Copy between buffers that may overlap.
    Move,
    /// Store one byte value everywhere.
    Fill,
    /// Store zero everywhere.
    Zero,
    /// Ordered comparison.
    Compare,
    /// Equality.
    Equal,
    /// Copy a block of 2^order pages.
    CopyPages,
    /// Zero a block of 2^order pages.
    ZeroPages,
}

impl Operation {
    /// Every operation, in declaration order.
    pub const ALL: [Operation; 8] = [
        Operation::Copy,
        Operation::Move,
        Operation::Fill,
        Operation::Zero,
        Operation::Compare,
        Operation::Equal,
        Operation::CopyPages,
        Operation::ZeroPages,
    ];

    /// The first part of a kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Copy => "copy",
            Operation::Move => "move",
            Operation::Fill => "fill",
            Operation::Zero => "zero",
            Operation::Compare => "compare",
            Operation::Equal => "equal",
            Operation::CopyPages => "copy-pages",
            Operation::ZeroPages => "zero-pages",
        }
    }

    /// The operation of that [name](Operation::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Stores of a kernel's main loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// No stores (comparisons).
    None,
    /// Through the cache.
    Temporal,
    /// Non-temporal; a store fence ends the kernel where such stores are ordered less than
    /// others (x86-64). On Arm it is a hint that the CPU may ignore.
    NonTemporal,
    /// A string instruction, which chooses for itself.
    String,
    /// A whole zeroed cache line at once, past the caches; a store fence ends the kernel.
    CacheLineZero,
    /// A whole zeroed block at once, in the cache, without reading it from memory (`dcbz`,
    /// `dc zva`).
    BlockZero,
}

impl StoreKind {
    /// The word used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::None => "-",
            StoreKind::Temporal => "temporal",
            StoreKind::NonTemporal => "nt",
            StoreKind::String => "string",
            StoreKind::CacheLineZero => "clzero",
            StoreKind::BlockZero => "block zero",
        }
    }
}

/// Prefetch of the source before it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Not at all; the hardware's own prefetcher remains.
    None,
    /// `prefetchnta`, this many bytes ahead.
    Nta(u32),
    /// `prefetcht0`, this many bytes ahead.
    T0(u32),
    /// `prefetcht1`, this many bytes ahead.
    T1(u32),
    /// Real loads, one per line, of a block of this many bytes before the block is copied.
    Block(u32),
    /// A touch of the source, to be kept (`dcbt`, `prfm pldl1keep`), this many bytes ahead.
    Load(u32),
    /// A touch of the destination (`dcbtst`, `prfm pstl1keep`), this many bytes ahead.
    Store(u32),
    /// A touch of a source that is needed once (`prfm pldl1strm`), this many bytes ahead.
    Stream(u32),
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefetch::None => f.write_str("-"),
            Prefetch::Nta(distance) => write!(f, "nta+{distance}"),
            Prefetch::T0(distance) => write!(f, "t0+{distance}"),
            Prefetch::T1(distance) => write!(f, "t1+{distance}"),
            Prefetch::Block(bytes) => write!(f, "block {bytes}"),
            Prefetch::Load(distance) => write!(f, "load+{distance}"),
            Prefetch::Store(distance) => write!(f, "store+{distance}"),
            Prefetch::Stream(distance) => write!(f, "stream+{distance}"),
        }
    }
}

/// The registers that hold the data on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterClass {
    /// General-purpose integer registers.
    Gpr,
    /// The x87 stack.
    X87,
    /// 8-byte MMX registers.
    Mmx,
    /// 16-byte SSE registers.
    Xmm,
    /// 32-byte AVX registers.
    Ymm,
    /// 64-byte AVX-512 registers.
    Zmm,
    /// 16-byte VMX (AltiVec) registers of POWER.
    Vmx,
    /// 16-byte VSX registers of POWER.
    Vsx,
    /// 16-byte NEON registers of Arm.
    Q,
}

impl RegisterClass {
    /// The word used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RegisterClass::Gpr => "gpr",
            RegisterClass::X87 => "x87",
            RegisterClass::Mmx => "mmx",
            RegisterClass::Xmm => "xmm",
            RegisterClass::Ymm => "ymm",
            RegisterClass::Zmm => "zmm",
            RegisterClass::Vmx => "vmx",
            RegisterClass::Vsx => "vsx",
            RegisterClass::Q => "q",
        }
    }

    /// Bytes one register carries.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            RegisterClass::Gpr | RegisterClass::X87 | RegisterClass::Mmx => 8,
            RegisterClass::Xmm | RegisterClass::Vmx | RegisterClass::Vsx | RegisterClass::Q => 16,
            RegisterClass::Ymm => 32,
            RegisterClass::Zmm => 64,
        }
    }
}

/// A kernel's entry point; the variant is the operation's calling contract.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// See [`CopyFn`].
    Copy(CopyFn),
    /// See [`MoveFn`].
    Move(MoveFn),
    /// See [`FillFn`].
    Fill(FillFn),
    /// See [`ZeroFn`].
    Zero(ZeroFn),
    /// See [`CompareFn`].
    Compare(CompareFn),
    /// See [`EqualFn`].
    Equal(EqualFn),
    /// See [`CopyPagesFn`].
    CopyPages(CopyPagesFn),
    /// See [`ZeroPagesFn`].
    ZeroPages(ZeroPagesFn),
}

impl Function {
    /// The operation this entry point performs.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self {
            Function::Copy(_) => Operation::Copy,
            Function::Move(_) => Operation::Move,
            Function::Fill(_) => Operation::Fill,
            Function::Zero(_) => Operation::Zero,
            Function::Compare(_) => Operation::Compare,
            Function::Equal(_) => Operation::Equal,
            Function::CopyPages(_) => Operation::CopyPages,
            Function::ZeroPages(_) => Operation::ZeroPages,
        }
    }

    /// The address of the entry point, for disassembly and symbol look-up.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        match *self {
            Function::Copy(f) | Function::Move(f) => f as *const u8,
            Function::Fill(f) => f as *const u8,
            Function::Zero(f) => f as *const u8,
            Function::Compare(f) | Function::Equal(f) => f as *const u8,
            Function::CopyPages(f) => f as *const u8,
            Function::ZeroPages(f) => f as *const u8,
        }
    }
}

/// One row of the [table](crate::TABLE).
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Canonical name, `operation.technique[.nt][.prefetch][.shape]`.
    pub name: &'static str,
    /// Features that the CPU must offer.
    pub requires: Features,
    /// Stores of the main loop.
    pub store: StoreKind,
    /// Prefetch of the source.
    pub prefetch: Prefetch,
    /// Loads before the matching stores, in registers; 0 where the notion does not apply.
    pub grouping: u8,
    /// The registers that carry the data.
    pub registers: RegisterClass,
    /// True if the library may choose it; the others exist to be measured.
    pub deploy: bool,
    /// Names from the source documents.
    pub aliases: &'static [&'static str],
    /// One line of prose.
    pub about: &'static str,
    /// The routine.
    pub function: Function,
}

impl Kernel {
    /// Returns its operation on memory.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.function.operation()
    }

    /// The name without its operation, which the same technique shares across operations.
    #[must_use]
    pub fn technique(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, technique)| technique)
    }

    /// Returns whether a CPU with these features can run it.
    #[must_use]
    pub const fn runs_on(&self, available: Features) -> bool {
        available.contains(self.requires)
    }

    /// Returns whether its own instructions store non-temporally.
    #[must_use]
    pub const fn is_non_temporal(&self) -> bool {
        matches!(self.store, StoreKind::NonTemporal | StoreKind::CacheLineZero)
    }

    /// Returns whether `name` is its canonical name or one of its aliases.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}
