//! Cost of a hand-out and a free, beside touching memory that is there: prezeroed, dirty and
//! draining, one thread and two, with the scrubber resting and at work.
//!
//! `cargo run --release -p cachewise-pages --example speed [MiB]`; on an idle machine.

use cachewise_pages::{PageSize, Pool, PoolError, Scrub};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

fn pool(bytes: usize, pages: PageSize, scrubbing: bool) -> Result<Pool, PoolError> {
    let scrub = Scrub {
        enabled: scrubbing,
        start: 0,
        load: f64::INFINITY,
        cpu_share: 1.0,
        min_idle: Duration::ZERO,
        unused_limit: u64::MAX,
        ..Scrub::default()
    };
    Pool::builder().capacity(bytes).initial(bytes).page_size(pages).scrub(scrub).build()
}

fn median(mut found: Vec<f64>) -> f64 {
    found.sort_unstable_by(f64::total_cmp);
    found[found.len() / 2]
}

fn touch(page: NonNull<u8>, lines: usize) {
    for line in 0..lines {
        // SAFETY: a page that the caller holds.
        unsafe { page.as_ptr().wrapping_add(line * (4096 / lines)).write_volatile(1) };
    }
}

/// Nanoseconds a page takes to be taken and touched, and to be given back, by each of some threads.
fn taken(
    pool: &Pool,
    (pages, lines, threads): (usize, usize, usize),
    prepare: impl Fn(),
) -> (f64, f64) {
    let (mut takes, mut frees) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 1 {
        prepare();
        let gate = Barrier::new(threads);
        let found: Vec<(Instant, Instant, f64)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut held = vec![NonNull::dangling(); pages / threads];
                        held.clear();
                        gate.wait();
                        let begun = Instant::now();
                        for _ in 0..pages / threads {
                            if let Ok(page) = pool.zalloc_raw(0) {
                                touch(page, lines);
                                held.push(page);
                            }
                        }
                        let ended = Instant::now();
                        let count = held.len().max(1) as f64;
                        gate.wait();
                        let freeing = Instant::now();
                        for page in held {
                            // SAFETY: taken above and not used any more.
                            let freed = unsafe { pool.free_raw(page, 0) };
                            debug_assert!(freed.is_ok());
                        }
                        (begun, ended, freeing.elapsed().as_secs_f64() * 1e9 / count)
                    })
                })
                .collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
        let begun = found.iter().map(|part| part.0).min();
        let ended = found.iter().map(|part| part.1).max();
        let (Some(begun), Some(ended)) = (begun, ended) else { continue };
        // The first round makes caches and faults in bookkeeping.
        if round > 0 {
            takes.push((ended - begun).as_secs_f64() * 1e9 / (pages / threads * threads) as f64);
            frees.push(found.iter().map(|part| part.2).sum::<f64>() / found.len() as f64);
        }
    }
    (median(takes), median(frees))
}

