//! Inherited state that is changed before `main`: SIGPIPE and SIGCHLD that are ignored, SIGXFSZ,
//! standard streams that are closed. A program that it starts gets them as they were.

use crate::progress::is_ignored;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// SIGPIPE, which the standard library sets; SIGCHLD, which, ignored, keeps children from being waited for.
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGCHLD];
static IGNORED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Before the standard library's own beginning.
extern "C" fn look() {
    for (signal, ignored) in SIGNALS.into_iter().zip(&IGNORED) {
        ignored.store(is_ignored(signal), Ordering::Relaxed);
    }
    // SAFETY: the default action calls nothing.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // A write beyond `ulimit -f` is an error instead of a silent end. A started program has the default again:
    // handlers are not inherited.
    if !is_ignored(libc::SIGXFSZ) {
        let nothing: extern "C" fn(i32) = nothing;
        // SAFETY: a function that does nothing.
        unsafe { libc::signal(libc::SIGXFSZ, nothing as libc::sighandler_t) };
    }
    for (file, closed) in (0..).zip(&CLOSED) {
        // SAFETY: reads and changes no memory.
        let flags = unsafe { libc::fcntl(file, libc::F_GETFD) };
        closed.store(flags < 0, Ordering::Relaxed);
    }
}

extern "C" fn nothing(_: i32) {}

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Restores this inherited state in the program that is started.
pub fn hand_on(command: &mut Command) -> &mut Command {
    let begin = || {
        let ignored = |(_, ignored): &(i32, &AtomicBool)| ignored.load(Ordering::Relaxed);
        for (signal, _) in SIGNALS.into_iter().zip(&IGNORED).filter(ignored) {
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        for (file, _) in (0..).zip(&CLOSED).filter(|(_, closed)| closed.load(Ordering::Relaxed)) {
            // SAFETY: what the standard library opened in its place, and the program is to begin without.
            unsafe { libc::close(file) };
        }
        Ok(())
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(begin) }
}
