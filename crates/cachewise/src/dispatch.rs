//! From operation, hint and size to a kernel: the decision table and its hot path.
//!
//! A call of more than 128 bytes is compared with one number: up to it the table's answer is known,
//! the plain AVX loop, and is jumped to directly. Above it a call finds its kernel with two
//! dependent loads and an indirect jump. There is no lock and no test of "is it initialised yet":
//!
//! ```text
//! size -> class -> ROWS[operation and hint][class] -> COPY[slot] -> jump
//!                  one byte, 0 at first               a function, COPY[0] initialises
//! ```
//!
//! The bytes, and the numbers made from them, are all that ever changes. Zero, their first value,
//! stands for a function that fills the table and then does the call's work, so the first call of a
//! process may come from any thread, from a signal handler, from a constructor before `main` or in
//! a forked child. Every other value is the number of a kernel that this CPU can run, and is stored
//! in one piece: whoever reads the table while another writes it gets the old kernel or the new
//! one, both right.
//!
//! Below 4096 bytes a class is 32 bytes wide, above that an eighth of an octave, so that no size is
//! further than 12.5 % from the edge of its class ([`size_class`]).

use crate::cpu::Identity;
use crate::defaults;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::early;
use crate::entry;
use crate::names;
use crate::profile::{self, Choice, DecisionLine, Parallel, ProfileText, ROWS as ROW_COUNT};
use crate::reuse::Reuse;
use crate::small;
use crate::source;
use crate::system;
use cachewise_kernels::table::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Function, Kernel, Operation, TABLE};
use core::hint::cold_path;
use core::ops::RangeInclusive;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod next;
mod only;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use next::{NEXT, NEXT_BYTES};
pub use only::{below_libc, use_libc, use_only};

/// Width of a class below [`LINEAR_END`], as a power of two.
const LINEAR_SHIFT: u32 = 5;
/// From here on a class is an eighth of an octave.
const LINEAR_END: u64 = 4096;
const LINEAR_CLASSES: usize = (LINEAR_END >> LINEAR_SHIFT) as usize;
pub(crate) const CLASSES: usize = LINEAR_CLASSES + 8 * (u64::BITS - LINEAR_END.ilog2()) as usize;

/// The class of a size: less than [`CLASSES`] and monotone.
#[inline(always)]
pub(crate) const fn class(n: u64) -> usize {
    if n < LINEAR_END {
        (n >> LINEAR_SHIFT) as usize
    } else {
        // Laid out of the way of the sizes that are called more often and last less long.
        cold_path();
        // n >> (octave - 3) is 8 to 15: eight classes per octave.
        let octave = 63 - n.leading_zeros();
        let eighth = (n >> (octave - 3)) as usize;
        LINEAR_CLASSES - 8 + 8 * (octave - LINEAR_END.ilog2()) as usize + eighth
    }
}

/// The smallest size of a class.
pub(crate) const fn class_start(class: usize) -> u64 {
    if class < LINEAR_CLASSES {
        (class as u64) << LINEAR_SHIFT
    } else {
        let above = class - LINEAR_CLASSES;
        let shift = LINEAR_END.ilog2() - 3 + (above / 8) as u32;
        (8 + above as u64 % 8) << shift
    }
}

/// The sizes of a class.
const fn class_sizes(class: usize) -> RangeInclusive<u64> {
    let end = if class + 1 < CLASSES { class_start(class + 1) - 1 } else { u64::MAX };
    class_start(class)..=end
}

/// The sizes that are decided together with `n`.
///
/// A decision applies to whole classes: a class belongs to the range of the profile that holds
/// its middle. A crossover at the start of a class is followed exactly.
///
/// ```
/// assert_eq!(cachewise::size_class(300), 288..=319);
/// assert_eq!(cachewise::size_class(1 << 20), 1 << 20..=(1 << 20) + (1 << 17) - 1);
/// ```
#[must_use]
pub const fn size_class(n: u64) -> RangeInclusive<u64> {
    class_sizes(class(n))
}

/// Number of a kernel among those of its operation that the library may use, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u8);

impl Slot {
    /// The initialising function.
    pub(crate) const BOOT: Slot = Slot(0);

    pub(crate) const fn is_boot(self) -> bool {
        self.0 == 0
    }
}

