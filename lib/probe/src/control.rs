//! Memory that the probe and its asker share: a file that both have mapped. One question at a time.
//!
//! All fields are atomic, since two processes use them; `asked` and `answered` order the others.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// The signal by which a thread is asked: none of those that run-time systems take for themselves.
pub const SIGNAL: i32 = 58;
/// Room for what `malloc_info` and Python print.
pub const TEXT: usize = 1 << 20;
/// The variable that names the file.
pub const VARIABLE: &str = "CACHEWISE_PROBE";

/// Functions of allocators, by what is called there.
pub mod kind {
    /// `malloc_info`; the answer is text.
    pub const GLIBC: u32 = 1;
    /// `mallctl`: allocated, resident, in thread caches.
    pub const JEMALLOC: u32 = 2;
    /// `mi_heap_visit_blocks`, `mi_heap_get_default`, `mi_collect`: used, committed, of this thread's heap.
    pub const MIMALLOC: u32 = 3;
    /// `MallocExtension_GetNumericProperty`: allocated, heap, unmapped.
    pub const TCMALLOC: u32 = 4;
    /// `_PyObject_DebugMallocStats`, `PyGILState_Ensure`; the answer is text.
    pub const PYTHON: u32 = 5;
    /// Added to the kind of a function that gives memory back: result and nanoseconds.
    pub const TRIM: u32 = 16;
}

/// The system call in which the thread was seen, as proc(5) has it in `syscall`; zeros of one that runs.
#[repr(C)]
#[derive(Default)]
pub struct Call {
    /// Its number and six arguments.
    pub registers: [AtomicU64; 7],
    /// Stack pointer.
    pub stack: AtomicU64,
    /// The instruction behind it.
    pub at: AtomicU64,
}

/// The file.
#[repr(C)]
pub struct Control {
    /// Number of the question.
    pub asked: AtomicU32,
    /// Number of the last question that was answered.
    pub answered: AtomicU32,
    /// The process that is asked, as the process itself knows its numbers.
    pub process: AtomicI32,
    /// The thread that is asked.
    pub thread: AtomicI32,
    /// The call, of [`kind`].
    pub kind: AtomicU32,
    /// Milliseconds that a copy may take: it waits in vain where a lock is held.
    pub patience: AtomicU32,
    /// 1 where the allocator refused: a build without statistics.
    pub refused: AtomicU32,
    /// Status of the copy's end, as wait(2) has it, or the negative number of the error that prevented it.
    pub ended: AtomicI32,
    /// 1 where the thread was in the call that it was seen in.
    pub waited: AtomicU32,
    /// The functions, as `kind` lists them.
    pub addresses: [AtomicU64; 3],
    /// The answer; of text its length.
    pub numbers: [AtomicU64; 3],
    /// Address at which the thread was seen.
    pub call: Call,
    /// Printed text.
    pub text: UnsafeCell<[u8; TEXT]>,
}
