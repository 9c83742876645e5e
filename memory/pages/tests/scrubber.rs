//! The scrubber: when it works, when it rests, what it costs. Nothing here depends on how fast it
//! is.

use crate::common::{Asked, Made, eager, has_its_own_process, is_clean, until};
use cachewise_pages::{Builder, EngineChoice, PageSize, Pool, Scrub, ScrubberState};
use std::time::Duration;

fn builder(scrub: Scrub) -> Builder {
    Pool::builder().capacity(32 << 20).cache_blocks(0).page_size(PageSize::Base).scrub(scrub)
}

fn state(pool: &Pool) -> ScrubberState {
    pool.figures().scrubber
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
fn scrubber_keeps_its_share_and_stops_in_the_middle_of_much_work() {
    // A millionth of a CPU makes the work last: after one chunk it rests for seconds.
    let scrub = Scrub { cpu_share: 1e-6, chunk: 64 << 10, ..eager() };
    let pool = builder(scrub).made();
    pool.alloc_bytes(16 << 20).expect("much").fill(1);
    until("work begun", || pool.figures().scrubbed > 0);
    until("rest", || pool.pause_scrubber() && state(&pool) == ScrubberState::Paused);
    let at = pool.figures().scrubbed;
    assert!(at <= 128 << 10, "its share held: {at}");
    std::thread::sleep(Duration::from_millis(50));
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
fn the_pool_goes_away_in_the_middle_of_scrubbing() {
    for _ in 0..10 {
        let pool = builder(Scrub { chunk: 16 << 10, ..eager() }).made();
        pool.alloc_bytes(16 << 20).expect("much").fill(1);
        until("begun", || pool.figures().scrubbed > 0);
        drop(pool);
    }
}

/// Memory that nobody used for so long goes back, as large as a huge page where there are huge pages; what was used
/// lately stays.
#[test]
fn idle_memory_goes_back_by_itself() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        let idle = Duration::from_millis(30);
        let made = builder(Scrub { min_idle: Duration::ZERO, ..Scrub::default() });
        let pool = made.page_size(pages).give_back(idle).made();
        let kept = pool.zalloc(2).expect("a block");
        pool.alloc_bytes(16 << 20).expect("much").fill(1);
        until("most of it went back", || pool.figures().resident <= 4 << 20);
        assert!(pool.figures().trimmed >= 12 << 20 && kept.iter().all(|byte| *byte == 0));
        pool.is_sound();
        let late = builder(eager()).page_size(pages).give_back(Duration::from_secs(3600)).made();
        late.alloc_bytes(16 << 20).expect("much").fill(1);
        until("zeroed", || is_clean(&late));
        assert_eq!(late.figures().trimmed, 0);
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
