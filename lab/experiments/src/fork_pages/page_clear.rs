//! `page-clear`: pages cleared, touched and read again (seed 000.7, .11, .13).
//!
//! One loop clears every page of a buffer and touches its byte 0 (the operation), then reads every
//! 32nd byte of the buffer (the reader). The seed's buffers of 32k and 320k were half of its CPU's
//! L1 and two and a half times all its caches, so each level of this machine gets the same two.

use super::{self as loops, Words};
use crate::prelude::*;

const WORDS: Words = Words { work: "zeroing", last: "alias", of: aliases };

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-clear",
    about: "pages zeroed, touched and read: buffers of 2004 and of the sizes of this machine's caches",
    seeds: &["000.1-7", "000.9", "000.11-13", "000.15"],
    operations: &[Operation::Zero],
    takes: &["--kernels", "--size"],
    classic: "buffers of 32k and 320k, five runs of 200000 and 20000 loops",
    tables: |rows| loops::tables(rows, &WORDS),
    figures,
    run: Some(run),
    ..PLAIN
};

/// Pages that a run of the seed zeroes, whatever its buffer: 200,000 loops of 32k, 20,000 of 320k.
const PAGES_PER_RUN: usize = 1_600_000;

/// The period's kernels, then today's (seed 000.15).
const KERNELS: &str = "zero.rep.stosl zero.mmx zero.mmx.nt zero.sse zero.sse.nt zero.rep.stosb \
    zero.clzero zero.avx zero.avx.nt zero.avx512 zero.avx512.nt";

fn figures() -> Vec<Figure> {
    let whole = "Clear, touch and read again: time over libc's";
    let parts = "Clearing and touching, and reading afterwards";
    vec![Figure::curve(whole, "size", "total_ratio"), Figure::bars(parts, "cost").by(&["size"])]
}

/// Clears page by page, and reads every 32nd byte afterwards.
fn clearer<'c>(routine: &Routine) -> Call<'c> {
    let function = routine.function;
    let clear = move |place: &Place| {
        for page in 0..place.n / PAGE_SIZE {
            let dst = place.dst.wrapping_add(page * PAGE_SIZE);
            once(function, &Place { dst, src: dst, n: PAGE_SIZE });
            // SAFETY: a page of the place.
            unsafe { dst.write_volatile(1) };
        }
    };
    let read = |place: &Place| {
        // SAFETY: the place that was just cleared.
        unsafe { Reader::every(place.dst, place.n, 32) };
    };
    let calls = move |places: &[Place]| places.iter().for_each(clear);
    let call = Call::new(routine.name.as_str(), calls).reading(read).made_of(function, None);
    call.staying(routine.name == LIBC)
}

fn run(setting: &mut Setting) -> Result {
    setting.whole("pages", PAGE_SIZE)?;
    let own = || listed(KERNELS.split(' '), Operation::Zero);
    let kernels = asked_or(setting, &[Operation::Zero], own)?.into_iter().map(Routine::from);
    let routines: Vec<_> =
        std::iter::once(libc_reference(Operation::Zero)).chain(kernels).collect();
    let sizes = sizes(setting);
    let weight = |(size, _): &(usize, String)| (*size).max(1 << 20) as f64;
    setting.through(sizes, weight, |setting, (size, relation)| {
        let pages = size / PAGE_SIZE;
        let loops = (PAGES_PER_RUN / pages).max(1);
        let cell = Cell::reused(relation.as_str()).read_after(Delay::None, 1.0);
        let mut task = setting.task(Operation::Zero, size, cell);
        task.plan.max_sample_ns = 5e7;
        task.plan.calls = setting.options.classic.then_some(loops);
        let figures = [(LOOPS, loops as f64), (ZEROED, pages as f64), (COPIED, 0.0)];
        let call = |routine| clearer(routine).told(move |row| row.with(&figures));
        setting.calls(&task, routines.iter().map(call).collect())?;
        Ok(format!("{} {relation}", bytes(size)))
    })
}

/// Buffers with their relation to the seed's CPU or to this one's caches.
fn sizes(setting: &Setting) -> Vec<(usize, String)> {
    let caches = &setting.bench.machine.caches;
    if !setting.options.sizes.is_empty() {
        return setting.options.sizes.iter().map(|&size| (size, relation(size, caches))).collect();
    }
    let mut sizes = vec![(32 << 10, "seed 32k".to_owned()), (320 << 10, "seed 320k".to_owned())];
    if setting.options.classic {
        return sizes;
    }
    for level in [Level::L1, Level::L2, Level::Llc] {
        if level == Level::Llc && !caches.has_l3() {
            continue;
        }
        let half = caches.bytes(level) / 2;
        for (halves, text) in [(1, "half of"), (5, "2.5 x")] {
            let size = (halves * half).next_multiple_of(PAGE_SIZE);
            if !sizes.iter().any(|(known, _)| *known == size) {
                sizes.push((size, format!("{text} {level}")));
            }
        }
    }
    if setting.options.quick {
        // The seed's own buffers stand in for those of L1.
        sizes.retain(|(_, text)| !text.ends_with("L1") && text != "half of LLC");
    }
    sizes
}
