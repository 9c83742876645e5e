//! Hooks for large calls: the preload library knows where they come from, which is more than their
//! size.
//!
//! Not for use by programs. From a size on, the classes of the rows without a hint hold a slot more
//! than there are kernels; its function jumps to the hook that [`install`] was given. So calls
//! below that size execute what they did before, instruction by instruction, and calls above it one
//! jump more. The jump leaves the stack as the caller left it: the return address is on top,
//! because an exported function comes here by tail jumps only (`entry.rs`).
//!
//! A hook asks [`copy`] and its like for the profile's own kernel, the best temporal one, or the
//! best non-temporal one.

#[cfg(target_arch = "x86_64")]
pub(crate) mod jump;

use crate::class;
use crate::dispatch;
#[cfg(target_arch = "x86_64")]
use crate::follow;
use crate::reuse::Reuse;
use crate::rows;
#[cfg(target_arch = "x86_64")]
use crate::slots;
use crate::source;
use crate::table::{ROWS, Row};
use cachewise_kernels::kernel::{CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Operation, StoreKind, TABLE};
#[cfg(target_arch = "x86_64")]
use core::sync::atomic::Ordering;

/// What large calls jump to, in the order of [`OPERATIONS`].
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Copies.
    pub copy: CopyFn,
    /// Moves.
    pub r#move: CopyFn,
    /// Fills.
    pub fill: FillFn,
    /// Zeros.
    pub zero: ZeroFn,
}

/// The operations with temporal and non-temporal kernels.
pub const OPERATIONS: [Operation; 4] =
    [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero];

/// The rows as they were: the profile's own kernels, the temporal and the non-temporal ones.
static BEFORE: [[Row; 3]; 4] = [const { [const { Row::new() }; 3] }; 4];

const USUAL: usize = 0;
const TEMPORAL: usize = 1;
const NON_TEMPORAL: usize = 2;

/// The slots of each of [`OPERATIONS`] whose kernels are non-temporal, one bit each.
static NON_TEMPORAL_SLOTS: [[u64; 4]; 4] = {
    let mut bits = [[0; 4]; 4];
    let mut at = 0;
    while at < 4 {
        let (mut row, mut slot) = (0, 0);
        while row < TABLE.len() {
            if TABLE[row].deploy && TABLE[row].operation() as u8 == OPERATIONS[at] as u8 {
                slot += 1;
                if matches!(TABLE[row].store, StoreKind::NonTemporal | StoreKind::CacheLineZero) {
                    bits[at][slot / 64] |= 1 << (slot % 64);
                }
            }
            row += 1;
        }
        at += 1;
    }
    bits
};

/// Whether the kernel at a slot of the operation of that place is non-temporal.
fn is_non_temporal(at: usize, slot: usize) -> bool {
    NON_TEMPORAL_SLOTS
        .get(at)
        .and_then(|bits| bits.get(slot / 64))
        .is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
}

/// What the table has for a class: the profile's own kernel; the temporal one, and the non-temporal
/// one, where it has one at that size.
///
/// The temporal kernel is what the profile has for readers (`soon`), or without a hint, while that
/// is temporal. The non-temporal one is what it has where nobody reads (`never`), or without a
/// hint. Where even `never` is temporal, the profile's record says that the choice does not pay,
/// whoever reads.
fn ways_of_class(at: usize, class: usize) -> (usize, Option<usize>, Option<usize>) {
    let operation = OPERATIONS.get(at).copied().unwrap_or(Operation::Copy);
    let of = |reuse| ROWS.get(rows::row(operation, reuse)).map_or(0, |row| row.at(class));
    let (unknown, soon, never) = (of(Reuse::Unknown), of(Reuse::Soon), of(Reuse::Never));
    let mut through = [soon, unknown, never].into_iter();
    let mut around = [never, unknown, soon].into_iter();
    (
        unknown,
        through.find(|slot| *slot != 0 && !is_non_temporal(at, *slot)),
        around.find(|slot| is_non_temporal(at, *slot)),
    )
}

/// Whether a call of the operation of that place, of some size between these two, uses another
/// kernel than the profile's own, where its site was decided for non-temporal or for temporal
/// kernels.
#[cfg(all(feature = "os", target_os = "linux"))]
pub(crate) fn differs(at: usize, least: u64, most: u64, around: bool) -> bool {
    source::init();
    (class::class(least)..=class::class(most)).any(|class| {
        let (usual, through, beyond) = ways_of_class(at, class);
        // Where the profile has nothing of that kind, it is what it has of it at other sizes.
        (if around { beyond } else { through }) != Some(usual)
    })
}

/// The class of sizes that no address space has room for: every process that follows decisions pays
/// for each class below it.
#[cfg(target_arch = "x86_64")]
const BEYOND: usize = class::class(1 << 48);

