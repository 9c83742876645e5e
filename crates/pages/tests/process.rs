//! What processes do to pools: fork, share, die; and signals that interrupt.

use cachewise_pages::buddy::FreeError;
use cachewise_pages::engine::faulty::{Faulty, Outcome, Script};
use cachewise_pages::{
    Builder, EngineChoice, PageSize, Pool, PoolError, Scrub, ScrubberState, Verify,
};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn quiet() -> Builder {
    let scrub = Scrub { enabled: false, ..Scrub::default() };
    Pool::builder().capacity(16 << 20).page_size(PageSize::Base).scrub(scrub)
}

fn eager() -> Scrub {
    Scrub {
        start: 0,
        load: f64::INFINITY,
        cpu_share: 1.0,
        min_idle: Duration::ZERO,
        ..Scrub::default()
    }
}

/// Runs `child` in a forked process; it succeeds by returning true.
fn fork(child: impl FnOnce() -> bool) -> i32 {
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

fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

fn zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether nothing is left to zero, nor being zeroed: a block in flight is no longer dirty.
fn is_clean(pool: &Pool) -> bool {
    let stats = pool.stats().expect("figures");
    stats.dirty + stats.in_flight == 0
}

/// The engine keeps what it was given until it is called back, so every fork is in the middle.
#[test]
fn a_child_forked_in_the_middle_of_scrubbing_has_a_sound_copy() {
    let script = Script::new(Mutex::new([Outcome::Slow; 64].into()));
    let pool = quiet()
        .scrub(Scrub { chunk: 64 << 10, ..eager() })
        .engine(EngineChoice::Custom(Box::new(Faulty::new(script))))
        .engine_deadline(Duration::from_secs(600))
        .verify(Verify::Report(1))
        .build()
        .expect("a pool");
    let mut kept = pool.alloc(3).expect("a block");
    kept.fill(0x3C);
    let mut much = pool.alloc_bytes(8 << 20).expect("much");
    much.fill(0xC3);
    drop(much);
    let in_flight = || pool.stats().expect("figures").in_flight;
    until("the engine has something", || in_flight() > 0);
    for _ in 0..8 {
        let pid = fork(|| {
            let stats = pool.stats().expect("figures");
            let mut well = stats.in_flight == 0 && stats.scrubber == ScrubberState::Off;
            well &= kept.iter().all(|byte| *byte == 0x3C);
            pool.check().expect("sound");
            pool.check_zeros().expect("zero");
            for order in 0..10 {
                well &= zero(&pool.zalloc(order).expect("a block"));
            }
            // What the parent handed out is handed out here too, and can be given back here.
            kept.fill(0);
            well &= pool.trim().expect("trimmed") > 0;
            well
        });
        assert_eq!(wait(pid), 0);
        assert!(kept.iter().all(|byte| *byte == 0x3C), "the child wrote to its copy");
        assert!(in_flight() > 0, "it was in flight all the while");
    }
    until("quiet", || pool.pause_scrubber());
    pool.check().expect("sound");
    pool.check_zeros().expect("zero");
}

/// The thread that grows the pool is the parent's. The child has none until it asks for one.
#[test]
fn in_a_child_nothing_grows_ahead_until_it_has_a_thread_of_its_own() {
    let pool = quiet().capacity(64 << 20).scrub(Scrub { start: 18, ..eager() });
    let pool = pool.grow_ahead(8 << 20).build().expect("a pool");
    let held: Vec<_> = (0..4).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
    let grown = |pool: &Pool| pool.stats().expect("figures").grown_ahead;
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
    let pool = quiet().scrub(eager()).initial(4 << 20).build().expect("a pool");
    let (filled, wait_here) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(pool.zalloc(0).expect("a page"));
            filled.wait();
            wait_here.wait();
        });
        filled.wait();
        drop(pool.zalloc(1).expect("this thread has a cache too"));
        assert!(pool.stats().expect("figures").cached > 0);
        let pid = fork(|| {
            let stats = pool.stats().expect("figures");
            let mut well = stats.cached == 0 && stats.allocated == 0;
            well &= zero(&pool.zalloc(0).expect("a page"));
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
    let pool = quiet().initial(4 << 20).build().expect("a pool");
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
    let pool = quiet().scrub(eager()).build().expect("a pool");
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
            if !zero(&block) {
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
    if std::env::var_os("SIGNALS").is_none() {
        // In a process of its own: the timer is the process's.
        rerun("signals_that_interrupt_the_pool_get_a_block_or_an_error_and_never_hang", "SIGNALS");
        return;
    }
    // For good: a handler may still be under way in another thread when this test returns.
    let pool: &Pool = Box::leak(Box::new(quiet().initial(8 << 20).build().expect("a pool")));
    SIGNALLED.store(std::ptr::from_ref(pool).cast_mut(), Ordering::SeqCst);
    // SAFETY: all zero is a valid action without flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    // SAFETY: a valid action, no old one wanted.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    let tick = libc::timeval { tv_sec: 0, tv_usec: 100 };
    let timer = libc::itimerval { it_interval: tick, it_value: tick };
    // SAFETY: a valid timer, no old one wanted.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    let begun = Instant::now();
    let mut random = fastrand::Rng::with_seed(4);
    while begun.elapsed() < Duration::from_millis(700) {
        let order = random.u32(0..8);
        if let Ok(block) = pool.zalloc(order) {
            assert!(zero(&block[..64]));
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
    pool.check().expect("sound");
    pool.check_zeros().expect("zero");
}

fn rerun(test: &str, variable: &str) {
    let status = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(variable, "1")
        .status()
        .expect("it runs");
    assert!(status.success(), "{status}");
}

#[test]
fn verify_in_production_aborts_with_a_clear_message() {
    if std::env::var_os("ABORTS").is_none() {
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "verify_in_production_aborts_with_a_clear_message"])
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
    let pool = quiet().cache_blocks(0).verify(Verify::Abort(1)).build().expect("a pool");
    let start = pool.alloc_raw(0).expect("a page");
    // SAFETY: held.
    unsafe { start.as_ptr().write(0x2a) };
    // SAFETY: not used afterwards; that the promise of zero is broken is the point.
    unsafe { pool.free_zeroed_run_raw(start, 1) }.expect("believed");
    let _ = pool.zalloc(0);
    unreachable!("aborted");
}

#[test]
fn two_processes_share_a_pool_and_one_scrubber_serves_both() {
    let pool = quiet().scrub(eager()).build_shared().expect("a pool");
    let file = pool.file().expect("a shared pool has a file");
    let pid = fork(|| {
        let mine = Pool::attach(file).expect("the pool");
        for order in 0..8 {
            let block = mine.zalloc(order).expect("a block");
            assert!(zero(&block));
            block.into_dirty().fill(0x66);
        }
        mine.flush_thread_cache();
        // Zeroed by the parent's scrubber: this process has none.
        until("scrubbed from outside", || is_clean(&mine));
        assert_eq!(mine.stats().expect("figures").scrubber, ScrubberState::Off);
        mine.check_zeros().expect("zero");
        mine.trim().expect("trimmed") > 0
    });
    assert_eq!(wait(pid), 0);
    pool.check().expect("sound");
    pool.check_zeros().expect("zero");
    let stats = pool.stats().expect("figures");
    assert!(stats.scrubbed > 0 && stats.trimmed > 0);
    assert!(zero(&pool.zalloc(8).expect("a block")));
}

#[test]
fn what_a_killed_process_held_comes_back() {
    let pool = quiet().build_shared().expect("a pool");
    let file = pool.file().expect("a file");
    let (read, write) = std::io::pipe().expect("a pipe");
    let pid = fork(|| {
        use std::io::Write;
        let mine = Pool::attach(file).expect("the pool");
        let mut held: Vec<_> = (0..6).map(|order| mine.alloc(order).expect("a block")).collect();
        held.iter_mut().for_each(|block| block.fill(0x99));
        (&write).write_all(b"x").expect("told");
        std::thread::sleep(Duration::from_secs(60));
        false
    });
    use std::io::Read;
    let mut told = [0];
    (&read).read_exact(&mut told).expect("the child holds blocks");
    assert!(pool.stats().expect("figures").allocated > 0);
    assert_eq!(pool.reap().expect("nobody is gone"), 0);
    // SAFETY: a child of this process.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait(pid);
    assert!(pool.reap().expect("somebody is gone") >= 63 * pool.page_size());
    let stats = pool.stats().expect("figures");
    assert_eq!((stats.allocated, stats.in_flight), (0, 0));
    pool.check().expect("sound");
    assert!(zero(&pool.zalloc(5).expect("a block")));
}

/// Processes are killed at arbitrary moments, many of them inside the lock. Whoever comes next
/// finds the lock marked, and repairs.
#[test]
fn processes_killed_in_the_middle_of_operations_leave_a_pool_that_works() {
    let pool = quiet().cache_blocks(0).build_shared().expect("a pool");
    let file = pool.file().expect("a file");
    let mut random = fastrand::Rng::with_seed(8);
    for round in 0..60 {
        let pid = fork(|| {
            let mine = Pool::attach_with(file, quiet().cache_blocks(0)).expect("the pool");
            let mut random = fastrand::Rng::with_seed(round);
            loop {
                // Dirty blocks need no work outside the lock, so most of the time is inside.
                if let Ok(block) = mine.alloc_raw(random.u32(0..6)) {
                    if random.u8(..) > 3 {
                        let index = random.u32(0..6);
                        // SAFETY: most of these are refused; none is used afterwards.
                        let _ = unsafe { mine.free_raw(block, index) };
                    }
                } else {
                    let _ = mine.trim_at_most(1 << 18);
                }
            }
        });
        std::thread::sleep(Duration::from_micros(random.u64(3000..9000)));
        // SAFETY: a child of this process.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        wait(pid);
        pool.reap().expect("reaped");
        pool.check().expect("sound");
        let stats = pool.stats().expect("figures");
        assert_eq!((stats.allocated, stats.in_flight), (0, 0), "round {round}");
        assert!(zero(&pool.zalloc(6).expect("a block")), "round {round}");
    }
}

#[test]
fn a_fork_of_a_shared_pool_cannot_give_back_what_is_the_parents() {
    let pool = quiet().build_shared().expect("a pool");
    let start = pool.alloc_raw(3).expect("a block");
    drop(pool.zalloc(0).expect("this thread has a cache"));
    let pid = fork(|| {
        // SAFETY: it is the parent's, so it must be refused.
        let refused = unsafe { pool.free_raw(start, 3) };
        let why = matches!(refused, Err(PoolError::Free { why: FreeError::OtherOwner { .. }, .. }));
        // Its own are its own, and not those of the parent's cache.
        let block = pool.zalloc(0).expect("a page");
        block.into_dirty().fill(5);
        why
    });
    assert_eq!(wait(pid), 0);
    for _ in 0..40 {
        assert!(zero(&pool.zalloc(0).expect("a page")));
    }
    // SAFETY: not used afterwards.
    unsafe { pool.free_raw(start, 3) }.expect("still the parent's");
    pool.reap().expect("reaped");
    pool.flush_thread_cache();
    pool.check().expect("sound");
    assert_eq!(pool.stats().expect("figures").allocated, 0);
}

/// Who cannot look is told nothing about others, and takes nobody for dead: itself as little as
/// them.
#[test]
fn nobody_is_dead_for_want_of_a_file_or_of_a_main_thread() {
    let name = "nobody_is_dead_for_want_of_a_file_or_of_a_main_thread";
    if std::env::var_os("NO_FILES").is_none() {
        // In a process of its own: the limit is the process's.
        rerun(name, "NO_FILES");
        return;
    }
    let pool = quiet().build_shared().expect("a pool");
    let file = pool.file().expect("a file");
    let mine = pool.alloc_raw(3).expect("a block");
    let (read, write) = std::io::pipe().expect("a pipe");
    let pid = fork(|| {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let theirs: &Pool = Box::leak(Box::new(Pool::attach(file).expect("the pool")));
        let held = theirs.alloc_raw(4).expect("a block").as_ptr() as usize;
        let told = write.as_raw_fd();
        // Like a daemon: every file but one is closed. And the main thread ends before the others
        // do.
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            for descriptor in 0..1024 {
                if descriptor != told {
                    // SAFETY: nothing here uses a file by its number any more.
                    unsafe { libc::close(descriptor) };
                }
            }
            // SAFETY: the block is held.
            unsafe { (held as *mut u8).write_bytes(0x5D, theirs.page_size() << 4) };
            (&write).write_all(b"x").expect("told");
            std::thread::sleep(Duration::from_secs(60));
        });
        // SAFETY: ends this thread, the process's first; nothing in it has a destructor that
        // matters.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        false
    });
    use std::io::Read;
    let mut told = [0];
    (&read).read_exact(&mut told).expect("the child holds a block");
    assert_eq!(pool.reap().expect("an answer"), 0, "its other thread lives");
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 1024 };
    let mut before = none;
    // SAFETY: a place for the limits.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) };
    let none = libc::rlimit { rlim_cur: 0, ..before };
    // SAFETY: valid limits.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
    assert_eq!(pool.reap().expect("an answer"), 0, "nobody is dead: files cannot be opened");
    let all: Vec<_> = std::iter::from_fn(|| pool.zalloc_raw(0).ok()).collect();
    // SAFETY: valid limits.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const before) };
    let range = |start: NonNull<u8>, pages| {
        let start = start.as_ptr() as usize;
        start..start + pages * pool.page_size()
    };
    assert!(all.iter().all(|page| !range(mine, 8).contains(&(page.as_ptr() as usize))));
    assert_eq!(all.len() * pool.page_size(), pool.capacity() - 24 * pool.page_size());
    // SAFETY: a child of this process.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait(pid);
    assert_eq!(pool.reap().expect("now it is"), 16 * pool.page_size());
    pool.check().expect("sound");
}

