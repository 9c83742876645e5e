//! Memory that a program's processes hold together, over time.
//!
//! A reading adds up `/proc/PID/smaps_rollup` (proc(5)) over a process and its descendants: proportional shares of
//! anonymous and shared memory, and of what was swapped out; explicit huge pages, which stand in no share; and files of
//! no disk that they have open or mapped and that were made since, whole, since a control group is killed for all of them.
//! Left out is what the system takes back by itself: pages of files, and those that were given back lazily (MADV_FREE). Readings are made on another CPU than the one on which the program's first thread runs, so often that
//! they take 2 % of one CPU. In the part at a run's end of which its level is taken there are three, if they take no more
//! than 5 %: one of them may see a program that is giving its memory back because it ends.

use crate::stats::median;
use cachewise_pages::smaps;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The part of one CPU that the readings take, where that is often enough.
const SHARE: f64 = 0.02;
/// The part that they take at most: of a program that holds much, one reading takes long.
const MOST: f64 = 0.05;
/// The part of a run, at its end, over which its level is the median.
const LAST: f64 = 0.2;
/// Fewest readings in that part.
const LEAST: f64 = 3.0;
/// The part of a run, at its end, over which its slope is estimated.
const SLOPED: f64 = 0.5;
/// Readings whose median cost says when the next one is due.
const RECENT: usize = 9;
/// Most readings that a slope is estimated from: it takes their pairs.
const MOST_SLOPED: usize = 200;
/// Fewer readings have no slope.
const LEAST_SLOPED: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub at: f64,
    /// Bytes that all processes hold.
    pub bytes: f64,
}

/// Reads a program's memory now and then while it runs.
#[derive(Debug)]
pub struct Sampler {
    begun: Instant,
    due: Duration,
    /// Longest time between two readings.
    longest: Duration,
    /// The last time at which the program was seen to run.
    seen: Duration,
    /// Seconds of the day at its beginning.
    since: i64,
    /// Children of this process that are not the program's.
    others: BTreeSet<i32>,
    readings: Vec<Reading>,
    /// CPU seconds of each reading.
    costs: Vec<f64>,
    processes: usize,
    huge: f64,
}

/// Level, slope and peak of the readings of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Bytes after the load: the median of the last readings.
    pub level: f64,
    /// Bytes a second that the level changes by, over the last half of the run; NaN from too few readings.
    pub slope: f64,
    /// The largest reading in bytes.
    pub peak: f64,
    /// Most processes at a time.
    pub processes: usize,
    /// Most bytes in transparent huge pages.
    pub huge: f64,
    /// The part of one CPU that the readings took.
    pub cost: f64,
    pub readings: Vec<Reading>,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler::new()
    }
}

impl Sampler {
    /// A sampler for a program that is started next: children that this process has now are not the program's.
    pub fn new() -> Sampler {
        let own = std::process::id().cast_signed();
        Sampler {
            begun: Instant::now(),
            since: clock_gettime(ClockId::Realtime).tv_sec,
            due: Duration::ZERO,
            longest: Duration::MAX,
            seen: Duration::ZERO,
            others: children_of(own).into_iter().collect(),
            readings: Vec::new(),
            costs: Vec::new(),
            processes: 0,
            huge: 0.0,
        }
    }

    /// A sampler with three readings or more in the last seconds of a run, as far as they take no more than their part of a
    /// CPU.
    pub fn with_last(self, seconds: f64) -> Sampler {
        Sampler { longest: Duration::from_secs_f64(seconds / LEAST), ..self }
    }

    /// Reads once if a reading is due. `alone` says that the program is the only new child of this process, so that
    /// new children which it did not start itself are its orphans.
    pub fn look(&mut self, program: Pid, alone: bool) {
        let now = self.begun.elapsed();
        self.seen = now;
        if now < self.due {
            return;
        }
        let before = cpu_time();
        let program = program.as_raw_nonzero().get();
        let (Share { bytes, huge, .. }, processes) =
            aside(program, || sum(&processes(program, alone.then_some(&self.others)), self.since));
        self.costs.push(cpu_time().saturating_sub(before).as_secs_f64());
        // One reading that had to wait for the program's pages costs many times the others.
        let last = &self.costs[self.costs.len().saturating_sub(RECENT)..];
        let gap = |share: f64| Duration::from_secs_f64(median(last) / share);
        self.due = now + gap(SHARE).min(self.longest.max(gap(MOST)));
        // A program that is ending has nothing any more.
        if bytes > 0.0 {
            self.readings.push(Reading { at: now.as_secs_f64(), bytes });
            self.processes = self.processes.max(processes);
            self.huge = self.huge.max(huge);
        }
    }

