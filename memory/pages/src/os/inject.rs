//! System calls that fail on demand, in the whole process. For tests.
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// A call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Call {
    /// Mapping memory.
    Map,
    /// Making memory of address space, as a pool grows.
    Open,
    /// Giving pages back.
    Discard,
    /// Populating pages.
    Populate,
    /// Advice on huge pages.
    Huge,
    /// Mapping with explicit huge pages.
    Hugetlb,
    /// Starting a thread.
    Thread,
}

const CALLS: usize = 7;
static LEFT: [AtomicU32; CALLS] = [const { AtomicU32::new(0) }; CALLS];
static ANSWER: [AtomicI32; CALLS] = [const { AtomicI32::new(0) }; CALLS];

/// Lets the next `times` calls of that kind fail with the error number `errno`.
pub fn fail(call: Call, times: u32, errno: i32) {
    ANSWER[call as usize].store(errno, Ordering::SeqCst);
    LEFT[call as usize].store(times, Ordering::SeqCst);
}

static KEEPS: AtomicBool = AtomicBool::new(false);

/// Lets the system say that it dropped pages, and keep them; or not any more.
pub fn keep_pages(keep: bool) {
    KEEPS.store(keep, Ordering::SeqCst);
}

pub(crate) fn keeps_pages() -> bool {
    KEEPS.load(Ordering::SeqCst)
}

static LOAD: AtomicU32 = AtomicU32::new(u32::MAX);

/// Sets the load average that is read, in hundredths; `None` restores the real one.
pub fn load(hundredths: Option<u32>) {
    LOAD.store(hundredths.unwrap_or(u32::MAX), Ordering::SeqCst);
}

pub(crate) fn injected_load() -> Option<f64> {
    let hundredths = LOAD.load(Ordering::SeqCst);
    (hundredths != u32::MAX).then(|| f64::from(hundredths) / 100.0)
}

pub(crate) fn check(call: Call) -> Result<(), Errno> {
    let due = LEFT[call as usize]
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    match due {
        Ok(_) => Err(Errno::from_raw_os_error(ANSWER[call as usize].load(Ordering::SeqCst))),
        Err(_) => Ok(()),
    }
}
