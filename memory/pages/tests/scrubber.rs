//! The scrubber: when it works, when it rests, what it costs. Nothing here depends on how fast it
//! is.

use crate::common::{Asked, Made, eager, has_its_own_process, is_clean, until};
use cachewise_pages::{Builder, EngineChoice, PageSize, Pool, Scrub, ScrubberState};
use std::time::{Duration, Instant};

fn builder(scrub: Scrub) -> Builder {
    Pool::builder().capacity(32 << 20).cache_blocks(0).page_size(PageSize::Base).scrub(scrub)
}

fn state(pool: &Pool) -> ScrubberState {
    pool.figures().scrubber
}

fn dirty(pool: &Pool) -> u64 {
    pool.figures().dirty
}

#[test]
fn every_built_in_engine_zeroes_what_is_idle() {
    for engine in [EngineChoice::CpuAround, EngineChoice::CpuThrough, EngineChoice::System] {
        let name = format!("{engine:?}");
        let pool = builder(eager()).engine(engine).made();
        for order in 0..=10 {
            pool.alloc(order).expect("a block").fill(0x99);
        }
        until(&name, || is_clean(&pool) && state(&pool) == ScrubberState::Idle);
        let stats = pool.figures();
        assert!(stats.scrubbed > 0 && stats.in_flight == 0, "{name}");
        assert!(stats.scrub_cpu > Duration::ZERO, "{name}: its CPU time is told");
        pool.is_sound();
        let hits = stats.zero_hits;
        drop(pool.zalloc(4).expect("prezeroed"));
        assert_eq!(pool.figures().zero_hits, hits + 1, "{name}");
    }
}

/// The CPU time of the thread of that name, which was there once; `None` while it runs, or is about to.
fn cpu_of(name: &str) -> Option<u64> {
    let task = sleeping(name)?;
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[test]
fn an_idle_pools_scrubber_uses_no_cpu() {
    // Other tests have scrubbers too.
    if !has_its_own_process("scrubber::an_idle_pools_scrubber_uses_no_cpu") {
        return;
    }
    let pool = builder(eager()).made();
    pool.alloc(8).expect("a block").fill(1);
    until("idle", || is_clean(&pool) && state(&pool) == ScrubberState::Idle);
    // Its state is told before it sleeps.
    until("it sleeps", || cpu_of("cw-pool").is_some());
    let before = cpu_of("cw-pool");
    assert!(before > Some(0), "it is there and did work");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(cpu_of("cw-pool"), before, "not a nanosecond");
}

#[test]
fn start_wakes_it_and_stop_is_where_it_ends() {
    let scrub = Scrub { start: 5, stop: 3, ..eager() };
    let pool = builder(scrub).made();
    // Guards keep the blocks from merging.
    let guards: Vec<_> = (0..8).map(|_| (pool.alloc(2), pool.alloc(2))).collect();
    let (small, kept): (Vec<_>, Vec<_>) = guards.into_iter().unzip();
    let medium = pool.alloc(4).expect("a block");
    let guard = pool.alloc(4).expect("a guard");
    drop(small);
    drop(medium);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(pool.figures().scrubbed, 0, "nothing of order 5 yet");
    pool.alloc(6).expect("a block").fill(1);
    let left = |pool: &Pool, from: usize| {
        pool.figures().orders[from..].iter().map(|order| order.dirty).sum::<u64>()
    };
    until("all from order 3 up", || left(&pool, 3) == 0 && state(&pool) == ScrubberState::Idle);
    assert!(left(&pool, 0) >= 1, "order 2 is below `stop`");
    drop((kept, guard));
}

#[test]
fn blocks_used_lately_are_left_alone() {
    let pool = builder(Scrub { min_idle: Duration::from_secs(3600), ..eager() }).build();
    let pool = pool.expect("a pool");
    pool.alloc(6).expect("a block").fill(1);
    std::thread::sleep(Duration::from_millis(100));
    let stats = pool.figures();
    assert_eq!((stats.scrubbed, stats.dirty > 0), (0, true));
}

#[test]
fn pause_stops_it_and_resume_lets_it_go_on() {
    let pool = builder(eager()).made();
    until("quiet", || pool.pause_scrubber());
    pool.alloc(8).expect("a block").fill(1);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((state(&pool), dirty(&pool) > 0), (ScrubberState::Paused, true));
    pool.resume_scrubber();
    until("zeroed", || is_clean(&pool));
}

/// A field of one of this process's threads in /proc.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

/// The thread of that name, if it sleeps.
fn sleeping(name: &str) -> Option<std::path::PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    tasks.map(|task| task.path()).find(|task| {
        let status = std::fs::read_to_string(task.join("status")).unwrap_or_default();
        field(&status, "Name:") == Some(name) && field(&status, "State:") == Some("S")
    })
}

