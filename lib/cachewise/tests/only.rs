//! Each kernel as the only one of its operation, as the tuner has the library call it.

use cachewise::profile::OPERATIONS;
use cachewise::raw;
use cachewise_kernels::{Features, TABLE};

/// Limits of entries have no end where their own loop is the kernel; every kernel that is the library's can
/// be set, any other is refused, and the library copies all the same.
#[test]
fn each_kernel_of_the_library_may_be_the_only_one() {
    if !crate::alone("only::each_kernel_of_the_library_may_be_the_only_one") {
        return;
    }
    let features = Features::detect();
    let mut set = 0;
    for kernel in TABLE.iter().filter(|kernel| kernel.runs_on(features)) {
        let usable = kernel.deploy && OPERATIONS.contains(&kernel.operation());
        assert_eq!(cachewise::use_only(kernel), usable, "{}", kernel.name);
        set += usize::from(usable);
        for length in [0, 100, 300, 2047, 2048, 2049, 2112, 2113, 10_000] {
            let source: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
            let mut copied = vec![0; length];
            cachewise::copy(&mut copied, &source);
            assert!(cachewise::equal(&copied, &source), "{} at {length}", kernel.name);
            // Overlap is a move, whichever kernel copies.
            let n = length.saturating_sub(65);
            for (from, to) in [(0, 7), (7, 0), (0, 65), (65, 0)].into_iter().filter(|_| n > 0) {
                let mut buffer = source.clone();
                let start = buffer.as_mut_ptr();
                let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
                // SAFETY: n bytes from both places on are inside the buffer.
                unsafe { raw::copy_nonoverlapping(dst, src, n) };
                assert!(buffer[to..][..n] == source[from..][..n], "{} at {length}", kernel.name);
            }
            cachewise::fill(&mut copied, 0xA5);
            assert!(copied.iter().all(|byte| *byte == 0xA5), "{} at {length}", kernel.name);
            // Every byte of the source is odd, and the first is 1.
            let order = cachewise::compare(&copied, &source);
            assert_eq!(order.is_gt(), length > 0, "{} at {length}", kernel.name);
            cachewise::zero(&mut copied);
            assert!(copied.iter().all(|byte| *byte == 0), "{} at {length}", kernel.name);
        }
    }
    assert!(set > 6, "an operation has more than one");
}