/// One operation's decisions with one hint: a slot for each class of sizes.
pub struct Row([AtomicU8; CLASSES]);

/// Bytes of a row.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub const ROW_BYTES: usize = size_of::<Row>();

impl Row {
    /// All classes initialise.
    pub(crate) const fn new() -> Row {
        Row([const { AtomicU8::new(0) }; CLASSES])
    }

    /// The slot of a class.
    pub(crate) fn at(&self, class: usize) -> usize {
        self.0.get(class).map_or(0, |entry| usize::from(entry.load(Ordering::Relaxed)))
    }

    /// Sets the slot of a class.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn put(&self, class: usize, slot: usize) {
        if let (Some(entry), Ok(slot)) = (self.0.get(class), u8::try_from(slot)) {
            entry.store(slot, Ordering::Relaxed);
        }
    }

    /// As [`put`](Row::put), behind everything stored before it.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn put_ordered(&self, class: usize, slot: usize) {
        if let (Some(entry), Ok(slot)) = (self.0.get(class), u8::try_from(slot)) {
            entry.store(slot, Ordering::Release);
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, n: usize) -> usize {
        // SAFETY: `class` is below CLASSES, by its last octave (63) and eighth (15); tested.
        let entry = unsafe { self.0.get_unchecked(class(n as u64)) };
        // A slot is complete in itself, so nothing has to be ordered before it.
        usize::from(entry.load(Ordering::Relaxed))
    }
}

/// The decisions: a row for each operation and hint.
pub static ROWS: [Row; ROW_COUNT] = [const { Row::new() }; ROW_COUNT];

/// Largest size of each row that is done without the table; 0 until the table is filled.
pub static DIRECT: [AtomicUsize; ROW_COUNT] = [const { AtomicUsize::new(0) }; ROW_COUNT];

/// The bit by which two addresses on different pages differ, for comparisons that may read on to
/// the end of a page: no page is smaller. All bits where none may read on: until the table is
/// filled, and all but the lowest under a checker of memory.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub static PAGE: AtomicU32 = AtomicU32::new(u32::MAX);

/// Whether comparisons of more than 256 bytes go by 32 although there are vectors of 64: 1 where the CPU
/// halves those.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub static NARROW: AtomicU8 = AtomicU8::new(0);

/// Whether `n` bytes, [`small::LIMIT`] at least, are done without the table.
#[inline(always)]
pub(crate) fn is_direct(operation: Operation, reuse: Reuse, n: usize) -> bool {
    // SAFETY: `profile::row` is below ROW_COUNT.
    let limit = unsafe { DIRECT.get_unchecked(profile::row(operation, reuse)) };
    // A limit is complete in itself, so nothing has to be ordered before it.
    n <= limit.load(Ordering::Relaxed)
}

/// Says what the CPU can do to those calls that need no decision: which entry they take, and what
/// that does whatever the table says. Before anything else that fills the table: its own
/// comparisons of names would each find it empty, and ask whether to fill it.
pub(crate) fn note_features(identity: &Identity) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        PAGE.store(if under_valgrind() { u32::MAX - 1 } else { 4096 }, Ordering::Relaxed);
        NARROW.store(u8::from(identity.leaves.halves_64_byte_vectors()), Ordering::Relaxed);
    }
    for operation in profile::OPERATIONS {
        entry::choose(operation, defaults::way(operation, identity));
        for reuse in profile::hints(operation) {
            // A limit that is larger stands.
            if let Some(limit) = DIRECT.get(profile::row(operation, *reuse)) {
                limit.fetch_max(direct_least(operation), Ordering::Relaxed);
            }
        }
    }
}

/// Sets the limits up to which no call looks a kernel up: as far as the table says, without a gap,
/// the kernel whose work the entry does by itself. And notes which ranges follow.
pub(crate) fn note_direct() {
    for operation in profile::OPERATIONS {
        for reuse in profile::hints(operation) {
            note_row(operation, profile::row(operation, *reuse));
        }
    }
}

fn note_row(operation: Operation, row: usize) {
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
    next::note(operation, row);
}

/// Whether Valgrind runs this program: its client request `RUNNING_ON_VALGRIND`, 0x1001, made by
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

