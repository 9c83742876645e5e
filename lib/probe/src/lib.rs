//! `libcachewise_probe.so`: says what the allocators of a program hold, when it is asked from outside, and changes nothing
//! until then: no thread, no call that stands in for another, one handler of a signal.
//!
//! The asker (`cachewise_advise::probe`) finds the functions of every allocator that is mapped, writes their addresses into
//! a file that both have mapped ([`control`]), and signals a thread. Functions that take locks must not run in a handler;
//! here they run in a copy of the process (clone(2) without shared memory, as fork(2) makes it), on a stack of its own and
//! for a limited time. A lock that was held at that moment stays held in the copy: it ends without an answer, the program
//! goes on, and the question is asked again. So whatever the functions do, the program does not see it.
//!
//! Memory is given back in the process itself only if the copy of it has done so to the end, and if the thread sat in a
//! system call that waits: it then holds no lock that the functions need, and was in the middle of nothing. The call is made
//! again with its arguments, so that the program does not see that it was interrupted; one with a relative time limit may
//! wait that much longer.
#![no_std]
#![warn(missing_docs)]

#[cfg(panic = "unwind")]
extern crate std;

mod calls;
pub mod control;

use control::{Control, SIGNAL, VARIABLE, kind};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of the copy's stack; the program's own memory does not grow by it, since only the copy writes there.
const STACK: usize = 256 << 10;

#[repr(align(64))]
struct Stack(core::cell::UnsafeCell<[u8; STACK]>);
// SAFETY: only copies use it, each its own.
unsafe impl Sync for Stack {}

static COPYS_STACK: Stack = Stack(core::cell::UnsafeCell::new([0; STACK]));
static CONTROL: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());

#[cfg(panic = "abort")]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process, or the copy.
    unsafe { libc::abort() }
}

// The precompiled core, built to unwind, names it in its unwind tables.
#[cfg(panic = "abort")]
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
);

/// Maps the file and takes the signal, before `main`. Where either fails the program cannot be asked, which the asker sees.
extern "C" fn constructor() {
    // SAFETY: of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid as long as the thread is.
    let before = unsafe { *errno };
    if let Some(control) = mapped() {
        CONTROL.store(control, Ordering::Release);
        take_signal();
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

fn mapped() -> Option<*mut Control> {
    let mut name = [0u8; 32];
    name[..VARIABLE.len()].copy_from_slice(VARIABLE.as_bytes());
    // SAFETY: the name ends with 0; the dynamic linker has no other thread run yet.
    let path = unsafe { libc::getenv(name.as_ptr().cast()) };
    if path.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    let file = unsafe { libc::open(path, libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY) };
    if file < 0 {
        return None;
    }
    let (length, access) = (size_of::<Control>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping, at a place that the kernel chooses.
    let place = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0) };
    // SAFETY: opened above.
    let _ = unsafe { libc::close(file) };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

/// Takes the signal if nobody has it.
fn take_signal() {
    // SAFETY: all zeros are a valid value.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks.
    let asked = unsafe { libc::sigaction(SIGNAL, ptr::null(), &mut before) };
    if asked != 0 || before.sa_sigaction != libc::SIG_DFL {
        return;
    }
    let mut own = before;
    own.sa_sigaction = answer as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    own.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: no other handler runs in the middle of this one.
    let _ = unsafe { libc::sigfillset(&mut own.sa_mask) };
    // SAFETY: a handler that keeps to what a handler may do.
    let _ = unsafe { libc::sigaction(SIGNAL, &own, ptr::null_mut()) };
}

/// The handler: answers if this thread is asked.
extern "C" fn answer(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: null, or mapped as long as the process is.
    let Some(control) = (unsafe { CONTROL.load(Ordering::Acquire).as_ref() }) else { return };
    let asked = control.asked.load(Ordering::Acquire);
    // SAFETY: it takes nothing.
    let process = unsafe { libc::getpid() };
    // SAFETY: a number alone.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if control.answered.load(Ordering::Acquire) == asked
        || control.process.load(Ordering::Relaxed) != process
        || control.thread.load(Ordering::Relaxed) != thread
    {
        return;
    }
    // SAFETY: of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid as long as the thread is.
    let before = unsafe { *errno };
    let ended = copied(control);
    control.ended.store(ended, Ordering::Relaxed);
    let waited = calls::waited(&control.call, context);
    control.waited.store(u32::from(waited), Ordering::Relaxed);
    if ended == 0 && waited && control.kind.load(Ordering::Relaxed) > kind::TRIM {
        calls::one(control);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
    control.answered.store(asked, Ordering::Release);
}

/// Asks in a copy: how that ended, or minus the error.
fn copied(control: &Control) -> c_int {
    // SAFETY: one past the end of it.
    let top = unsafe { COPYS_STACK.0.get().cast::<u8>().add(STACK) };
    let argument = ptr::from_ref(control).cast_mut().cast();
    // No signal at its end: `wait` of the program does not see a child that has none (wait(2), `__WCLONE`).
    // SAFETY: without CLONE_VM it is a copy, which has the stack for itself.
    let copy = unsafe { libc::clone(in_the_copy, top.cast(), 0, argument) };
    let error = || {
        // SAFETY: it takes nothing.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: this thread's own, valid as long as the thread is.
        -unsafe { *errno }
    };
    if copy < 0 {
        return error();
    }
    let mut ended = 0;
    loop {
        // SAFETY: a child of this process alone.
        let found = unsafe { libc::waitpid(copy, &mut ended, libc::__WALL) };
        match found {
            _ if found == copy => return ended,
            _ if error() == -libc::EINTR => {}
            _ => return error(),
        }
    }
}

/// All that happens in the copy; its end is what it returns.
extern "C" fn in_the_copy(control: *mut c_void) -> c_int {
    // SAFETY: shared with the process of which this is a copy.
    let control = unsafe { &*control.cast::<Control>() };
    // The program's own handlers would report what fails here.
    let fatal = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
    // SAFETY: all zeros are a valid set.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    for signal in fatal.into_iter().chain([libc::SIGALRM, libc::SIGTRAP, libc::SIGSYS]) {
        // SAFETY: of the copy alone.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: a set.
        unsafe { libc::sigaddset(&mut all, signal) };
    }
    // SAFETY: of the copy alone.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &all, ptr::null_mut()) };
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it leaves no core file.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let patience = libc::c_long::from(control.patience.load(Ordering::Relaxed).max(1) as i32);
    let once = libc::timeval { tv_sec: patience / 1000, tv_usec: patience % 1000 * 1000 };
    let limit = libc::itimerval { it_interval: never, it_value: once };
    // SAFETY: ends the copy where it waits for a lock that nobody in it holds.
    unsafe { setitimer(0, &limit, ptr::null_mut()) };
    calls::one(control);
    0
}

unsafe extern "C" {
    fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
    fn fmemopen(buffer: *mut c_void, size: usize, mode: *const c_char) -> *mut libc::FILE;
}

/// A file over memory; null where there is none.
fn memory_file(place: &mut [u8]) -> *mut libc::FILE {
    const WRITE: &CStr = c"w";
    // SAFETY: as long as the slice is, in which the caller closes it.
    unsafe { fmemopen(place.as_mut_ptr().cast(), place.len(), WRITE.as_ptr()) }
}
