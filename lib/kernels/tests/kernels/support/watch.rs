//! The kernel that runs right now and its buffers, so that a failure, and a crash above all, can say
//! so: a kernel that leaves its buffer dies of SIGSEGV at a guard page, inside machine code.

use super::guarded::Guarded;
use std::cell::Cell;
use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Once;

/// The call in progress on this thread.
#[derive(Clone, Copy)]
pub struct Call {
    pub kernel: &'static str,
    pub dst: usize,
    /// The source; for comparisons the left side, `dst` being the right one; 0 where there is none.
    pub src: usize,
    pub n: usize,
    /// A fill's byte, a comparison's first difference or a page block's order; -1 where there is
    /// none.
    pub detail: i64,
}

const NO_CALL: Call = Call { kernel: "", dst: 0, src: 0, n: 0, detail: -1 };

thread_local! {
    // Constant and without destructor, so that a signal handler may read them.
    static CALL: Cell<Call> = const { Cell::new(NO_CALL) };
    static ROOMS: Cell<[(usize, usize); 2]> = const { Cell::new([(0, 0); 2]) };
}

/// Notes the call that is about to be made.
#[inline]
pub fn calling(call: Call) {
    CALL.set(call);
}

/// Notes the guarded buffers that this thread's calls use.
pub fn buffers(dst: &Guarded, src: &Guarded) {
    let pair = |range: Range<usize>| (range.start, range.end);
    ROOMS.set([pair(dst.addresses()), pair(src.addresses())]);
}

/// The last call noted on this thread, for a message.
pub fn last_call() -> impl fmt::Display {
    Described(CALL.get())
}

struct Described(Call);

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        write!(f, "{}: n {}", call.kernel, call.n)?;
        describe(f, "dst", call.dst, call.n)?;
        if call.src != 0 {
            describe(f, "src", call.src, call.n)?;
            if call.dst.abs_diff(call.src) < call.n {
                write!(f, ", distance {}", call.dst as i64 - call.src as i64)?;
            }
        }
        if call.detail != -1 { write!(f, ", detail {}", call.detail) } else { Ok(()) }
    }
}

fn describe(f: &mut fmt::Formatter<'_>, name: &str, start: usize, n: usize) -> fmt::Result {
    write!(f, ", {name} % 64 = {}", start % 64)?;
    let end = start + n;
    for (low, high) in ROOMS.get() {
        if (low..=high).contains(&start) && end <= high {
            if start - low < 64 {
                write!(f, " ({} after the guard page)", start - low)?;
            } else if high - end < 64 {
                write!(f, " (ends {} before the guard page)", high - end)?;
            }
            return Ok(());
        }
    }
    Ok(())
}

/// From now on a crash prints the call in progress before it ends the process.
pub fn explain_crashes() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            // SAFETY: all zero bytes are a valid sigaction: no handler, no flag, empty mask.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            let handler: extern "C" fn(i32, *const libc::siginfo_t, *const libc::c_void) = crashed;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
            // SAFETY: the action is initialised and its handler calls only what a signal handler
            // may: formatting into its own stack, write and _exit.
            let result =
                unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
            assert_eq!(result, 0, "a handler for signal {signal}");
        }
        if std::process::id() == 1 {
            // SAFETY: the function may run at exit: it calls nothing but tcdrain.
            unsafe { libc::atexit(drain) };
        }
    });
}

/// Lets what was printed leave the serial port. An emulated machine's only process needs this: the
/// machine ends with it.
extern "C" fn drain() {
    // SAFETY: tcdrain takes any descriptor, refuses one that is no terminal, and is
    // async-signal-safe.
    unsafe { libc::tcdrain(2) };
}

/// A line on the stack: a signal handler may not allocate.
struct Line {
    bytes: [u8; 400],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().take(self.bytes.len() - self.used) {
            self.bytes[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}

extern "C" fn crashed(signal: i32, info: *const libc::siginfo_t, _context: *const libc::c_void) {
    // SAFETY: the system passes a valid siginfo to a handler that asked for one (SA_SIGINFO).
    let info = unsafe { &*info };
    // SAFETY: the four signals handled are the ones for which the address is set.
    let address = unsafe { info.si_addr() }.addr();
    let call = CALL.get();
    let mut line = Line { bytes: [0; 400], used: 0 };
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        _ => "SIGFPE",
    };
    let _ = write!(line, "\n{name} in {}, at address {address:#x}", Described(call));
    for (buffer, start) in [("dst", call.dst), ("src", call.src)] {
        if start != 0 && address.wrapping_sub(start).wrapping_add(1 << 20) < call.n + (2 << 20) {
            let _ = write!(line, " = {buffer} {:+}", address as i64 - start as i64);
        }
    }
    let _ = line.write_str("\n");
    // SAFETY: the line's used bytes are initialised; write is async-signal-safe.
    unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.used) };
    drain();
    // SAFETY: _exit is async-signal-safe; nothing of this process is worth keeping.
    unsafe { libc::_exit(101) };
}