/// A fork inherits the files of its parent, and must not seem to be it.
#[test]
fn a_dead_process_is_dead_though_its_fork_lives() {
    let pool = quiet().build_shared().expect("a pool");
    let file = pool.file().expect("a file");
    let (read, write) = std::io::pipe().expect("a pipe");
    let pid = fork(|| {
        let mine = Pool::attach(file).expect("the pool");
        mine.alloc_raw(5).expect("a block");
        let kept = fork(|| {
            use std::io::Write;
            (&write).write_all(b"x").expect("told");
            std::thread::sleep(Duration::from_secs(3));
            true
        });
        assert!(kept > 0);
        std::thread::sleep(Duration::from_secs(60));
        false
    });
    use std::io::Read;
    (&read).read_exact(&mut [0]).expect("the fork is there");
    // SAFETY: a child of this process.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait(pid);
    assert_eq!(pool.reap().expect("an answer"), 32 * pool.page_size());
    pool.check().expect("sound");
}

/// Threads of this process with that name.
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    tasks
        .filter(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            comm.trim() == name
        })
        .count()
}

#[test]
fn two_who_resume_at_once_in_a_child_get_one_scrubber_and_nobody_hangs() {
    let pool = quiet().scrub(eager()).build().expect("a pool");
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
    let name = "a_fork_in_a_signal_handler_leaves_the_lock_to_its_holder";
    if std::env::var_os("FORKS_IN_HANDLER").is_none() {
        rerun(name, "FORKS_IN_HANDLER");
        return;
    }
    let pool: &Pool = Box::leak(Box::new(quiet().initial(8 << 20).build().expect("a pool")));
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
            if !zero(&block[..64]) {
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
            Ok(block) if zero(&block) => HANDLED.fetch_add(1, Ordering::SeqCst),
            _ => WRONG.fetch_add(1, Ordering::SeqCst),
        };
    }
}

