//! The slots of an operation: the numbers by which a row of the table names what does a call.
//!
//! | slot | what it stands for |
//! |---|---|
//! | 0 | nothing is decided yet: the function that fills the table (`dispatch.rs`) |
//! | 1 to the number of kernels | the kernels that the library may use, in the order of [`TABLE`] |
//! | the next | the C library's routine (`system.rs`) |
//! | further ones | of copies and moves: either, by how the operands lie (`operands.rs`) |

use crate::names;
use cachewise_kernels::{Function, Kernel, Operation, TABLE};

/// Number of a kernel among those of its operation that the library may use, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u8);

impl Slot {
    /// The initialising function.
    pub(crate) const BOOT: Slot = Slot(0);
}

/// The number of kernels of an operation that the library may use.
pub(crate) const fn count(operation: Operation) -> usize {
    let (mut at, mut found) = (0, 0);
    while at < TABLE.len() {
        if TABLE[at].deploy && TABLE[at].operation() as u8 == operation as u8 {
            found += 1;
        }
        at += 1;
    }
    assert!(found + 1 < u8::MAX as usize);
    found
}

/// The kernels of each operation by slot less one, as places in [`TABLE`].
macro_rules! kernels {
    ($($kernels:ident, $operation:ident;)*) => {$(
        const $kernels: [u16; count(Operation::$operation)] = {
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

kernels! {
    COPY_KERNELS, Copy;
    MOVE_KERNELS, Move;
    FILL_KERNELS, Fill;
    ZERO_KERNELS, Zero;
    COMPARE_KERNELS, Compare;
    EQUAL_KERNELS, Equal;
}

/// The kernels of an operation that the library may use, with their slots. Page operations use
/// those of their byte operation.
pub(crate) fn kernels(operation: Operation) -> impl Iterator<Item = (Slot, &'static Kernel)> {
    let slots = (1..=u8::MAX).map(Slot);
    slots.zip(places(operation).iter().filter_map(|at| TABLE.get(usize::from(*at))))
}

/// Their places in [`TABLE`].
const fn places(operation: Operation) -> &'static [u16] {
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

/// The place in [`TABLE`] of a slot's kernel, when this is compiled.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for `operands.rs`"))]
pub(crate) const fn place(operation: Operation, Slot(slot): Slot) -> Option<usize> {
    let places = places(operation);
    let at = slot as usize;
    if at == 0 || at > places.len() { None } else { Some(places[at - 1] as usize) }
}

/// The place in [`TABLE`] of the first copy.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for `operands.rs`"))]
pub(crate) const FIRST_COPY: usize = COPY_KERNELS[0] as usize;

/// The slot of the C library's routine.
pub(crate) fn libc_slot(operation: Operation) -> Slot {
    // `count` asserts that every number fits.
    Slot((places(operation).len() + 1) as u8)
}

/// The slot of an operation's kernel of that technique, all that follows the first dot of its name;
/// [`Slot::BOOT`] where there is none that the library may use. For tables made when this is compiled.
pub(crate) const fn named(operation: Operation, technique: &[u8]) -> Slot {
    let (mut at, mut number) = (0, 0);
    while at < TABLE.len() {
        if TABLE[at].deploy && TABLE[at].operation() as u8 == operation as u8 {
            number += 1;
            if let Some((_, found)) = names::split(TABLE[at].name.as_bytes(), b'.')
                && names::equal(found, technique)
            {
                return Slot(number);
            }
        }
        at += 1;
    }
    Slot::BOOT
}