/// What the entry does whatever the table says: no decision changes what is done up to here.
fn direct_least(operation: Operation) -> usize {
    if entry::way(operation) == entry::SSE2 { 0 } else { small::DIRECT_LIMIT }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
fn direct_limit(operation: Operation, row: usize) -> usize {
    let least = direct_least(operation);
    let (Some(plain), Some(Row(entries))) = (entry::continued(operation), ROWS.get(row)) else {
        return least;
    };
    let classes = class(small::DIRECT_LIMIT as u64)..CLASSES;
    let last = classes
        .take_while(|class| {
            entries.get(*class).is_some_and(|entry| entry.load(Ordering::Relaxed) == plain.0)
        })
        .last();
    last.map_or(least, |class| usize::try_from(*class_sizes(class).end()).unwrap_or(usize::MAX))
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
fn direct_limit(operation: Operation, _: usize) -> usize {
    direct_least(operation)
}

/// How many kernels of an operation the library may use.
const fn count(operation: Operation) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < TABLE.len() {
        if TABLE[at].deploy && TABLE[at].operation() as u8 == operation as u8 {
            found += 1;
        }
        at += 1;
    }
    assert!(found + 2 < u8::MAX as usize);
    found
}

/// The functions of each operation by slot, and its kernels by slot less one, as places in
/// [`TABLE`].
macro_rules! functions {
    ($($name:ident: $type:ty, $kernels:ident, $operation:ident, $boot:ident, $last:path, $libc:path;)*) => {$(
        /// The operation's kernels by slot; the first fills the table, the last but one is a hook,
        /// the last is the C library's.
        pub static $name: [$type; count(Operation::$operation) + 3] = {
            let mut functions = [$last as $type; count(Operation::$operation) + 3];
            functions[0] = $boot;
            functions[count(Operation::$operation) + 2] = $libc;
            let (mut at, mut slot) = (0, 1);
            while at < TABLE.len() {
                if let Function::$operation(function) = TABLE[at].function
                    && TABLE[at].deploy
                {
                    functions[slot] = function;
                    slot += 1;
                }
                at += 1;
            }
            functions
        };

        static $kernels: [u16; count(Operation::$operation)] = {
            let mut kernels = [0; count(Operation::$operation)];
            let (mut at, mut slot) = (0, 0);
            while at < TABLE.len() {
                if TABLE[at].deploy && matches!(TABLE[at].function, Function::$operation(_)) {
                    kernels[slot] = at as u16;
                    slot += 1;
                }
                at += 1;
            }
            kernels
        };
    )*};
}

functions! {
    COPY: CopyFn, COPY_KERNELS, Copy, boot_copy, hook::copy, libc::copy;
    MOVE: CopyFn, MOVE_KERNELS, Move, boot_move, hook::r#move, libc::r#move;
    FILL: FillFn, FILL_KERNELS, Fill, boot_fill, hook::fill, libc::fill;
    ZERO: ZeroFn, ZERO_KERNELS, Zero, boot_zero, hook::zero, libc::zero;
    COMPARE: CompareFn, COMPARE_KERNELS, Compare, boot_compare, boot_compare, libc::compare;
    EQUAL: CompareFn, EQUAL_KERNELS, Equal, boot_equal, boot_equal, libc::equal;
}

/// What the last slot holds: `system.rs`.
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::system as libc;
/// No row ever has that slot.
#[cfg(not(all(feature = "os", target_os = "linux")))]
mod libc {
    pub(super) use super::{
        boot_compare as compare, boot_copy as copy, boot_equal as equal, boot_fill as fill,
        boot_move as r#move, boot_zero as zero,
    };
}

/// What the last slot but one holds: `hooks.rs`.
#[cfg(target_arch = "x86_64")]
use crate::hooks::jump as hook;
#[cfg(not(target_arch = "x86_64"))]
mod hook {
    pub(super) use super::{
        boot_copy as copy, boot_fill as fill, boot_move as r#move, boot_zero as zero,
    };
}

/// The slot of a hook.
#[cfg(target_arch = "x86_64")]
pub(crate) fn hooked(operation: Operation) -> usize {
    slots(operation) - 2
}

/// The slot of the C library's routine.
pub(crate) fn libc_slot(operation: Operation) -> Slot {
    // `count` asserts that every number fits.
    Slot((slots(operation) - 1) as u8)
}

/// How many slots an operation has.
fn slots(operation: Operation) -> usize {
    match operation {
        Operation::Copy | Operation::CopyPages => COPY.len(),
        Operation::Move => MOVE.len(),
        Operation::Fill => FILL.len(),
        Operation::Zero | Operation::ZeroPages => ZERO.len(),
        Operation::Compare => COMPARE.len(),
        Operation::Equal => EQUAL.len(),
    }
}

/// The function for a size, by a row's number and the functions of its operation.
#[inline(always)]
fn function<F: Copy>(functions: &[F], row: usize, n: usize) -> F {
    // SAFETY: every caller passes a row that `profile::row` made, which is below ROW_COUNT.
    let row = unsafe { ROWS.get_unchecked(row) };
    // SAFETY: a row holds 0, what `slot_of` made for a kernel of its operation, or what `hooked` or
    // `libc_slot` is for it: each is one of these functions.
    unsafe { *functions.get_unchecked(row.slot(n)) }
}

/// The copy for at least [`small::LIMIT`] bytes. So the five below.
#[inline(always)]
pub(crate) fn copy(reuse: Reuse, n: usize) -> CopyFn {
    function(&COPY, profile::row(Operation::Copy, reuse), n)
}

#[inline(always)]
pub(crate) fn r#move(reuse: Reuse, n: usize) -> CopyFn {
    function(&MOVE, profile::row(Operation::Move, reuse), n)
}