/// Nanoseconds a page that the lists take under the lock, once for a refill of 256 pages and once
/// for 128 given back, by a thread that has all of it in its cache.
fn under_the_lock() -> (f64, f64) {
    use cachewise_pages::buddy::{Buddy, Core, Frame, State, split_cached};
    const PAGES: usize = 16 << 10;
    let frames: Vec<Frame> = (0..PAGES).map(|_| Frame::new()).collect();
    let mut core = Core::new(18);
    let mut buddy = Buddy::new(&mut core, &frames);
    buddy.extend(PAGES as u32, State::ZeroResident, 0);
    let (mut takes, mut frees) = (Vec::new(), Vec::new());
    let mut pieces = [0_u32; 32];
    for _ in 0..200 {
        let mut all = Vec::with_capacity(PAGES);
        let mut took = 0.0;
        loop {
            let begun = Instant::now();
            let found = buddy.take_cached_of(State::ZeroResident, 0, 256, &mut pieces);
            took += begun.elapsed().as_secs_f64();
            if found == 0 {
                break;
            }
            for piece in &pieces[..found] {
                let mut blocks = [*piece; 256];
                let filled = split_cached(&frames, 0, &mut blocks, 1);
                all.extend_from_slice(&blocks[..filled]);
            }
        }
        takes.push(took * 1e9 / all.len() as f64);
        let mut gave = 0.0;
        for batch in all.chunks_mut(128) {
            let begun = Instant::now();
            buddy.free_cached_all(batch, 0, true, 0);
            gave += begun.elapsed().as_secs_f64();
        }
        frees.push(gave * 1e9 / PAGES as f64);
    }
    (median(takes), median(frees))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (take, free) = under_the_lock();
    println!("lists under the lock: {take:.2} ns a page taken, {free:.2} ns a page given back");
    let mib: usize = std::env::args().nth(1).map_or(Ok(256), |word| word.parse())?;
    let (bytes, pages) = (mib << 20, (mib << 20) / 4096);
    println!("{mib} MiB, ns per 4 KiB page, median of {ROUNDS} rounds");
    for size in [PageSize::Base, PageSize::Transparent] {
        // Both threads' caches hold pages that the other lacks.
        let pool = pool(bytes + (8 << 20), size, false)?;
        let block = pool.alloc_bytes(bytes)?;
        let raw = |lines| {
            let times = (0..ROUNDS).map(|_| {
                let begun = Instant::now();
                for page in 0..pages {
                    let page = block.as_ptr().wrapping_add(page * 4096).cast_mut();
                    if let Some(page) = NonNull::new(page) {
                        touch(page, lines);
                    }
                }
                begun.elapsed().as_secs_f64() * 1e9 / pages as f64
            });
            median(times.collect())
        };
        let zeroed = {
            let times = (0..ROUNDS).map(|_| {
                let begun = Instant::now();
                for page in 0..pages {
                    let page = block.as_ptr().wrapping_add(page * 4096).cast_mut();
                    // SAFETY: inside the block, which is held.
                    unsafe { black_box(page).write_bytes(0, 4096) };
                }
                begun.elapsed().as_secs_f64() * 1e9 / pages as f64
            });
            median(times.collect())
        };
        let (one, all) = (raw(1), raw(64));
        println!("{size:?}: raw touch {one:.1}, all lines {all:.1}, zeroing {zeroed:.1}");
        drop(block);
        let scrub = || {
            pool.flush_thread_cache();
            let _ = pool.scrub_now(usize::MAX);
        };
        for threads in [1, 2] {
            for (name, lines, prezeroed) in [
                ("prezeroed, one line", 1, true),
                ("prezeroed, all lines", 64, true),
                ("dirty, one line", 1, false),
            ] {
                let prepare = || if prezeroed { scrub() } else { pool.flush_thread_cache() };
                let (take, free) = taken(&pool, (pages, lines, threads), prepare);
                println!("  {threads} thread(s), {name}: take and touch {take:.1}, free {free:.1}");
            }
        }
    }
    let pool = pool(64 << 20, PageSize::Base, true)?;
    let mut times = Vec::with_capacity(2_000_000);
    let mut held = std::collections::VecDeque::new();
    for call in 0..2_000_000 {
        let begun = Instant::now();
        let page = pool.zalloc_raw(0)?;
        times.push(begun.elapsed().as_nanos() as u64);
        touch(page, 1);
        held.push_back(page);
        if held.len() > 64
            && let Some(page) = held.pop_front()
        {
            // SAFETY: taken above and not used any more.
            unsafe { pool.free_raw(page, 0) }?;
        }
        if call % 64 == 0 {
            pool.alloc(6)?[0] = 1;
        }
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "hand-out while scrubbing, clock included: p50 {} ns, p99 {} ns, p99.9 {} ns, p99.99 {} ns",
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999)
    );
    Ok(())
}
