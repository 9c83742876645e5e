//! Forks, and signals that interrupt.

use crate::alone;
use crate::common::{Asked, Made, Zero, eager, has_its_own_process, is_clean, quiet, until};
use cachewise_pages::engine::faulty::{BatchOutcome, Faulty, Script};
use cachewise_pages::{
    Builder, EngineChoice, PageSize, Pool, PoolError, Scrub, ScrubberState, Verify,
};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn small() -> Builder {
    quiet().capacity(16 << 20).page_size(PageSize::Base)
}

/// Runs `child` in a forked process; it succeeds by returning true.
pub fn fork(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child uses the pool, which is made for it, and leaves without destructors.
    match unsafe { libc::fork() } {
        0 => {
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            let code = if well.unwrap_or(false) { 0 } else { 1 };
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(code) }
        }
        pid => {
            assert!(pid > 0, "no process to be had");
            pid
        }
    }
}

pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

/// The engine keeps what it was given until it is called back, so every fork is in the middle.
#[test]
fn a_child_forked_in_the_middle_of_scrubbing_has_a_sound_copy() {
    let _alone = alone();
    let script = Script::new(Mutex::new([BatchOutcome::Slow; 64].into()));
    let pool = small()
        .scrub(Scrub { chunk: 64 << 10, ..eager() })
        .engine(EngineChoice::Custom(Box::new(Faulty::new(script))))
        .engine_deadline(Duration::from_secs(600))
        .verify(Verify::Report(1))
        .made();
    let mut kept = pool.alloc(3).expect("a block");
    kept.fill(0x3C);
    let mut much = pool.alloc_bytes(8 << 20).expect("much");
    much.fill(0xC3);
    drop(much);
    let in_flight = || pool.figures().in_flight;
    until("the engine has something", || in_flight() > 0);
    for _ in 0..8 {
        let pid = fork(|| {
            let stats = pool.figures();
            let mut well = stats.in_flight == 0 && stats.scrubber == ScrubberState::Off;
            well &= kept.iter().all(|byte| *byte == 0x3C);
            pool.is_sound();
            for order in 0..10 {
                well &= pool.zalloc(order).expect("a block").is_zero();
            }
            // The parent's blocks are handed out here too, and can be given back here.
            kept.fill(0);
            well &= pool.trim().expect("trimmed") > 0;
            well
        });
        assert_eq!(wait(pid), 0);
        assert!(kept.iter().all(|byte| *byte == 0x3C), "the child wrote to its copy");
        assert!(in_flight() > 0, "it was in flight all the while");
    }
    until("quiet", || pool.pause_scrubber());
    pool.is_sound();
}

/// The thread that grows the pool is the parent's. The child has none until it asks for one.
#[test]
fn in_a_child_nothing_grows_ahead_until_it_has_a_thread_of_its_own() {
    let _alone = alone();
    let pool = small().capacity(64 << 20).scrub(Scrub { start: 18, ..eager() });
    let pool = pool.grow_ahead(8 << 20).made();
    let held: Vec<_> = (0..4).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
    let grown = |pool: &Pool| pool.figures().grown_ahead;
    until("the parent's has grown", || grown(&pool) > 0);
    let child = fork(|| {
        let before = grown(&pool);
        let more: Vec<_> = (0..24).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
        std::thread::sleep(Duration::from_millis(50));
        let alone = grown(&pool) == before;
        pool.check().expect("sound");
        pool.resume_scrubber();
        until("the child's has grown", || grown(&pool) > before);
        drop(more);
        alone
    });
    assert_eq!(wait(child), 0);
    drop(held);
}

#[test]
fn a_child_takes_back_what_other_threads_had_cached_and_can_scrub_on_its_own() {
    let _alone = alone();
    let pool = small().scrub(eager()).initial(4 << 20).made();
    let (filled, wait_here) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(pool.zalloc(0).expect("a page"));
            filled.wait();
            wait_here.wait();
        });
        filled.wait();
        drop(pool.zalloc(1).expect("this thread has a cache too"));
        assert!(pool.figures().cached > 0);
        let pid = fork(|| {
            let stats = pool.figures();
            let mut well = stats.cached == 0 && stats.allocated == 0;
            well &= pool.zalloc(0).expect("a page").is_zero();
            pool.check().expect("sound");
            pool.resume_scrubber();
            pool.alloc(7).expect("a block").fill(1);
            until("the child's own scrubber", || is_clean(&pool));
            pool.check_zeros().expect("zero");
            until("quiet", || pool.pause_scrubber());
            well
        });
        assert_eq!(wait(pid), 0);
        wait_here.wait();
    });
    drop(pool);
}