#[inline(always)]
pub(crate) fn fill(reuse: Reuse, n: usize) -> FillFn {
    function(&FILL, profile::row(Operation::Fill, reuse), n)
}

#[inline(always)]
pub(crate) fn zero(reuse: Reuse, n: usize) -> ZeroFn {
    function(&ZERO, profile::row(Operation::Zero, reuse), n)
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn compare(n: usize) -> CompareFn {
    function(&COMPARE, profile::row(Operation::Compare, Reuse::Unknown), n)
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn equal(n: usize) -> CompareFn {
    function(&EQUAL, profile::row(Operation::Equal, Reuse::Unknown), n)
}

/// Slot of the kernel that every CPU of this build can run: for calls that come while the table is
/// being filled, by another thread or below this very call.
const fn fallback(operation: Operation) -> usize {
    let x86 = cfg!(all(target_arch = "x86_64", target_feature = "sse2"));
    // Without a row of that name, the reference's.
    let slots = [
        names::slot(operation, if x86 { b"sse2" } else { b"gpr64" }),
        names::slot(operation, b"bytes"),
    ];
    assert!(slots[1].0 != 0, "every operation has its reference kernel");
    if slots[0].0 != 0 { slots[0].0 as usize } else { slots[1].0 as usize }
}

/// Fills the table, if nobody is doing so, and gives what the call is to be done with. The hint of
/// the first call is not known here; it is a hint.
fn boot<F: Copy>(functions: &[F], operation: Operation, n: usize, fallback: usize) -> F {
    source::init();
    let slot = ROWS.get(profile::row(operation, Reuse::Unknown)).map_or(0, |row| row.slot(n));
    let slot = if slot == 0 { fallback } else { slot };
    // SAFETY: not 0, and so either `slot_of`'s or `fallback`'s, both of this operation.
    unsafe { *functions.get_unchecked(slot) }
}

/// What fills the table, by the name of its functions.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod boots {
    pub use super::{
        boot_compare as COMPARE, boot_copy as COPY, boot_equal as EQUAL, boot_fill as FILL,
        boot_move as MOVE, boot_zero as ZERO,
    };
}

/// # Safety
/// As [`CopyFn`].
#[cold]
pub unsafe extern "C" fn boot_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::r#move(dst, src, n) };
    }
    let kernel = boot(&COPY, Operation::Copy, n, const { fallback(Operation::Copy) });
    // SAFETY: the caller's promise; the table holds kernels that this CPU can run.
    unsafe { kernel(dst, src, n) }
}

/// # Safety
/// As [`CopyFn`], overlap allowed.
#[cold]
pub unsafe extern "C" fn boot_move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::r#move(dst, src, n) };
    }
    let kernel = boot(&MOVE, Operation::Move, n, const { fallback(Operation::Move) });
    // SAFETY: as in `boot_copy`.
    unsafe { kernel(dst, src, n) }
}

