//! Cost of the choice among entry stubs for a call, which a GNU indirect function would
//! save: the exported function, which compares one number, against the stub it leads to, called by
//! itself. `cargo run --release -p cachewise --example entry_choice`;
//! `docs/decisions/entry-stubs.md` says why there is a choice.

use cachewise::entry;
use cachewise::raw;
use cachewise_kernels::kernel::CopyFn;
use cachewise_kernels::{Features, Function, Operation};
use std::hint::black_box;
use std::time::Instant;

/// Rounds of one sample of each in turn, and the calls of a sample.
const ROUNDS: usize = 201;
const CALLS: usize = 100_000;

fn main() {
    cachewise::init();
    println!("copies through a pointer; ns a call: by the stub itself, and what the choice adds");
    let copies = entry::variants(Operation::Copy);
    for (number, entry) in copies.iter().enumerate() {
        let Function::Copy(stub) = entry.function else { continue };
        if !entry.runs_on(Features::detect()) {
            continue;
        }
        entry::choose(Operation::Copy, number as u8);
        for (name, sizes) in [("24 B", vec![24]), ("1 to 128 B", mixed())] {
            // Half of the rounds begin with the one, half with the other.
            let pairs: Vec<[f64; 2]> = (0..ROUNDS)
                .map(|round| {
                    let (first, second): (CopyFn, CopyFn) = match round % 2 {
                        0 => (stub, raw::copy_nonoverlapping),
                        _ => (raw::copy_nonoverlapping, stub),
                    };
                    let [a, b] = [time(first, &sizes), time(second, &sizes)];
                    if round % 2 == 0 { [a, b] } else { [b, a] }
                })
                .collect();
            let alone = middle(pairs.iter().map(|pair| pair[0]).collect(), 0.5);
            let added: Vec<f64> = pairs.iter().map(|[stub, chosen]| chosen - stub).collect();
            // The interval of a median: order statistics at half the rounds and 1.96 deviations of
            // sqrt(n) / 2.
            let half = 0.98 / (ROUNDS as f64).sqrt();
            let at = |part| middle(added.clone(), part);
            let (least, most) = (at(0.5 - half), at(0.5 + half));
            println!(
                "{:16} {name:12} {alone:6.3}  {:+.3} ({least:+.3} .. {most:+.3})",
                entry.name,
                at(0.5)
            );
        }
    }
}

/// 512 sizes of which small ones are more frequent, in an order no predictor learns at once.
fn mixed() -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut size = || {
        let octave = 1 << random.u32(0..7);
        random.usize(octave..=2 * octave)
    };
    (0..512).map(|_| size()).collect()
}

fn time(copy: CopyFn, sizes: &[usize]) -> f64 {
    let (from, mut to) = ([1u8; 256], [0u8; 256]);
    let copy = black_box(copy);
    let start = Instant::now();
    for size in sizes.iter().cycle().take(CALLS) {
        // SAFETY: at most 128 bytes of two buffers of 256.
        unsafe { copy(to.as_mut_ptr(), from.as_ptr(), *size) };
    }
    let taken = start.elapsed();
    black_box(&to);
    taken.as_secs_f64() * 1e9 / CALLS as f64
}

/// The value below which this part of all lies.
fn middle(mut all: Vec<f64>, part: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * part).round() as usize]
}
