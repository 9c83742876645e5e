//! What the command was started with, where the standard library changes it before `main`: SIGPIPE that is
//! ignored, standard streams that are closed. A program that it starts gets them as they were.

use crate::progress::is_ignored;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Before the standard library's own beginning.
extern "C" fn look() {
    SIGPIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    for (file, closed) in (0..).zip(&CLOSED) {
        // SAFETY: reads and changes no memory.
        let flags = unsafe { libc::fcntl(file, libc::F_GETFD) };
        closed.store(flags < 0, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Has the program begin as the command did.
pub fn hand_on(command: &mut Command) -> &mut Command {
    let begin = || {
        if SIGPIPE_IGNORED.load(Ordering::Relaxed) {
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
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