/// # Safety
/// As [`FillFn`].
#[cold]
pub unsafe extern "C" fn boot_fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::fill(dst, byte, n) };
    }
    let kernel = boot(&FILL, Operation::Fill, n, const { fallback(Operation::Fill) });
    // SAFETY: as in `boot_copy`.
    unsafe { kernel(dst, byte, n) }
}

/// # Safety
/// As [`ZeroFn`].
#[cold]
pub unsafe extern "C" fn boot_zero(dst: *mut u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::fill(dst, 0, n) };
    }
    let kernel = boot(&ZERO, Operation::Zero, n, const { fallback(Operation::Zero) });
    // SAFETY: as in `boot_copy`.
    unsafe { kernel(dst, n) }
}

/// # Safety
/// As [`CompareFn`].
#[cold]
pub unsafe extern "C" fn boot_compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::compare(a, b, n) };
    }
    let kernel = boot(&COMPARE, Operation::Compare, n, const { fallback(Operation::Compare) });
    // SAFETY: as in `boot_copy`.
    unsafe { kernel(a, b, n) }
}

/// # Safety
/// As [`CompareFn`].
#[cold]
pub unsafe extern "C" fn boot_equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if !early::is_relocated() {
        // SAFETY: the caller's promise.
        return unsafe { early::compare(a, b, n) };
    }
    let kernel = boot(&EQUAL, Operation::Equal, n, const { fallback(Operation::Equal) });
    // SAFETY: as in `boot_copy`.
    unsafe { kernel(a, b, n) }
}

/// The kernels of an operation that the library may use, with their slots. Page operations use
/// those of their byte operation.
pub(crate) fn kernels(operation: Operation) -> impl Iterator<Item = (Slot, &'static Kernel)> {
    let slots = (1..=u8::MAX).map(Slot);
    slots.zip(places(operation).iter().filter_map(|at| TABLE.get(usize::from(*at))))
}

/// Their places in [`TABLE`].
fn places(operation: Operation) -> &'static [u16] {
    match operation {
        Operation::Copy | Operation::CopyPages => &COPY_KERNELS,
        Operation::Move => &MOVE_KERNELS,
        Operation::Fill => &FILL_KERNELS,
        Operation::Zero | Operation::ZeroPages => &ZERO_KERNELS,
        Operation::Compare => &COMPARE_KERNELS,
        Operation::Equal => &EQUAL_KERNELS,
    }
}

/// The kernel of a slot.
pub(crate) fn kernel(operation: Operation, Slot(slot): Slot) -> Option<&'static Kernel> {
    let place = places(operation).get(usize::from(slot).checked_sub(1)?)?;
    TABLE.get(usize::from(*place))
}

/// A kernel's slot; `None` where the library may not use it.
pub(crate) fn slot_of(kernel: &Kernel) -> Option<Slot> {
    let mut all = kernels(kernel.operation());
    all.find(|(_, known)| known.name == kernel.name).map(|(slot, _)| slot)
}

/// Lets a row use a kernel of its operation for the classes whose middle is in `from..=to`.
pub(crate) fn set(row: usize, from: u64, to: u64, slot: Slot) {
    let Some(Row(entries)) = ROWS.get(row) else { return };
    let middle = |class: usize| {
        let (start, end) = class_sizes(class).into_inner();
        start + (end - start) / 2
    };
    let (first, last) = (class(from), class(to));
    let first = if middle(first) < from { first + 1 } else { first };
    let end = if middle(last) > to { last } else { last + 1 };
    for entry in entries.get(first..end).unwrap_or(&[]) {
        entry.store(slot.0, Ordering::Relaxed);
    }
}

/// What a line of a profile decides, its names looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) operation: Operation,
    pub(crate) reuse: Reuse,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) routine: Routine,
}

/// What it says to do it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routine {
    Kernel(Slot),
    /// The C library's routine; where there is none this kernel, or the computed default.
    Libc(Option<Slot>),
}

