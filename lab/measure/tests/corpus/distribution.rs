//! A distribution of any bytes: refused in one line, or every draw within what it says. The fuzz target and
//! `cargo test` both run this.

use cachewise_measure::distributions::Distribution;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};

pub fn replay(bytes: &[u8]) {
    // SAFETY: a name that ends with zero; it makes a descriptor or fails.
    let descriptor = unsafe { libc::memfd_create(c"distribution".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(descriptor >= 0, "no memory for a file");
    // SAFETY: just opened, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes).expect("a file in memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let read = match Distribution::read(path.as_ref()) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..100 {
        let n = read.size(&mut random);
        assert!(n <= read.largest());
        let span = n + 8192;
        assert!(read.place(n, span, &mut random) <= span - n);
        let _ = read.overlaps(&mut random);
    }
}