/// Calls that have blocks in flight are over when they return, in the thread that forks.
#[test]
fn a_child_of_who_trimmed_and_zeroed_uses_its_copy() {
    let _alone = alone();
    let pool = small().initial(4 << 20).made();
    // More than a cache keeps.
    drop(pool.alloc(7).expect("a block"));
    assert!(pool.scrub_now(usize::MAX).expect("zeroed") > 0);
    assert!(pool.trim().expect("returned") > 0);
    let pid = fork(|| pool.zalloc(4).is_ok() && pool.check().is_ok());
    assert_eq!(wait(pid), 0);
    pool.check().expect("sound");
}

#[test]
fn a_child_may_drop_its_copy() {
    let _alone = alone();
    let pool = small().scrub(eager()).made();
    pool.alloc(7).expect("a block").fill(1);
    let mut slot = Some(pool);
    let pid = fork(|| {
        drop(slot.take());
        true
    });
    assert_eq!(wait(pid), 0);
    let pool = slot.expect("the parent's is still there");
    until("still scrubbed here", || is_clean(&pool));
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
            let _ = pool.trim_at_most(1 << 16);
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
        assert!(
            text.contains("known to be zero holds 0x2a") && text.contains("aborting"),
            "{text}"
        );
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

fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    tasks
        .filter(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            comm.trim() == name
        })
        .count()
}

/// Free memory is shared by parent and child until one of them writes to it, and then it is two: the
/// child has none of it, whether it uses the pool or not, and what is in use it has.
#[test]
fn a_child_drops_the_free_memory_that_it_inherits() {
    let _alone = alone();
    for scrub in [Scrub { enabled: false, ..Scrub::default() }, eager()] {
        let pool = Pool::builder().capacity(64 << 20).scrub(scrub).made();
        let mut kept = pool.alloc_bytes(3 << 20).expect("room");
        kept.fill(5);
        drop({
            let mut much = pool.alloc_bytes(32 << 20).expect("room");
            much.fill(6);
            much
        });
        let pid = fork(|| {
            let there = pool.resident().expect("figures");
            let stats = pool.figures();
            let dropped = there <= 4 << 20 && stats.dirty + stats.zero_resident <= 2 << 20;
            pool.resume_scrubber();
            std::thread::sleep(Duration::from_millis(50));
            dropped
                && pool.resident().expect("figures") <= 4 << 20
                && kept.iter().all(|byte| *byte == 5)
                && pool.zalloc_bytes(32 << 20).expect("room").is_zero()
                && pool.check().is_ok()
        });
        assert_eq!(wait(pid), 0);
        pool.check().expect("sound");
        assert!(kept.iter().all(|byte| *byte == 5));
    }
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

#[test]
fn two_who_resume_at_once_in_a_child_get_one_scrubber_and_nobody_hangs() {
    let _alone = alone();
    let pool = small().scrub(eager()).made();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Somebody is in the middle of pausing or resuming when the process forks.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                pool.pause_scrubber();
                pool.resume_scrubber();
            }
        });
        let mut failed = 0;
        for _ in 0..10 {
            let pid = fork(|| {
                // SAFETY: the default action, which ends a process that hangs.
                unsafe { libc::alarm(60) };
                std::thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| pool.resume_scrubber());
                    }
                });
                // A thread names itself when it runs. Time enough for a second one to do so, too.
                until("a scrubber", || threads_named("cw-pool") > 0);
                std::thread::sleep(Duration::from_millis(20));
                threads_named("cw-pool") == 1 && pool.check().is_ok()
            });
            failed += u32::from(wait(pid) != 0);
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(failed, 0);
    });
}

static HANDLING: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
static FORKS: AtomicUsize = AtomicUsize::new(0);
static CHILD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "C" fn fork_in_a_handler(_: i32) {
    if CHILD.load(Ordering::SeqCst) || FORKS.load(Ordering::SeqCst) >= 25 {
        return;
    }
    HANDLING.store(true, Ordering::SeqCst);
    // SAFETY: a handler may fork; the child goes on where the signal came.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        CHILD.store(true, Ordering::SeqCst);
        // SAFETY: the default action, which ends a process that hangs.
        unsafe { libc::alarm(60) };
        return;
    }
    let mut status = 1;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    if status != 0 {
        WRONG.fetch_add(1, Ordering::SeqCst);
    }
    FORKS.fetch_add(1, Ordering::SeqCst);
    HANDLING.store(false, Ordering::SeqCst);
}

