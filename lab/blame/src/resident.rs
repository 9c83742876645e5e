//! Sampled pages that are still resident, looked at now and then while the program runs (proc(5), `pagemap`).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Time between two looks.
const OFTEN: Duration = Duration::from_millis(50);
/// The part of a run, at its end, whose looks count.
const LAST: f64 = 0.2;
/// Two events of one fault are no further apart.
const SAME_FAULT: u64 = 100_000;
/// A page is resident (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;

/// A page that a sampled fault made resident.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Bytes that the sample stands for.
    bytes: u64,
    /// The number of its stack.
    stack: usize,
    /// Nanoseconds by the events' clock.
    time: u64,
}

/// Pages, and which of them were resident when.
pub(crate) struct Resident {
    begun: Instant,
    pages: Vec<Page>,
    /// By process and address: a page that faults again has a new stack.
    newest: BTreeMap<(i32, u64), usize>,
    looks: Vec<(Duration, Vec<usize>)>,
}

impl Resident {
    pub(crate) fn new() -> Resident {
        Resident {
            begun: Instant::now(),
            pages: Vec::new(),
            newest: BTreeMap::new(),
            looks: Vec::new(),
        }
    }

    /// A fault made a page resident.
    pub(crate) fn add(&mut self, process: i32, address: u64, bytes: u64, stack: usize, time: u64) {
        self.newest.insert((process, address), self.pages.len());
        self.pages.push(Page { bytes, stack, time });
    }

    /// A page faulted: one that did so before was given back meanwhile, and its stack has no part in what is there now.
    pub(crate) fn faulted(&mut self, process: i32, address: u64, time: u64) {
        if let Some(&at) = self.newest.get(&(process, address))
            && self.pages[at].time + SAME_FAULT < time
        {
            self.newest.remove(&(process, address));
        }
    }

    /// Looks if it is time.
    pub(crate) fn look(&mut self) {
        let now = self.begun.elapsed();
        if self.looks.last().is_some_and(|(last, _)| now < *last + OFTEN) {
            return;
        }
        let page_size = rustix::param::page_size() as u64;
        let mut file: Option<(i32, Option<File>)> = None;
        let mut resident = Vec::new();
        let mut is_alive = false;
        for (&(process, address), &at) in &self.newest {
            if file.as_ref().is_none_or(|(of, _)| *of != process) {
                file = Some((process, File::open(format!("/proc/{process}/pagemap")).ok()));
            }
            let Some((_, Some(map))) = &file else { continue };
            let mut entry = [0; 8];
            if map.read_exact_at(&mut entry, address / page_size * 8).is_ok() {
                is_alive = true;
                if u64::from_ne_bytes(entry) & PRESENT != 0 {
                    resident.push(at);
                }
            }
        }
        // All have ended: what they held before is the answer.
        if is_alive {
            self.looks.push((now, resident));
        }
    }

    /// Bytes by stack, of the look with the median sum among the last ones.
    pub(crate) fn by_stack(&self) -> BTreeMap<usize, u64> {
        let Some((last, _)) = self.looks.last() else { return BTreeMap::new() };
        let from = last.mul_f64(1.0 - LAST);
        let sum = |pages: &[usize]| pages.iter().map(|at| self.pages[*at].bytes).sum::<u64>();
        let mut counted: Vec<&Vec<usize>> =
            self.looks.iter().filter(|(at, _)| *at >= from).map(|(_, pages)| pages).collect();
        counted.sort_by_key(|pages| sum(pages));
        let mut stacks = BTreeMap::new();
        for at in counted[counted.len() / 2] {
            *stacks.entry(self.pages[*at].stack).or_default() += self.pages[*at].bytes;
        }
        stacks
    }
}
