//! A page that was just used, zeroed at hand-out, against one that was zeroed long ago and lies in memory
//! (seed 003.17): which is sooner ready, by how much of it is touched then?

use super::arms::PAGE_LINES;
use crate::prelude::*;

/// Pages prezeroed for a sample: those of a hot one fit half of the L2, these no cache.
const SAMPLE: usize = 512;

/// A row for each kind of page and number of lines.
pub(super) fn rows(setting: &mut Setting) -> Result<Vec<Row>> {
    let seed = setting.bench.seed;
    let caches = &setting.bench.machine.caches;
    let hot_pages = (caches.l2.bytes / 2 / PAGE_SIZE).clamp(1, SAMPLE);
    let cold_bytes = SAMPLE * PAGE_SIZE;
    // Reading this in between drives the cold pages out of every cache.
    let away = Arena::new(2 * caches.llc.bytes.min(64 << 20), PagePolicy::Huge, seed)?;
    let hot = Arena::new(hot_pages * PAGE_SIZE, PagePolicy::Huge, seed)?;
    let cold = Arena::new(cold_bytes, PagePolicy::Huge, seed)?;
    let touch = |page: *mut u8, lines: usize| {
        for line in 0..lines {
            // SAFETY: inside a page of an arena of this function's.
            unsafe { page.wrapping_add(line * PAGE_SIZE / lines).write_volatile(1) };
        }
    };
    let sample = &|clock: &Clock, lines: usize, is_hot: bool| {
        if is_hot {
            (0..hot_pages).for_each(|page| {
                touch(hot.as_mut_ptr().wrapping_add(page * PAGE_SIZE), PAGE_LINES)
            });
        } else {
            // SAFETY: the arena's own memory.
            unsafe { cachewise::raw::zero_with(Reuse::Never, cold.as_mut_ptr(), cold_bytes) };
            // SAFETY: an arena's memory is written when it is made.
            unsafe { Reader::every(away.as_mut_ptr(), 2 * caches.llc.bytes.min(64 << 20), 64) };
        }
        let took = clock.took(|| {
            for page in 0..SAMPLE {
                if is_hot {
                    let at = hot.as_mut_ptr().wrapping_add(page % hot_pages * PAGE_SIZE);
                    // SAFETY: the arena's own memory.
                    unsafe { cachewise::raw::zero_with(Reuse::Soon, at, PAGE_SIZE) };
                    touch(at, lines);
                } else {
                    touch(cold.as_mut_ptr().wrapping_add(page * PAGE_SIZE), lines);
                }
            }
        });
        took / SAMPLE as f64
    };
    let kinds = [1, 8, PAGE_LINES].into_iter().flat_map(|lines| [(lines, true), (lines, false)]);
    let timed = kinds.enumerate().map(|(turn, (lines, is_hot))| Timed {
        cell: CellKey::new("zero", PAGE_SIZE, HOT_PAGES).with(&[(LINES, lines as f64)]),
        name: if is_hot { HOT_ZEROED } else { "prezeroed, in memory" }.to_owned(),
        reference: turn & !1,
        calls: SAMPLE,
        take: Box::new(move |clock| Ok(sample(clock, lines, is_hot))),
    });
    setting.contest(timed.collect(), None)
}