/// Follows a profile that has been [checked](ProfileText::check); returns the rows it decides, one
/// bit each.
pub(crate) fn follow(profile: &ProfileText<'_>, identity: &Identity) -> u16 {
    let entries = profile.entries().filter_map(|line| {
        let way = entry::find(line.operation, line.name, identity.features)?;
        Some((line.operation, way))
    });
    let decisions = profile.decisions().filter_map(|line| {
        let routine = match line.choice(identity.features).ok()? {
            Choice::Kernel(kernel) => Routine::Kernel(slot_of(kernel)?),
            Choice::Libc { nearest } => Routine::Libc(nearest.and_then(slot_of)),
        };
        let DecisionLine { operation, reuse, from, to, .. } = line;
        Some(Resolved { operation, reuse, from, to, routine })
    });
    follow_lines(profile.parallel(), entries, decisions, identity)
}

/// The same of lines that need no more checking.
pub(crate) fn follow_lines(
    parallel: impl Iterator<Item = Parallel>,
    entries: impl Iterator<Item = (Operation, u8)>,
    decisions: impl Iterator<Item = Resolved>,
    identity: &Identity,
) -> u16 {
    crate::parallel::follow(parallel);
    for (operation, way) in entries {
        entry::choose(operation, way);
    }
    let mut decided = 0;
    for Resolved { operation, reuse, from, to, routine } in decisions {
        let slot = match routine {
            Routine::Kernel(slot) => slot,
            Routine::Libc(_) if system::found() => libc_slot(operation),
            Routine::Libc(Some(nearest)) => nearest,
            Routine::Libc(None) => defaults::temporal(operation, identity),
        };
        let row = profile::row(operation, reuse);
        decide(operation, row, from..=to, slot, identity);
        decided |= 1 << row;
    }
    decided
}

/// Has a row use a slot for some sizes.
fn decide(
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
    if slot == libc_slot(operation) && from < libc_from {
        let to = to.min(libc_from - 1);
        set(row, from, to, defaults::below_libc(operation, identity));
    }
}

/// The kernel that a row uses for a size, and the sizes around it that use the same.
pub(crate) fn look_up(operation: Operation, reuse: Reuse, n: u64) -> Option<Found> {
    let Row(entries) = ROWS.get(profile::row(operation, reuse))?;
    // Below the first size that a profile decides, somebody else decides.
    let (least, most) = if n < profile::FIRST_SIZE {
        (small::LIMIT as u64, profile::FIRST_SIZE - 1)
    } else {
        (profile::FIRST_SIZE, u64::MAX)
    };
    let at = |class: usize| entries.get(class).map(|entry| entry.load(Ordering::Relaxed));
    let here = class(n);
    let slot = at(here)?;
    let low = (class(least)..here).rev().take_while(|class| at(*class) == Some(slot)).last();
    let high = (here..=class(most)).take_while(|class| at(*class) == Some(slot)).last();
    let kernel = match slot == libc_slot(operation).0 {
        true => None,
        false => Some(self::kernel(operation, Slot(slot))?),
    };
    Some(Found {
        kernel,
        from: least.max(*class_sizes(low.unwrap_or(here)).start()),
        to: *class_sizes(high.unwrap_or(here)).end(),
    })
}

/// What [`look_up`] finds.
pub(crate) struct Found {
    /// `None`: the C library's routine.
    pub(crate) kernel: Option<&'static Kernel>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn classes_are_monotone_contiguous_and_narrow() {
        assert_eq!(class_start(0), 0);
        for at in 0..CLASSES {
            let (start, end) = class_sizes(at).into_inner();
            assert_eq!((class(start), class(end)), (at, at));
            assert!(at + 1 == CLASSES || class(end + 1) == at + 1);
            assert!(start < 256 || (end - start) / 8 <= start / 8 / 8, "{start}..={end}");
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn every_operation_has_a_slot_for_each_of_its_kernels_and_a_fallback() {
        for operation in profile::OPERATIONS {
            let slots = kernels(operation).map(|(slot, kernel)| {
                assert!(kernel.deploy && kernel.operation() == operation);
                assert_eq!(slot_of(kernel), Some(slot));
                slot.0
            });
            assert!(slots.eq(1..=count(operation) as u8));
            let (_, kernel) = kernels(operation).nth(fallback(operation) - 1).expect("a kernel");
            assert!(kernel.runs_on(cachewise_kernels::Features::detect()), "{}", kernel.name);
        }
    }
}
