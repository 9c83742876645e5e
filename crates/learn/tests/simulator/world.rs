//! A cache, time, and programs of copies, readers and writers.

use cachewise_learn::Way;
use cachewise_learn::trial::{Budget, Call, Clock, Left, Trial};

/// So many chunks are all memory.
pub const CHUNKS: usize = 4096;
/// Bytes of one.
pub const CHUNK: usize = 4096;

/// What a chunk costs, in ns: found in the cache, fetched, and written around it.
const HIT: u64 = 1000;
const MISS: u64 = 4000;
const AROUND: u64 = 3000;

/// A range of chunks.
pub type Range = std::ops::Range<usize>;

/// What a thread does next.
#[derive(Clone, Debug)]
pub enum Op {
    /// A copy at a call site.
    Copy { site: usize, src: Range, dst: Range },
    /// Reads.
    Read(Range),
    /// Writes in part.
    Write(Range),
    /// Computes, for so many ns.
    Work(u64),
}

/// Least recently used chunks leave first: a doubly linked list through arrays.
pub struct Cache {
    next: Vec<usize>,
    previous: Vec<usize>,
    inside: Vec<bool>,
    length: usize,
    capacity: usize,
    /// Of chunks that are fetched, one in so many stays: as shared caches do that protect what they
    /// have, and take several rounds to change their minds.
    stays: u32,
    random: fastrand::Rng,
}

const HEAD: usize = CHUNKS;

impl Cache {
    fn new(capacity: usize, stays: u32) -> Cache {
        Cache {
            next: vec![HEAD; CHUNKS + 1],
            previous: vec![HEAD; CHUNKS + 1],
            inside: vec![false; CHUNKS],
            length: 0,
            capacity,
            stays,
            random: fastrand::Rng::with_seed(1),
        }
    }

    fn remove(&mut self, chunk: usize) -> bool {
        if !std::mem::take(&mut self.inside[chunk]) {
            return false;
        }
        let (before, after) = (self.previous[chunk], self.next[chunk]);
        self.next[before] = after;
        self.previous[after] = before;
        self.length -= 1;
        true
    }

    /// Whether it was there; it is now.
    fn touch(&mut self, chunk: usize) -> bool {
        let hit = self.remove(chunk);
        if !hit && self.stays > 1 && self.random.u32(..self.stays) != 0 {
            return false;
        }
        let first = self.next[HEAD];
        self.next[chunk] = first;
        self.previous[chunk] = HEAD;
        self.previous[first] = chunk;
        self.next[HEAD] = chunk;
        self.inside[chunk] = true;
        self.length += 1;
        if self.length > self.capacity {
            self.remove(self.previous[HEAD]);
        }
        hit
    }

    fn read(&mut self, range: Range) -> u64 {
        range.map(|chunk| if self.touch(chunk) { HIT } else { MISS }).sum()
    }

    fn copy(&mut self, way: Way, src: Range, dst: Range) -> u64 {
        let read = self.read(src);
        let written: u64 = match way {
            Way::Temporal => self.read(dst),
            Way::NonTemporal => dst
                .map(|chunk| {
                    self.remove(chunk);
                    AROUND
                })
                .sum(),
        };
        read + written
    }
}

/// Disturbance of every piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Up to this share more or less.
    pub share: f64,
    /// One piece in so many takes `times` as long; 0 for none.
    pub rare: u32,
    pub times: f64,
}

pub const QUIET: Noise = Noise { share: 0.03, rare: 0, times: 1.0 };
pub const LOUD: Noise = Noise { share: 0.15, rare: 300, times: 30.0 };

/// A program: what each thread does in its n-th round.
pub struct Program<'a> {
    pub threads: usize,
    pub sites: usize,
    pub capacity: usize,
    /// See [`Cache`].
    pub stays: u32,
    pub noise: Noise,
    #[allow(clippy::type_complexity)]
    pub round: Box<dyn Fn(usize, usize, &mut fastrand::Rng) -> Vec<Op> + 'a>,
}

/// Who says which way.
pub enum Chooser {
    Always(Way),
    Learner { trials: Vec<Trial>, budget: Budget, usual: Way },
}

impl Chooser {
    pub fn learner(sites: usize, usual: Way, budget: Budget, seed: u64) -> Chooser {
        let trials = (0..sites).map(|site| Trial::new(usual, seed * 1000 + site as u64 * 7919 + 1));
        Chooser::Learner { trials: trials.collect(), budget, usual }
    }

    /// The next run of the same program, which knows what the last one left.
    pub fn resumed(&self, left: &[Left], seed: u64) -> Chooser {
        let Chooser::Learner { budget, usual, .. } = *self else { panic!("no learner") };
        let trials = left.iter().map(|left| Trial::resume(usual, seed * 1000 + 1, left)).collect();
        Chooser::Learner { trials, budget, usual }
    }

    pub fn left(&self, site: usize) -> Left {
        let Chooser::Learner { trials, .. } = self else { panic!("no learner") };
        trials[site].left()
    }
}

/// Runs so many rounds of each thread; the total time of all threads, by tenths of the run.
pub fn run(program: &Program<'_>, rounds: usize, seed: u64, chooser: &mut Chooser) -> [u64; 10] {
    let mut cache = Cache::new(program.capacity, program.stays);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut times = vec![0u64; program.threads];
    let mut done = vec![0usize; program.threads];
    let mut bytes = vec![0u64; program.threads];
    let mut clocks = vec![vec![Clock::STOPPED; program.sites]; program.threads];
    let mut tenths = [0; 10];
    while let Some(thread) =
        (0..program.threads).filter(|t| done[*t] < rounds).min_by_key(|t| times[*t])
    {
        let began = times[thread];
        for op in (program.round)(thread, done[thread], &mut rng) {
            let plain = match op {
                Op::Copy { site, src, dst } => {
                    let way = match chooser {
                        Chooser::Always(way) => *way,
                        Chooser::Learner { trials, budget, usual } => {
                            let clock = &mut clocks[thread][site];
                            let call = Call { n: src.len() * CHUNK, before: bytes[thread] };
                            bytes[thread] += call.n as u64;
                            let now = || times[thread];
                            trials[site].call(budget, clock, &call, now).unwrap_or(*usual)
                        }
                    };
                    cache.copy(way, src, dst)
                }
                Op::Read(range) | Op::Write(range) => cache.read(range),
                Op::Work(time) => time,
            };
            let Noise { share, rare, times: factor } = program.noise;
            let mut time = plain as f64 * (1.0 + share * (2.0 * rng.f64() - 1.0));
            if rare > 0 && rng.u32(..rare) == 0 {
                time *= factor;
            }
            times[thread] += time as u64;
        }
        tenths[done[thread] * 10 / rounds] += times[thread] - began;
        done[thread] += 1;
    }
    tenths
}
