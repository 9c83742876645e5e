//! Forks, signals that interrupt, and what a pool's thread is to the process.

use crate::alone;
use crate::common::{
    Asked, Made, Zero, eager, forked, has_its_own_process, is_clean, quiet, until,
};
use cachewise_pages::{Builder, PageSize, Pool, PoolError, Verify};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn small() -> Builder {
    quiet().capacity(16 << 20).page_size(PageSize::Base)
}

/// True if every call on a pool of the parent's is refused as that.
pub fn refuses_all(pool: &Pool) -> bool {
    let is = |error: PoolError| matches!(error, PoolError::Forked);
    let block = std::ptr::NonNull::new(pool.base().cast_mut()).expect("mapped");
    // SAFETY: refused, whatever it is.
    let freed = unsafe { pool.free_raw(block, 0) };
    // SAFETY: as above.
    let freed = [freed, unsafe { pool.free_zeroed_run_raw(block, 3) }];
    let taken =
        [pool.alloc_raw(0), pool.zalloc_raw(0), pool.zalloc_to_fill_raw(0), pool.zalloc_run_raw(3)];
    pool.flush_thread_cache();
    pool.resume_scrubber();
    freed.into_iter().all(|answer| answer.is_err_and(is))
        && taken.into_iter().all(|answer| answer.is_err_and(is))
        && [pool.scrub_now(1), pool.trim()].into_iter().all(|answer| answer.is_err_and(is))
        && [pool.check(), pool.check_zeros()].into_iter().all(|answer| answer.is_err_and(is))
        && pool.stats().is_err_and(is)
        && !pool.pause_scrubber()
}

/// While other threads are in the pool, and one of them has its lock: no call of the child hangs, what was in use is there
/// for parent and child each, and the child makes a pool of its own.
#[test]
fn child_is_refused_keeps_what_was_in_use_and_makes_its_own_pool() {
    let _alone = alone();
    let pool = small().scrub(eager()).made();
    let mut kept = pool.alloc_bytes(3 << 20).expect("room");
    kept.fill(5);
    drop(pool.zalloc(0).expect("this thread has a cache"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop(pool.zalloc(3).map(|block| block.into_dirty().fill(1)));
                    let _ = pool.pause_scrubber();
                    pool.resume_scrubber();
                }
            });
        }
        let failed = (0..20).find_map(|_| {
            let mut handle = Some(pool.clone());
            let status = forked(|| {
                let own = small().scrub(eager()).made();
                own.alloc(7).expect("its own").fill(1);
                until("its own scrubber", || is_clean(&own));
                let grandchild = forked(|| refuses_all(&own) && refuses_all(&pool));
                let well = kept.iter().all(|byte| *byte == 5) && refuses_all(&pool);
                kept.fill(6);
                drop(handle.take());
                let thread = std::thread::spawn(|| ()).join();
                well && grandchild == 0 && thread.is_ok()
            });
            (status != 0).then_some(status)
        });
        // Before a failure is told: the threads are waited for.
        done.store(true, Ordering::Relaxed);
        assert_eq!(failed, None);
    });
    assert!(kept.iter().all(|byte| *byte == 5), "the child wrote to its copy");
    until("still scrubbed here", || is_clean(&pool));
    pool.is_sound();
}

/// Memory that a fork cannot copy is not there in the child, and what the child has there is left alone when it drops the pool.
#[test]
fn child_has_no_explicit_huge_pages_of_the_parents() {
    let _alone = alone();
    let unit = cachewise_pages::hugetlb_size();
    let _reserved = crate::common::Reserved::more(8);
    let pool = small().page_size(PageSize::Hugetlb).capacity(8 * unit).made();
    if !pool.notes().is_empty() {
        return println!("no explicit huge pages to be had here");
    }
    let mut kept = pool.alloc_bytes(unit).expect("room");
    kept.fill(5);
    let mut handle = Some(pool.clone());
    let status = forked(|| {
        let (base, length) = (pool.base().cast_mut().cast(), pool.capacity());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a mapping where nothing is.
        let mine = unsafe { libc::mmap(base, length, 3, flags, -1, 0) };
        let refused = refuses_all(&pool);
        drop(handle.take());
        // SAFETY: this handle is forgotten: no destructor runs in the child.
        mine == base && refused && unsafe { base.cast::<u8>().read_volatile() } == 0
    });
    assert_eq!(status, 0);
    assert!(kept.iter().all(|byte| *byte == 5));
}