#[test]
fn a_programs_fork_handlers_may_use_a_pool_whenever_they_were_registered() {
    let name = "a_programs_fork_handlers_may_use_a_pool_whenever_they_were_registered";
    if std::env::var_os("FORK_HANDLERS").is_none() {
        rerun(name, "FORK_HANDLERS");
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
    let pool = quiet().initial(4 << 20).build().expect("a pool");
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

#[test]
fn files_that_are_no_pool_are_refused_by_field() {
    let refused = |file: &std::fs::File, words: &str| {
        let text = Pool::attach(file).expect_err("refused").to_string();
        assert!(text.contains(words), "{text} does not say {words}");
    };
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    refused(&file, "seals of the file");
    let sealed = |length: u64| {
        use rustix::fs::{MemfdFlags, SealFlags};
        let made = rustix::fs::memfd_create("other", MemfdFlags::ALLOW_SEALING).expect("a file");
        rustix::fs::ftruncate(&made, length).expect("a length");
        rustix::fs::fcntl_add_seals(&made, SealFlags::SHRINK).expect("sealed");
        std::fs::File::from(made)
    };
    refused(&sealed(10), "bytes of the file: found 10");
    refused(&sealed(1 << 20), "first bytes: found 0");
    assert!(quiet().page_size(PageSize::Hugetlb).build_shared().is_err());
    assert!(quiet().numa_node(0).build_shared().is_err());
}

#[test]
fn a_block_of_a_shared_pool_is_the_same_memory_for_both() {
    let pool = quiet().build_shared().expect("a pool");
    let other = Pool::attach(pool.file().expect("a file")).expect("mapped twice");
    let start = pool.zalloc_raw(0).expect("a page");
    let offset = start.as_ptr() as usize - pool.base() as usize;
    // SAFETY: held.
    unsafe { start.as_ptr().write(77) };
    let there = NonNull::new((other.base() as usize + offset) as *mut u8).expect("not null");
    // SAFETY: inside the other mapping of the same block.
    assert_eq!(unsafe { there.as_ptr().read() }, 77);
    // SAFETY: refused: it is the first handle's.
    let refused = unsafe { other.free_raw(there, 0) };
    assert!(matches!(refused, Err(PoolError::Free { why: FreeError::OtherOwner { .. }, .. })));
}