    pub fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Summary of the readings: see [`Held::of`].
    pub fn held(self, window: Option<f64>) -> Option<Held> {
        let end = self.seen.as_secs_f64();
        let cost = self.costs.iter().sum::<f64>() / end.max(1e-9);
        let held = Held::of(self.readings, end, window)?;
        Some(Held { processes: self.processes, huge: self.huge, cost, ..held })
    }
}

impl Held {
    /// Summary of the readings of a run that ended then; the level is that of its last seconds, or of its last part.
    /// Without a reading in that, the last one is the level, if it was made in the last half; else there is none.
    pub fn of(readings: Vec<Reading>, end: f64, window: Option<f64>) -> Option<Held> {
        let part = |from: f64| -> Vec<Reading> {
            readings.iter().copied().filter(|reading| reading.at >= from).collect()
        };
        let half = part(end * (1.0 - SLOPED));
        let last = part(end - window.unwrap_or_else(|| last_part(end)));
        let last = if last.is_empty() { vec![*half.last()?] } else { last };
        let bytes = |reading: &Reading| reading.bytes;
        Some(Held {
            level: median(&last.iter().map(bytes).collect::<Vec<_>>()),
            slope: slope(&half),
            peak: readings.iter().map(bytes).fold(0.0, f64::max),
            readings,
            ..Held::default()
        })
    }
}

/// Seconds at the end of a run of that length over which its level is the median.
pub fn last_part(seconds: f64) -> f64 {
    seconds * LAST
}