static SIGNALLED: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: i32) {
    // SAFETY: null, or a pool that outlives the timer.
    let Some(pool) = (unsafe { SIGNALLED.load(Ordering::SeqCst).as_ref() }) else { return };
    match pool.zalloc(2) {
        Ok(block) => {
            // Not all of it: a handler that takes longer than the time between two signals lets nothing go on.
            if !block[..64].is_zero() {
                WRONG.fetch_add(1, Ordering::SeqCst);
            }
            // SAFETY: errno belongs to the interrupted code, which may read it.
            HANDLED.fetch_add(1, Ordering::SeqCst);
        }
        Err(PoolError::Reentered | PoolError::Exhausted { .. }) => {}
        Err(_) => {
            WRONG.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn signals_that_interrupt_the_pool_get_a_block_or_an_error_and_never_hang() {
    let _alone = alone();
    // The timer is the process's.
    let name = "fork::signals_that_interrupt_the_pool_get_a_block_or_an_error_and_never_hang";
    if !has_its_own_process(name) {
        return;
    }
    // For good: a handler may still be under way in another thread when this test returns.
    let pool: &Pool = Box::leak(Box::new(small().initial(8 << 20).made()));
    SIGNALLED.store(std::ptr::from_ref(pool).cast_mut(), Ordering::SeqCst);
    // SAFETY: all zero is a valid action without flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    // SAFETY: a valid action, no old one wanted.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    let tick = libc::timeval { tv_sec: 0, tv_usec: 500 };
    let timer = libc::itimerval { it_interval: tick, it_value: tick };
    // SAFETY: a valid timer, no old one wanted.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    let begun = Instant::now();
    let mut random = fastrand::Rng::with_seed(4);
    while begun.elapsed() < Duration::from_millis(700) {
        let order = random.u32(0..8);
        if let Ok(block) = pool.zalloc(order) {
            assert!(block[..64].is_zero());
            block.into_dirty()[0] = 1;
        }
        if random.u8(..) == 0 {
            let _ = pool.trim();
        }
    }
    let off = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: off, it_value: off };
    // SAFETY: as above.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    assert!(HANDLED.load(Ordering::SeqCst) > 0, "the handler got blocks");
    assert_eq!(WRONG.load(Ordering::SeqCst), 0);
    pool.is_sound();
}

#[test]
fn verify_in_production_aborts_with_a_clear_message() {
    let _alone = alone();
    if std::env::var_os("ABORTS").is_none() {
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "fork::verify_in_production_aborts_with_a_clear_message"])
            .args(["--test-threads=1", "--nocapture"])
            .env("ABORTS", "1")
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
        assert!(text.contains("0x2a"), "the byte is named: {text}");
        return;
    }
    let pool = small().cache_blocks(0).verify(Verify::Abort(1)).made();
    let start = pool.alloc_raw(0).expect("a page");
    // SAFETY: held.
    unsafe { start.as_ptr().write(0x2a) };
    // SAFETY: not used afterwards; that the promise of zero is broken is the point.
    unsafe { pool.free_zeroed_run_raw(start, 1) }.expect("believed");
    let _ = pool.zalloc(0);
    unreachable!("aborted");
}

/// Exit, exec, `seteuid` and core dumps wait for every thread: none is of idle priority, or bound to the CPUs of
/// the thread that made the pool. Woken, it takes no CPU from a thread that runs.
#[test]
fn a_pools_thread_has_the_processs_cpus_and_ordinary_priority() {
    let _alone = alone();
    let all = rustix::thread::sched_getaffinity(None).expect("CPUs");
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("a CPU"));
    let pool = std::thread::spawn(move || {
        rustix::thread::sched_setaffinity(None, &one).expect("bound");
        // Real-time priority, where it is allowed, as an audio program has it.
        let parameters = libc::sched_param { sched_priority: 10 };
        // SAFETY: this thread, and valid parameters.
        let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        small().scrub(eager()).made()
    });
    let pool = pool.join().expect("no panic");
    pool.alloc_bytes(4 << 20).expect("room").fill(1);
    until("zeroed", || is_clean(&pool));
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let mut found = 0;
    for task in tasks {
        let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let Ok(thread) = task.file_name().to_string_lossy().parse::<i32>() else { continue };
        if comm.starts_with("cw-") {
            found += 1;
            let pid = rustix::process::Pid::from_raw(thread);
            if let Ok(cpus) = rustix::thread::sched_getaffinity(pid) {
                assert!(cpus == all, "{comm}: bound");
            }
            // SAFETY: no memory is involved.
            let policy = unsafe { libc::sched_getscheduler(thread) };
            assert!(policy == libc::SCHED_BATCH || policy == -1, "{comm}: policy {policy}");
        }
    }
    assert!(found > 0, "it has a thread");
}
