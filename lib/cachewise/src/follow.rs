//! Following decisions: a profile's lines, and what the CPU can do, written into the table and into the
//! numbers that are made from it.

use crate::choice;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::class::{CLASSES, class, class_sizes};
use crate::cpu::{Caches, Identity};
use crate::defaults;
use crate::operands;
use crate::profile::{self, Choice, DecisionLine, ProfileText};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::ranges;
use crate::rows::{DIRECT_LIMIT, OPERATIONS, hints, row};
use crate::slots::{Slot, libc_slot, slot_of};
use crate::system;
use crate::table::{DIRECT, ROWS, leave, set};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::table::{NARROW, PAGE};
use cachewise_kernels::Operation;
use core::cell::OnceCell;
use core::ops::RangeInclusive;
use core::sync::atomic::Ordering;

/// Says what the CPU can do to those calls that need no decision: which entry they take, and what
/// that does whatever the table says. Before anything else that fills the table: its own
/// comparisons of names would each find it empty, and ask whether to fill it.
pub(crate) fn note_features(identity: &Identity) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        PAGE.store(if under_valgrind() { -2 } else { 4096 - 16 }, Ordering::Relaxed);
        NARROW.store(u8::from(identity.leaves.halves_64_byte_vectors()), Ordering::Relaxed);
        let halves = if identity.leaves.halves_32_byte_vectors() { 128 } else { 0 };
        choice::CHOSEN.halves.store(halves, Ordering::Relaxed);
    }
    let variant = defaults::variant(identity);
    for operation in OPERATIONS {
        choice::choose(operation, variant);
        for reuse in hints(operation) {
            // A limit that is larger stands.
            if let Some(limit) = DIRECT.get(row(operation, *reuse)) {
                limit.fetch_max(direct_least(operation), Ordering::Relaxed);
            }
        }
    }
}

/// Sets the limits up to which no call looks a kernel up: as far as the table says, without a gap,
/// the kernel whose work the entry does by itself. And notes which ranges follow.
pub(crate) fn note_direct() {
    for operation in OPERATIONS {
        for reuse in hints(operation) {
            note_row(operation, row(operation, *reuse));
        }
    }
}

pub(crate) fn note_row(operation: Operation, row: usize) {
    if let Some(limit) = DIRECT.get(row) {
        let direct = direct_limit(operation, row);
        // At that size itself, which is a power of two for fills, the C library's routine is still
        // the same loop of vectors: its string instructions begin above it.
        let stores = !matches!(operation, Operation::Compare | Operation::Equal);
        let first = profile::libc_from(operation) as usize;
        let libc = ROWS.get(row).map_or(0, |row| row.slot(first));
        let theirs = stores && direct == first - 1 && libc == usize::from(libc_slot(operation).0);
        limit.store(direct + usize::from(theirs), Ordering::Relaxed);
    }
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    ranges::note(operation, row);
}

/// Returns whether Valgrind runs this program: its client request `RUNNING_ON_VALGRIND`, 0x1001, made by
/// instructions that change nothing on a CPU (Valgrind manual, 3.1 "The Client Request mechanism").
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn under_valgrind() -> bool {
    let request = [0x1001u64, 0, 0, 0, 0, 0];
    let answer: u64;
    // SAFETY: rdi is rotated by 128 bits in all and rbx exchanged with itself; Valgrind reads the
    // six words at rax and answers in rdx.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") &raw const request,
            inout("rdx") 0u64 => answer,
            options(nostack),
        );
    }
    answer != 0
}

/// Sizes that the entry serves whatever the table says: no decision changes what is done up to here.
fn direct_least(operation: Operation) -> usize {
    if choice::variant(operation) == choice::SSE2 { 0 } else { DIRECT_LIMIT }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn direct_limit(operation: Operation, row: usize) -> usize {
    let least = direct_least(operation);
    let (Some(plain), Some(entries)) = (choice::continued(operation), ROWS.get(row)) else {
        return least;
    };
    let classes = class(DIRECT_LIMIT as u64)..CLASSES;
    let last = classes.take_while(|class| entries.at(*class) == usize::from(plain.0)).last();
    last.map_or(least, |class| usize::try_from(*class_sizes(class).end()).unwrap_or(usize::MAX))
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
fn direct_limit(operation: Operation, _: usize) -> usize {
    direct_least(operation)
}

/// Follows a profile that has been [checked](ProfileText::check), and computed defaults where it decides
/// nothing; returns the rows it decides, one bit each.
pub(crate) fn follow(
    profile: &ProfileText<'_>,
    identity: &Identity,
    caches: &OnceCell<Caches>,
) -> u16 {
    let mut decided = 0;
    for line in profile.decisions() {
        let DecisionLine { operation, reuse, from, to, .. } = line;
        let slot = match line.choice(identity.features) {
            Ok(Choice::Kernel(kernel)) => slot_of(kernel),
            Ok(Choice::OrLibc(kernel)) if system::found() => operands::slot_of(kernel),
            Ok(Choice::OrLibc(kernel)) => slot_of(kernel),
            Ok(Choice::Libc { .. }) if system::found() => Some(libc_slot(operation)),
            Ok(Choice::Libc { nearest }) => nearest.and_then(slot_of),
            // Beyond this CPU.
            Err(_) => None,
        };
        let slot = slot.unwrap_or_else(|| defaults::temporal(operation, identity));
        let row = row(operation, reuse);
        decide(operation, row, from..=to, slot, identity);
        decided |= 1 << row;
    }
    defaults::fill(decided, identity, caches);
    decided
}

/// Has a row use a slot for some sizes.
pub(crate) fn decide(
    operation: Operation,
    row: usize,
    sizes: RangeInclusive<u64>,
    slot: Slot,
    identity: &Identity,
) {
    let (from, to) = sizes.into_inner();
    set(row, from, to, slot);
    // Below, the look-up and the jump cost more than a C library's routine can gain
    // (`docs/decisions/entry-stubs.md`).
    let libc_from = profile::libc_from(operation);
    if from < libc_from {
        let to = to.min(libc_from - 1);
        let is_left = slot == libc_slot(operation);
        leave(row, from, to, is_left);
        if is_left {
            set(row, from, to, defaults::below_libc(operation, identity));
        }
    }
}