/// Fills [`BEFORE`] for one operation from a class on; the first class from which there are a
/// temporal and a non-temporal kernel. Where the profile has no temporal one any more, it is the
/// last it had.
#[cfg(target_arch = "x86_64")]
fn ways(at: usize, least: usize) -> Option<usize> {
    let before = BEFORE.get(at)?;
    let mut first = None;
    let below = (0..least).rev().find_map(|class| ways_of_class(at, class).1);
    let mut last_temporal = below.unwrap_or(0);
    for class in least..BEYOND {
        let (usual, through, around) = ways_of_class(at, class);
        last_temporal = through.unwrap_or(last_temporal);
        before[USUAL].put(class, usual);
        before[TEMPORAL].put(class, last_temporal);
        before[NON_TEMPORAL].put(class, around.unwrap_or(0));
        match around {
            Some(_) if last_temporal != 0 => first = first.or(Some(class)),
            // A gap: only what is above it is hooked.
            _ => first = None,
        }
    }
    first
}

/// The slot for a call of a size from which the choice may matter: the profile's own, or what
/// `choose` says, which is told whether that is non-temporal; `Some(true)` is non-temporal. It is
/// not asked where the profile has kernels of one kind only.
#[cfg(all(feature = "os", target_os = "linux"))]
pub(crate) fn slot(at: usize, n: usize, choose: impl FnOnce(bool) -> Option<bool>) -> usize {
    let class = class::class(n as u64);
    let mut found = ways_of_class(at, class);
    if found.0 == 0 {
        source::init();
        found = ways_of_class(at, class);
    }
    let (usual, through, around) = found;
    let Some(around) = around else { return usual };
    let lower = || (0..class).rev().find_map(|class| ways_of_class(at, class).1);
    let Some(through) = through.or_else(lower) else { return usual };
    match choose(is_non_temporal(at, usual)) {
        None => usual,
        Some(true) => around,
        Some(false) => through,
    }
}

/// Has large calls jump to hooks, once per process: those of at least `least` bytes that have a
/// temporal and a non-temporal kernel. The smallest size of each operation that is hooked; `None`
/// where the profile has no non-temporal kernel.
#[cfg(target_arch = "x86_64")]
pub fn install(hooks: &Hooks, least: u64) -> [Option<u64>; 4] {
    source::init();
    let addresses = [
        hooks.copy as *mut (),
        hooks.r#move as *mut (),
        hooks.fill as *mut (),
        hooks.zero as *mut (),
    ];
    let mut from = [None; 4];
    for (at, operation) in OPERATIONS.into_iter().enumerate() {
        let Some(first) = ways(at, class::class(least)) else { continue };
        if let (Some(hook), Some(address)) = (jump::HOOKS.get(at), addresses.get(at)) {
            hook.store(*address, Ordering::Release);
        }
        if let Some(row) = ROWS.get(rows::row(operation, Reuse::Unknown)) {
            for class in first..BEYOND {
                row.put_ordered(class, slots::hooked(operation));
            }
        }
        if let Some(from) = from.get_mut(at) {
            *from = Some(class::class_start(first));
        }
    }
    follow::note_direct();
    from
}

/// Elsewhere no return address is on top of a stack.
#[cfg(not(target_arch = "x86_64"))]
pub fn install(_: &Hooks, _: u64) -> [Option<u64>; 4] {
    [None; 4]
}

fn row(operation: usize, around: Option<bool>) -> &'static Row {
    let which = match around {
        None => USUAL,
        Some(false) => TEMPORAL,
        Some(true) => NON_TEMPORAL,
    };
    &BEFORE[operation & 3][which]
}

/// Whether the profile's own kernel for a size that is hooked is non-temporal.
#[must_use]
pub fn usually_non_temporal(operation: usize, n: usize) -> bool {
    is_non_temporal(operation, row(operation, None).slot(n))
}

macro_rules! kernels {
    ($($name:ident: $type:ty, $functions:ident, $at:literal;)*) => {$(
        /// The kernel for a size that is hooked: the profile's own (`None`), or the best
        /// non-temporal or temporal one.
        #[must_use]
        pub fn $name(around: Option<bool>, n: usize) -> $type {
            let slot = row($at, around).slot(n);
            // Slots of BEFORE are those of kernels, or 0 before anything was hooked.
            dispatch::$functions.get(slot).copied().unwrap_or(dispatch::$functions[0])
        }
    )*};
}

kernels! {
    copy: CopyFn, COPY, 0;
    r#move: CopyFn, MOVE, 1;
    fill: FillFn, FILL, 2;
    zero: ZeroFn, ZERO, 3;
}
