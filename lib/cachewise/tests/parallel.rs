//! Copies and zeroing by several threads: every byte, whoever does the work; and how many do.

#![cfg(all(feature = "std", unix))]

use cachewise::Reuse;
use cachewise::parallel::{
    Threads, Workers, copy_by, copy_parallel, copy_parallel_with, least, zero_by, zero_parallel,
};
use cachewise::profile::{Parallel, Profile, Supply};
use cachewise_kernels::Operation;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads of the standard library, as somebody's pool.
struct Scoped(usize);

impl Workers for Scoped {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, threads: usize, job: &(dyn Fn() + Sync)) {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(job);
            }
            job();
        });
    }
}

/// A pool that never gets round to it.
struct Idle;

impl Workers for Idle {
    fn threads(&self) -> usize {
        8
    }

    fn run(&self, _: usize, _: &(dyn Fn() + Sync)) {}
}

/// A pool that calls more often than it was asked to.
struct Eager;

impl Workers for Eager {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, _: usize, job: &(dyn Fn() + Sync)) {
        for _ in 0..3 {
            job();
        }
    }
}

/// Notes how many threads it was asked for.
struct Asked(usize, AtomicUsize);

impl Workers for Asked {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, threads: usize, job: &(dyn Fn() + Sync)) {
        self.1.store(threads, Ordering::Relaxed);
        job();
    }
}

const CANARY: u8 = 0xC3;

/// Copies and zeroes `n` bytes at an offset by `threads`, and looks at all bytes around.
fn check(workers: &dyn Workers, threads: usize, n: usize, offset: usize) {
    let mut source = vec![0u8; n];
    fastrand::Rng::with_seed(n as u64).fill(&mut source);
    let mut buffer = vec![CANARY; n + 2 * 4096];
    for reuse in Reuse::ALL {
        let dst = buffer[offset..].as_mut_ptr();
        // SAFETY: n bytes are in both buffers.
        unsafe { copy_by(threads, reuse, workers, dst, source.as_ptr(), n) };
        assert!(buffer[offset..offset + n] == source[..], "copy of {n} at {offset} by {threads}");
        let dst = buffer[offset..].as_mut_ptr();
        // SAFETY: as above.
        unsafe { zero_by(threads, reuse, workers, dst, n) };
        let zeroed = buffer[offset..offset + n].iter().all(|byte| *byte == 0);
        assert!(zeroed, "zero of {n} at {offset} by {threads}");
        let around = buffer[..offset].iter().chain(&buffer[offset + n..]);
        assert!(around.into_iter().all(|byte| *byte == CANARY), "around {n} at {offset}");
        buffer.fill(CANARY);
    }
}

#[test]
fn every_byte_is_done_once_whoever_does_it() {
    let chunk = 64 << 10;
    let workers: [&dyn Workers; 5] = [&Threads::new(3), &Scoped(3), &Idle, &Eager, &Threads::all()];
    for workers in workers {
        for n in [0, 1, 127, 128, 129, 4095, 4097, chunk - 1, chunk, chunk + 1, 5 * chunk + 77] {
            for offset in [0, 1, 63, 4095] {
                for threads in [1, 2, 3, 7] {
                    check(workers, threads, n, offset);
                }
            }
        }
        check(workers, 3, (20 << 20) + 13, 17);
    }
}

#[test]
fn safe_functions_check_lengths_and_do_the_work() {
    let source = vec![5u8; 40 << 20];
    let mut destination = vec![1u8; source.len()];
    copy_parallel(&Threads::new(2), &mut destination, &source);
    assert!(destination == source);
    zero_parallel(&Scoped(2), &mut destination);
    assert!(destination.iter().all(|byte| *byte == 0));
    let shorter = std::panic::catch_unwind(move || {
        copy_parallel_with(Reuse::Never, &Threads::new(2), &mut destination, &source[1..]);
    });
    assert!(shorter.is_err(), "lengths differ");
}

/// The profile is the process's.
#[test]
fn no_more_threads_are_used_than_the_profile_says_pay() {
    if !crate::alone("parallel::no_more_threads_are_used_than_the_profile_says_pay") {
        return;
    }
    let line =
        |supply, threads, from| Parallel { operation: Operation::Copy, supply, threads, from };
    let install = |parallel| {
        cachewise::load(&Profile { parallel, ..Profile::here() }).expect("this CPU's");
    };
    let used = |offered, n: usize| {
        let workers = Asked(offered, AtomicUsize::new(1));
        let source = vec![1u8; n];
        copy_parallel(&workers, &mut vec![0u8; n], &source);
        workers.1.into_inner()
    };
    install(vec![
        line(Supply::Pooled, 2, Some(100_000)),
        line(Supply::Pooled, 4, Some(1_000_000)),
        line(Supply::Pooled, 6, None),
        line(Supply::Spawned, 2, None),
    ]);
    assert_eq!(least(Operation::Copy, Supply::Pooled, 2), Some(100_000));
    assert_eq!(least(Operation::Copy, Supply::Pooled, 3), Some(1_000_000));
    assert_eq!(least(Operation::Copy, Supply::Pooled, 8), None, "six did not pay");
    assert_eq!(least(Operation::Copy, Supply::Pooled, 16), None, "never tried");
    assert_eq!(least(Operation::Copy, Supply::Spawned, 2), None);
    assert_eq!([1, 2, 16].map(|offered| used(offered, 99_999)), [1, 1, 1]);
    assert_eq!([1, 2, 3, 16].map(|offered| used(offered, 100_000)), [1, 2, 2, 2]);
    assert_eq!([2, 3, 4, 16].map(|offered| used(offered, 1_000_000)), [2, 3, 4, 4]);
    let zero = least(Operation::Zero, Supply::Pooled, 2);
    assert!(zero.is_some_and(|size| size >= 1 << 20), "no line: the computed one");
    install(vec![]);
    assert_eq!(least(Operation::Copy, Supply::Pooled, 2), zero, "the lines are gone");
    assert_eq!(used(2, 1 << 20), 1, "cautious without a profile");
}

#[cfg(target_os = "linux")]
#[test]
fn there_are_as_many_threads_as_cpus() {
    let all = std::thread::available_parallelism().expect("CPUs").get();
    assert!(Threads::all().threads() >= all, "available_parallelism may heed quotas besides");
    assert_eq!(Threads::new(0).threads(), 1);
    assert_eq!(Threads::new(usize::MAX).threads(), 1024);
}