/// The median of the slopes of all pairs (Theil 1950, Sen 1968): bytes a second; NaN from too few readings.
pub fn slope(readings: &[Reading]) -> f64 {
    if readings.len() < LEAST_SLOPED {
        return f64::NAN;
    }
    let step = readings.len().div_ceil(MOST_SLOPED);
    let some: Vec<&Reading> = readings.iter().step_by(step).collect();
    let pairs = some.iter().enumerate().flat_map(|(at, one)| {
        some[at + 1..].iter().map(move |later| (later.bytes - one.bytes) / (later.at - one.at))
    });
    median(&pairs.filter(|slope| slope.is_finite()).collect::<Vec<_>>())
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Does it on another CPU than the one on which that process's first thread ran last, where there is another.
fn aside<T>(process: i32, work: impl FnOnce() -> T) -> T {
    let moved = || {
        let allowed = sched_getaffinity(None).ok()?;
        let mut others: CpuSet = allowed;
        others.unset(last_cpu(process)?);
        (others.count() > 0).then_some(())?;
        sched_setaffinity(None, &others).ok()?;
        Some(allowed)
    };
    let allowed = moved();
    let done = work();
    // A process that is started next must not inherit it.
    if let Some(allowed) = allowed {
        let _ = sched_setaffinity(None, &allowed);
    }
    done
}

/// The CPU on which a process's first thread ran last (proc(5), field 39 of `stat`).
fn last_cpu(process: i32) -> Option<usize> {
    let stat = fs::read_to_string(place(process).join("stat")).ok()?;
    let cpu = stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()?;
    (cpu < CpuSet::MAX_CPU).then_some(cpu)
}

fn place(process: i32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// Children of a process, by proc(5).
fn children_of(process: i32) -> Vec<i32> {
    let tasks = fs::read_dir(place(process).join("task")).into_iter().flatten().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    children
        .flatten()
        .flat_map(|text| {
            text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// A process and all that descend from it; with `others`, also the children of this process that are not among them.
pub fn processes(program: i32, others: Option<&BTreeSet<i32>>) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let orphans = others.map_or_else(Vec::new, |others| {
        let mut orphans = children_of(own);
        orphans.retain(|child| *child != program && !others.contains(child));
        orphans
    });
    let mut left: Vec<i32> = std::iter::once(program).chain(orphans).collect();
    let mut found = Vec::new();
    while let Some(process) = left.pop() {
        left.extend(children_of(process));
        found.push(process);
    }
    found
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Share {
    bytes: f64,
    huge: f64,
    /// Shared memory that is mapped, a part of `bytes`.
    mapped: f64,
    /// Beside `bytes`: explicit huge pages that others may have, too.
    common: f64,
}

/// Memory of these processes, and the number of them that hold any; shared files are those made since then.
fn sum(processes: &[i32], since: i64) -> (Share, usize) {
    let held: Vec<Share> = processes.iter().filter_map(|process| of_process(*process)).collect();
    let mut all = held.iter().fold(Share::default(), |sum, one| Share {
        bytes: sum.bytes + one.bytes,
        huge: sum.huge + one.huge,
        mapped: sum.mapped + one.mapped,
        common: sum.common.max(one.common),
    });
    if all.bytes > 0.0 {
        all.bytes += all.common + (files_of_no_disk(processes, since) - all.mapped).max(0.0);
    }
    (all, held.len())
}

/// Bytes of the files in memory that these processes have open or mapped and that were made since then, each once.
fn files_of_no_disk(processes: &[i32], since: i64) -> f64 {
    let mut found = BTreeMap::new();
    let links = |process: &i32| {
        let entries = ["fd", "map_files"].map(|name| fs::read_dir(place(*process).join(name)));
        entries.into_iter().flatten().flatten().flatten().collect::<Vec<_>>()
    };
    for entry in processes.iter().flat_map(links) {
        // Pipes and sockets have no path; opening a device could do anything: it is only asked for its file system.
        let is_file = fs::read_link(entry.path()).is_ok_and(|to| {
            to.starts_with("/dev/shm") || to.to_string_lossy().starts_with("/memfd:")
        });
        let about = if is_file { fs::metadata(entry.path()).ok() } else { None };
        if let Some(about) = about.filter(|about| about.is_file() && about.ctime() >= since) {
            found.insert((about.dev(), about.ino()), about.blocks() * 512);
        }
    }
    found.values().sum::<u64>() as f64
}

/// Memory of a process; none if it has ended.
fn of_process(process: i32) -> Option<Share> {
    let place = place(process);
    match fs::read_to_string(place.join("smaps_rollup")) {
        Ok(text) => proportional(&text),
        // Somebody else's, or without this file: what it has for itself.
        Err(_) => {
            let bytes = private(&fs::read_to_string(place.join("statm")).ok()?)?;
            Some(Share { bytes, ..Share::default() })
        }
    }
}

/// Its proportional share without what the system takes back by itself; none where it has no memory any more.
fn proportional(text: &str) -> Option<Share> {
    let all = smaps::parse(text).pop()?;
    let field = |name| all.figure(name).map(|bytes| bytes as f64);
    let of = |name| field(name).unwrap_or(0.0);
    let anonymous = match field("Pss_Anon") {
        Some(anonymous) => anonymous + of("Pss_Shmem"),
        // Before Linux 5.7.
        None => field("Anonymous")?,
    };
    let bytes = anonymous - of("LazyFree") + of("SwapPss") + of("Private_Hugetlb");
    let share = Share {
        bytes: bytes.max(0.0),
        huge: of("AnonHugePages"),
        mapped: of("Pss_Shmem"),
        common: of("Shared_Hugetlb"),
    };
    (anonymous > 0.0 || bytes > 0.0).then_some(share)
}

/// Resident pages that are not shared, by `statm`.
fn private(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace().map(str::parse::<f64>);
    let (resident, shared) = (fields.nth(1)?.ok()?, fields.next()?.ok()?);
    let bytes = (resident - shared) * rustix::param::page_size() as f64;
    (bytes > 0.0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(readings: &[(f64, f64)]) -> Sampler {
        let readings: Vec<_> = readings.iter().map(|&(at, bytes)| Reading { at, bytes }).collect();
        let seen = Duration::from_secs_f64(readings.last().map_or(0.0, |last| last.at));
        Sampler { readings, seen, ..Sampler::new() }
    }

    #[test]
    fn the_level_is_the_end_and_the_slope_of_a_rise_is_found_through_jumps() {
        let rising: Vec<(f64, f64)> = (0..100)
            .map(|at| {
                (
                    f64::from(at) * 0.1,
                    1e6 + f64::from(at) * 1e4 + if at % 9 == 0 { 5e6 } else { 0.0 },
                )
            })
            .collect();
        let held = sampler(&rising).held(None).expect("readings");
        assert!((held.level - 1.9e6).abs() < 2e4, "{}", held.level);
        assert!((held.slope - 1e5).abs() < 2e3, "{}", held.slope);
        assert!(held.peak > 6.9e6);
        // A peak that is over is no level.
        let peak = [(0.0, 1.0), (1.0, 9e9), (2.0, 9e9), (8.5, 5e6), (9.0, 5e6), (10.0, 5e6)];
        let held = sampler(&peak).held(None).expect("readings");
        assert_eq!((held.level, held.peak), (5e6, 9e9));
        assert!(held.slope.is_nan());
        assert_eq!(sampler(&peak).held(Some(0.5)).expect("readings").level, 5e6);
        assert!(sampler(&[]).held(None).is_none());
    }

    /// A level is of a run's end. Readings are a summary of the end alone where there are some.
    #[test]
    fn readings_of_the_beginning_are_no_level() {
        let held = |end: f64| {
            let readings = [(0.0, 1e5), (0.3, 4e7)].map(|(at, bytes)| Reading { at, bytes });
            Held::of(readings.to_vec(), end, None).map(|held| held.level)
        };
        assert_eq!(held(0.31), Some(4e7));
        assert_eq!(held(0.5), Some(4e7), "the last reading of the last half");
        assert_eq!(held(0.7), None);
    }

    /// One reading that waited for the program took a second; the next is due all the same.
    #[test]
    fn a_reading_that_waited_delays_no_other() {
        let mut sampler = Sampler { costs: vec![1.0, 1e-4, 1e-4], ..Sampler::new() };
        let own = rustix::process::getpid();
        sampler.look(own, false);
        assert!(sampler.due < Duration::from_secs(2), "{:?}", sampler.due);
        let gap = |cost: f64| {
            let mut sampler = Sampler { costs: vec![cost; 3], ..Sampler::new() }.with_last(0.3);
            sampler.look(own, false);
            (sampler.due - sampler.seen).as_secs_f64()
        };
        assert!((0.099..0.101).contains(&gap(4e-3)), "three readings, {}", gap(4e-3));
        assert!((1.99..2.01).contains(&gap(0.1)), "a twentieth of a CPU, {}", gap(0.1));
    }

    #[test]
    fn what_the_system_takes_back_is_left_out_and_all_else_is_not() {
        let head = "00-ff ---p [rollup]\nRss: 900 kB\nPss_Anon: 100 kB\nPss_File: 690 kB\nPss_Shmem: 10 kB\n";
        for (more, bytes, common) in [
            ("Anonymous: 150 kB\nSwap: 9 kB\nSwapPss: 5 kB\n", 115.0, 0.0),
            ("LazyFree: 80 kB\n", 30.0, 0.0),
            ("Private_Hugetlb: 2048 kB\nShared_Hugetlb: 4096 kB\n", 2158.0, 4096.0),
        ] {
            let share =
                proportional(&format!("{head}{more}AnonHugePages: 64 kB\n")).expect("a share");
            let kib = [share.bytes, share.common, share.huge, share.mapped].map(|one| one / 1024.0);
            assert_eq!(kib, [bytes, common, 64.0, 10.0], "{more}");
        }
        let old = proportional("00-ff ---p [rollup]\nRss: 9 kB\nAnonymous: 150 kB\n");
        assert_eq!(old.map(|share| share.bytes), Some(150.0 * 1024.0));
        assert_eq!(proportional(""), None);
        assert_eq!(private("900 30 10 0 0 0 0"), Some(20.0 * rustix::param::page_size() as f64));
        assert_eq!(private("0 0 0"), None);
    }

    /// A file of no disk counts whole, mapped or not, and once for all that have it.
    #[test]
    fn files_in_memory_count_though_nobody_maps_them() {
        let own = std::process::id().cast_signed();
        let before = files_of_no_disk(&[own], 0);
        let file =
            rustix::fs::memfd_create("held", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        rustix::io::write(&file, &[1u8; 1 << 20]).expect("written");
        let after = files_of_no_disk(&[own, own], 0);
        assert_eq!(after - before, f64::from(1 << 20));
        assert_eq!(files_of_no_disk(&[own], i64::MAX), 0.0, "one of the time before is another's");
    }

    /// A shell with a child that holds much and shares it: counted once.
    #[test]
    fn a_whole_tree_is_read_and_shared_pages_count_once() {
        let script = "import os,sys,time\nb = bytearray(64 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\n\
                      if os.fork() == 0: time.sleep(60)\nprint('ready', flush=True)\ntime.sleep(60)";
        let mut sampler = Sampler::new();
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script]).stdout(std::process::Stdio::piped());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().expect("python3");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        let program = Pid::from_child(&child);
        let allowed = sched_getaffinity(None).expect("a set").count();
        sampler.look(program, false);
        assert_eq!(sched_getaffinity(None).expect("a set").count(), allowed, "the set is put back");
        // Not due again at once: readings have their share.
        sampler.look(program, false);
        rustix::process::kill_process_group(program, rustix::process::Signal::KILL).expect("ended");
        child.wait().expect("waited for");
        let held = sampler.held(None).expect("a reading");
        assert_eq!((held.processes, held.readings.len()), (2, 1));
        assert!((60e6..100e6).contains(&held.level), "{}", held.level);
        assert!(held.cost > 0.0 && held.cost < 0.5, "{}", held.cost);
    }
}
