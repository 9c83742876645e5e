//! All pools of this process, by their locks' slots. None is ever freed, so that no list has to be locked.

use crate::inner::Inner;
use crate::lock::Slot;
use std::boxed::Box;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

static SLOTS: AtomicPtr<Slot<Inner>> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn all() -> impl Iterator<Item = &'static Slot<Inner>> {
    let mut next = &SLOTS;
    std::iter::from_fn(move || {
        // SAFETY: null, or a slot, which is never freed.
        let slot = unsafe { next.load(Ordering::Acquire).as_ref() }?;
        next = &slot.next;
        Some(slot)
    })
}

/// A lock for a new pool.
pub(crate) fn slot() -> &'static Slot<Inner> {
    let free = |slot: &&Slot<Inner>| {
        slot.used.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(slot) = all().find(free) {
        return slot;
    }
    let slot: &'static Slot<Inner> = Box::leak(Box::new(Slot::new()));
    let mut head = SLOTS.load(Ordering::Acquire);
    loop {
        slot.next.store(head, Ordering::Relaxed);
        let new = std::ptr::from_ref(slot).cast_mut();
        match SLOTS.compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(other) => head = other,
        }
    }
}

/// Checks whether there is a pool of that number. Only where no thread can end it meanwhile.
pub(crate) fn is_there(number: u64) -> bool {
    all().any(|slot| slot.pool.load(Ordering::Acquire) == number)
}

/// The pool of that number, if it is still there.
pub(crate) fn pool(number: u64) -> Option<Arc<Inner>> {
    let slot = all().find(|slot| slot.pool.load(Ordering::Acquire) == number)?;
    let found = slot.with(number, |place| place.upgrade())?;
    found.filter(|inner| inner.gate.id == number)
}

/// Has the threads of all pools look at what there is to do.
pub(crate) fn wake_scrubbers() {
    for number in all().map(|slot| slot.pool.load(Ordering::Acquire)).filter(|number| *number != 0)
    {
        if let Some(inner) = pool(number) {
            inner.wake_scrubber(true);
        }
    }
}