/// The handler interrupts the pool anywhere, with its lock held or a cache half changed: parent and
/// child both go on from there.
#[test]
fn a_fork_in_a_signal_handler_leaves_the_lock_to_its_holder() {
    let _alone = alone();
    if !has_its_own_process("fork::a_fork_in_a_signal_handler_leaves_the_lock_to_its_holder") {
        return;
    }
    let pool: &Pool = Box::leak(Box::new(small().initial(8 << 20).made()));
    // SAFETY: all zero is a valid action without flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = fork_in_a_handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a valid action, no old one wanted.
    unsafe { libc::sigaction(libc::SIGVTALRM, &raw const action, std::ptr::null_mut()) };
    // SAFETY: always callable.
    let tested = unsafe { libc::pthread_self() };
    // Another thread's cache must come back in the child; it sends the signals, too.
    let (stop, other) = (std::sync::Arc::new(AtomicUsize::new(0)), pool.clone());
    let seen = std::sync::Arc::clone(&stop);
    let busy = std::thread::spawn(move || {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is writable, filled, and then only read.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: filled above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
        let mut random = fastrand::Rng::with_seed(6);
        while seen.load(Ordering::Relaxed) == 0 {
            for _ in 0..random.u32(20..2000) {
                drop(other.zalloc(1));
            }
            if !HANDLING.load(Ordering::SeqCst) {
                // SAFETY: that thread lives until this one was joined.
                unsafe { libc::pthread_kill(tested, libc::SIGVTALRM) };
            }
        }
    });
    let mut random = fastrand::Rng::with_seed(5);
    let mut left = 30;
    let begun = Instant::now();
    while FORKS.load(Ordering::SeqCst) < 25 && begun.elapsed() < Duration::from_secs(60) {
        if CHILD.load(Ordering::SeqCst) {
            left -= 1;
            if left == 0 {
                let well = pool.check().is_ok() && pool.check_zeros().is_ok();
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(if well { 0 } else { 1 }) };
            }
        }
        if let Ok(block) = pool.zalloc(random.u32(0..8)) {
            if !block[..64].is_zero() {
                WRONG.fetch_add(1, Ordering::SeqCst);
            }
            block.into_dirty()[0] = 1;
        }
    }
    stop.store(1, Ordering::Relaxed);
    busy.join().expect("no panic");
    assert!(FORKS.load(Ordering::SeqCst) > 5, "it did fork in the handler");
    assert_eq!(WRONG.load(Ordering::SeqCst), 0);
    pool.check().expect("sound");
}

static IN_HANDLERS: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn use_the_pool() {
    // SAFETY: null, or a pool that is never taken down.
    let Some(pool) = (unsafe { IN_HANDLERS.load(Ordering::SeqCst).as_ref() }) else { return };
    for order in [0, 3, 7] {
        match pool.zalloc(order) {
            Ok(block) if block.is_zero() => HANDLED.fetch_add(1, Ordering::SeqCst),
            _ => WRONG.fetch_add(1, Ordering::SeqCst),
        };
    }
}

#[test]
fn a_programs_fork_handlers_may_use_a_pool_whenever_they_were_registered() {
    let _alone = alone();
    let name = "fork::a_programs_fork_handlers_may_use_a_pool_whenever_they_were_registered";
    if !has_its_own_process(name) {
        return;
    }
    let handler: unsafe extern "C" fn() = use_the_pool;
    // SAFETY: the default action, which ends a process that hangs.
    unsafe { libc::alarm(60) };
    let register = || {
        // SAFETY: the function lives as long as the process.
        unsafe { libc::pthread_atfork(Some(handler), Some(handler), Some(handler)) };
    };
    register();
    let pool = small().initial(4 << 20).made();
    IN_HANDLERS.store(Box::into_raw(Box::new(pool.clone())), Ordering::SeqCst);
    register();
    for _ in 0..10 {
        let pid = fork(|| {
            let seen = HANDLED.load(Ordering::SeqCst);
            drop(pool.zalloc(2).expect("a block"));
            pool.check().is_ok() && seen >= 12 && WRONG.load(Ordering::SeqCst) == 0
        });
        assert_eq!(wait(pid), 0);
    }
    assert_eq!((HANDLED.load(Ordering::SeqCst), WRONG.load(Ordering::SeqCst)), (120, 0));
}