/// How often the thread of that name went to sleep; `None` while it runs, or where there is none.
fn sleeps_of(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(sleeping(name)?.join("status")).ok()?;
    field(&status, "voluntary_ctxt_switches:")?.parse().ok()
}

#[test]
fn a_paused_scrubber_is_not_woken_by_zeroing_and_freeing() {
    if !has_its_own_process("scrubber::a_paused_scrubber_is_not_woken_by_zeroing_and_freeing") {
        return;
    }
    for blocks in [0, 256] {
        let pool = builder(eager()).cache_blocks(blocks).made();
        drop(pool.alloc(6).expect("a block"));
        until("quiet", || pool.pause_scrubber() && state(&pool) == ScrubberState::Paused);
        until("the thread is there and sleeps", || {
            let before = sleeps_of("cw-pool");
            std::thread::sleep(Duration::from_millis(50));
            before.is_some() && sleeps_of("cw-pool") == before
        });
        let before = sleeps_of("cw-pool");
        for order in [0, 5, 7] {
            for _ in 0..500 {
                drop(pool.zalloc(order).expect("a block").into_dirty());
                // Long enough for a woken thread to run.
                std::thread::yield_now();
            }
        }
        assert!(pool.figures().hot_zeroed > 0);
        assert_eq!(sleeps_of("cw-pool"), before, "it slept through");
    }
}

/// An order that comes while it decides to rest is not slept through.
#[test]
fn paused_resumed_and_stopped_at_once_it_always_ends() {
    for round in 0..300 {
        let pool = builder(eager()).capacity(1 << 20).made();
        drop(pool.alloc(0).expect("a page"));
        pool.pause_scrubber();
        if round % 3 != 0 {
            pool.resume_scrubber();
        }
    }
}

#[test]
fn in_the_middle_of_much_work_it_stops_when_told() {
    // Its own limit makes the work last: 64 KiB at a time, 1 MiB a second.
    let scrub = Scrub { bytes_per_second: 1 << 20, chunk: 64 << 10, ..eager() };
    let pool = builder(scrub).made();
    let begun = Instant::now();
    pool.alloc_bytes(16 << 20).expect("much").fill(1);
    until("work begun", || pool.figures().scrubbed > 0);
    pool.pause_scrubber();
    until("rest", || state(&pool) == ScrubberState::Paused);
    let at = pool.figures().scrubbed;
    // The first chunk comes at once.
    let most = (64 << 10) as f64 + begun.elapsed().as_secs_f64() * f64::from(1 << 20);
    assert!(at as f64 <= most, "the byte rate held: {at} of {most}");
    std::thread::sleep(Duration::from_millis(150));
    let stats = pool.figures();
    assert_eq!((stats.scrubbed, stats.in_flight), (at, 0), "nothing after the pause");
    assert_eq!(stats.dirty + at, 16 << 20);
    pool.is_sound();
}

#[test]
fn it_gives_up_when_nobody_wants_zeroes_and_comes_back_when_somebody_does() {
    let pool = builder(Scrub { unused_limit: 4 << 20, ..eager() }).made();
    until("given up", || {
        pool.alloc(8).expect("a block").fill(1);
        std::thread::sleep(Duration::from_millis(3));
        state(&pool) == ScrubberState::Unused
    });
    let at = pool.figures().scrubbed;
    pool.alloc(8).expect("a block").fill(1);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(pool.figures().scrubbed, at, "off");
    // Enough requests that one of them misses.
    let wanted: Vec<_> = (0..16).map_while(|_| pool.zalloc(8).ok()).collect();
    drop(wanted);
    until("back", || pool.figures().scrubbed > at);
}

#[test]
fn orders_above_the_chunk_are_zeroed_whole_where_stop_says_so() {
    let scrub = Scrub { start: 9, stop: 9, chunk: 64 << 10, ..eager() };
    let pool = builder(scrub).made();
    pool.alloc(10).expect("a block").fill(1);
    until("zeroed", || {
        let stats = pool.figures();
        stats.orders[9..].iter().all(|order| order.dirty == 0) && stats.in_flight == 0
    });
    assert!(pool.figures().scrubbed >= 2 << 20);
    pool.check_zeros().expect("zero");
}

#[test]
fn the_pool_goes_away_in_the_middle_of_scrubbing() {
    for _ in 0..10 {
        let pool = builder(Scrub { chunk: 16 << 10, ..eager() }).made();
        pool.alloc_bytes(16 << 20).expect("much").fill(1);
        until("begun", || pool.figures().scrubbed > 0);
        drop(pool);
    }
}

