//! `prefault`: from how many threads on it does not pay to touch memory ahead, by page size, for a mapping that is
//! new (fresh) and for one whose pages were given back and come again (recycled).
//!
//! Its names in programs: QEMU's `prealloc-threads`, the JVM's `-XX:+AlwaysPreTouch`, PyTorch's
//! `pinned_num_register_threads`. Each thread touches a part of its own; starting and joining the threads counts.

use crate::backing::Backing;
use crate::prelude::*;
use crate::threads;
use cachewise_measure::units::{bytes, counted};
use memmap2::{Advice, MmapMut, UncheckedAdvice};
use std::time::Instant;

/// States: a mapping that is new, and one whose pages were given back.
const STATES: [&str; 2] = ["fresh", "recycled"];
/// Page sizes: a base page, and a huge page.
const PAGES: [usize; 2] = [PAGE_SIZE, HUGE_PAGE];
/// A further thread pays where it takes this part off the time of fewer.
const PAYS: f64 = 0.05;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Speed of making memory resident, by threads";
    vec![Figure::curve(title, THREADS, "gbps").by(&["state", PAGE_BYTES]).of("fresh|recycled")]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    setting.whole("huge pages", HUGE_PAGE)?;
    let own = if setting.options.quick { 32 << 20 } else { 256 << 20 };
    let most = MemoryBudget::process().limit() / 2 / HUGE_PAGE * HUGE_PAGE;
    let size = setting.sizes_or([own.min(most)])[0];
    if size == 0 || size > most {
        return nothing(format!("{size} bytes do not fit half of the memory budget"));
    }
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<usize> = std::iter::once(1).chain(counts(all)).collect();
    let cells = STATES.into_iter().flat_map(|state| PAGES.map(|page| (state, page))).collect();
    setting.through(cells, |_| threads.len() as f64, |setting, (state, page)| {
        let (rows, note) = cell(setting, size, &threads, state, page)?;
        note.into_iter().try_for_each(|note| setting.out.note(note))?;
        let pays = paying(&rows, &threads);
        let pages = bytes(page as u64);
        setting.out.rows(rows)?;
        setting.out.note(format!(
            "{state} memory, pages of {pages}: {} (QEMU prealloc-threads, JVM -XX:ParallelGCThreads, PyTorch \
             pinned_num_register_threads, Spark parallelInit.threads)",
            counted(pays, "thread")
        ))?;
        Ok(format!("{state} {pages}"))
    })
}

/// Numbers of threads that are tried: powers of two below all, and all.
fn counts(all: usize) -> Vec<usize> {
    let below = (1..).map(|log| 1 << log).take_while(|count| *count < all);
    below.chain((all > 1).then_some(all)).collect()
}

/// The number of threads that pays: the fewest after which the next number saves too little.
fn paying(rows: &[Row], threads: &[usize]) -> usize {
    let mut pays = 0;
    for next in 1..rows.len() {
        if rows[next].median_ns() < rows[pays].median_ns() * (1.0 - PAYS) {
            pays = next;
        }
    }
    threads[pays]
}

fn cell(
    setting: &Setting,
    size: usize,
    threads: &[usize],
    state: &str,
    page: usize,
) -> Result<(Vec<Row>, Option<String>)> {
    let refused = |error| LabError::Nothing(format!("{size} bytes of memory: {error}"));
    let mut kept = mapped(size, page).map_err(refused)?;
    touch(&mut kept, threads[0])?;
    let mut times = vec![Vec::new(); threads.len()];
    let mut backing = Backing::new(size);
    setting.in_turns(threads.len(), page, |at| {
        backing.sample(|| {
            if state == STATES[0] {
                kept = mapped(size, page).map_err(refused)?;
            } else {
                // SAFETY: private memory of which nobody keeps a reference: it reads as zeros afterwards.
                unsafe { kept.unchecked_advise(UncheckedAdvice::DontNeed) }.map_err(refused)?;
            }
            let begun = Instant::now();
            touch(&mut kept, threads[at])?;
            times[at].push(begun.elapsed().as_secs_f64() * 1e9);
            if kept.iter().step_by(page).any(|byte| *byte != 1) {
                return Err(LabError::WrongBytes(format!(
                    "{state}, {page}: a page was not touched"
                )));
            }
            Ok(())
        })
    })?;
    let note = backing.note(&format!("{state} memory, pages of {}", bytes(page as u64)));
    let key = CellKey::new("zero", size, state).with(&[(PAGE_BYTES, page as f64)]);
    let name = |count: usize| counted(count, "thread");
    let row = |(at, count): (usize, &usize)| {
        let cell = key.clone().with(&[(THREADS, *count as f64)]);
        let (ours, theirs) =
            ((&*name(*count), &times[at][..]), (&*name(threads[0]), &times[0][..]));
        setting.compared(cell, ours, theirs)
    };
    Ok((threads.iter().enumerate().map(row).collect(), note))
}

/// Memory that is not resident yet.
fn mapped(size: usize, page: usize) -> std::io::Result<MmapMut> {
    let memory = MmapMut::map_anon(size)?;
    // Without huge pages in the system both are the same: the figures show it.
    let _ = memory.advise(if page == HUGE_PAGE { Advice::HugePage } else { Advice::NoHugePage });
    Ok(memory)
}

/// A byte of each base page is written, each thread a part of its own.
fn touch(memory: &mut [u8], threads: usize) -> Result {
    let part = (memory.len() / threads).next_multiple_of(HUGE_PAGE);
    let write = |part: &mut [u8]| part.iter_mut().step_by(PAGE_SIZE).for_each(|byte| *byte = 1);
    if threads == 1 {
        write(memory);
        return Ok(());
    }
    std::thread::scope(|scope| {
        let mut parts = memory.chunks_mut(part);
        parts.try_for_each(|part| threads::start(scope, move || write(part)).map(drop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_touched_by_any_number_of_threads() {
        for threads in 1..5 {
            let mut memory = mapped(3 * HUGE_PAGE, PAGE_SIZE).expect("memory");
            touch(&mut memory, threads).expect("threads");
            assert!(memory.iter().step_by(PAGE_SIZE).all(|byte| *byte == 1), "{threads}");
        }
    }

    #[test]
    fn a_thread_pays_where_it_takes_a_twentieth_off() {
        let row = |time: f64| Row { operation_ns: vec![time], ..Row::default() };
        let paid =
            |times: &[f64]| paying(&times.iter().copied().map(row).collect::<Vec<_>>(), &[1, 2, 4]);
        assert_eq!(paid(&[100.0, 60.0, 58.0]), 2);
        assert_eq!(paid(&[100.0, 98.0, 60.0]), 4);
        assert_eq!(paid(&[100.0, 99.0, 101.0]), 1);
    }
}