/// A program whose use rises finds memory that is there. The scrubber itself never wakes: no block
/// is so large.
fn growing(ahead: usize) -> Pool {
    let scrub = Scrub { start: 18, ..eager() };
    builder(scrub).grow_ahead(ahead).made()
}

#[test]
fn a_pool_grows_ahead_of_need_by_a_sixteenth_of_what_is_in_use_and_no_more() {
    let pool = growing(1 << 20);
    let mut held = vec![pool.zalloc_bytes(16 << 20).expect("16 MiB")];
    let figures = || pool.figures();
    until("a sixteenth of sixteen mebibytes", || figures().zero_resident == 1 << 20);
    let before = figures();
    assert_eq!(before.grown_ahead, 1 << 20);
    held.push(pool.zalloc_bytes(1 << 20).expect("1 MiB"));
    let after = figures();
    assert_eq!(after.populated, before.populated, "it met no fault");
    assert_eq!(after.zero_hits, before.zero_hits + 1);
    held.push(pool.zalloc_bytes(8 << 20).expect("8 MiB"));
    // One mebibyte is the most; where more than half of that is left, nothing is done.
    until("half of one mebibyte", || figures().zero_resident >= 512 << 10);
    std::thread::sleep(Duration::from_millis(20));
    assert!(figures().zero_resident <= 1 << 20);
    pool.check_zeros().expect("zero");
    // Up to the limit, and not beyond.
    while let Ok(block) = pool.zalloc_bytes(1 << 20) {
        held.push(block);
    }
    let bytes: usize = held.iter().map(|block| block.len()).sum();
    assert_eq!((bytes as u64, figures().managed), (32 << 20, 32 << 20), "all of it can be had");
    pool.check().expect("sound");
}

/// Use that goes up and down is not a rise: what is resident stays near the peak.
#[test]
fn a_program_whose_use_goes_up_and_down_does_not_make_the_pool_grow_each_time() {
    let pool = growing(8 << 20);
    for _ in 0..20 {
        let held: Vec<_> = (0..12).map(|_| pool.alloc_bytes(1 << 20).expect("1 MiB")).collect();
        std::thread::sleep(Duration::from_millis(2));
        drop(held);
    }
    let stats = pool.figures();
    assert!(stats.resident <= (12 << 20) + (12 << 20) / 16 + (64 << 10), "{stats:?}");
}

#[test]
fn nothing_grows_ahead_unless_it_is_asked_for_or_while_the_scrubber_is_paused() {
    for (ahead, paused) in [(0, false), (8 << 20, true)] {
        let pool = growing(ahead);
        if paused {
            until("paused", || pool.pause_scrubber());
        }
        let held: Vec<_> = (0..16).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
        // Longer than it takes to wake a thread; where it does nothing, nothing is waited for.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(pool.figures().grown_ahead, 0, "{ahead}, {paused}");
        drop(held);
        if paused {
            let held: Vec<_> =
                (0..16).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
            let more = pool.zalloc_bytes(4 << 20).expect("4 MiB");
            pool.resume_scrubber();
            until("resumed", || pool.figures().grown_ahead > 0);
            drop((held, more));
        }
    }
}

/// Beside a thread that has the only CPU, it takes little, says so, and gets done.
#[test]
fn where_no_cpu_is_idle_it_takes_a_small_share_and_does_not_starve() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let name = "scrubber::where_no_cpu_is_idle_it_takes_a_small_share_and_does_not_starve";
    if !has_its_own_process(name) {
        return;
    }
    let all = rustix::thread::sched_getaffinity(None).expect("CPUs");
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("a CPU"));
    // All threads: the scrubber's own is started with the CPUs that the process had at first.
    let bind = || {
        for task in std::fs::read_dir("/proc/self/task").expect("threads").flatten() {
            let number = task.file_name().to_string_lossy().parse().expect("a thread's number");
            let thread = rustix::process::Pid::from_raw(number);
            rustix::thread::sched_setaffinity(thread, &one).expect("bound");
        }
    };
    let pool = builder(Scrub { cpu_share: 0.5, ..eager() }).made();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        bind();
        pool.alloc_bytes(16 << 20).expect("much").fill(1);
        until("it gives way", || pool.figures().load_rests > 0 || is_clean(&pool));
        until("zeroed all the same", || is_clean(&pool));
        over.store(true, Ordering::Relaxed);
    });
    assert!(pool.figures().load_rests > 0, "it noticed that it waits");
}
