//! A recording: events are read by a thread of their own while the program runs, and become stacks.

use crate::events::{self, Opened, Refused};
use crate::resident::Resident;
use crate::symbols::{self, Symbols};
use crate::unwind::{Frame, Processes, Sampled};
use crate::{Blamed, Stacks};
use perf_event::data;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two readings of the buffers.
const OFTEN: Duration = Duration::from_millis(1);
/// Bit of a record's `misc`: the name changed by `exec` (PERF_RECORD_MISC_COMM_EXEC).
const BY_EXEC: u16 = 1 << 13;
/// Bit of a sample's `misc`: it was taken in the kernel.
const IN_KERNEL: u16 = 1;
const MODE: u16 = 7;

/// An event of the kernel, with its time.
enum Event {
    Forked {
        process: i32,
        parent: i32,
    },
    Named {
        process: i32,
        name: String,
        by_exec: bool,
    },
    Mapped {
        process: i32,
        begin: u64,
        end: u64,
        offset: u64,
        file: PathBuf,
    },
    Sample {
        process: i32,
        address: u64,
        page: u64,
        registers: Vec<u64>,
        stack: Vec<u8>,
        in_kernel: bool,
    },
    Fault {
        process: i32,
        address: u64,
    },
}

/// A recording of what the calling thread starts.
pub struct Recording {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Read>,
    blamed: Blamed,
    period: u64,
    without_kernel: bool,
}

/// Stacks that were read, by number.
#[derive(Default)]
struct Read {
    processes: Processes,
    stacks: HashMap<(i32, Vec<Frame>, bool), usize>,
    counts: Vec<u64>,
    samples: u64,
    lost: u64,
    truncated: u64,
    resident: Option<Resident>,
    names: Option<Named>,
}

/// Names of the stacks, by number: resolved while the processes' perf maps exist.
type Named = BTreeMap<usize, (i32, String)>;

impl Recording {
    /// Begins: whatever this thread starts from now on is sampled from its `exec` on. `faults` is about how many page
    /// faults it will have.
    ///
    /// # Errors
    /// The system refuses.
    pub fn begin(blamed: Blamed, faults: u64) -> Result<Recording, Refused> {
        let Opened { samplers, traces, period, without_kernel } = events::open(blamed, faults)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = std::thread::spawn(move || read([samplers, traces], &stopped, blamed, period));
        Ok(Recording { stop, reader, blamed, period, without_kernel })
    }

    /// Ends it: the stacks of that process and of those that descend from it; of all, where it is unknown. With
    /// `remove_maps`, the perf maps that they have written are removed.
    pub fn end(self, program: Option<i32>, remove_maps: bool) -> Stacks {
        self.stop.store(true, Ordering::Relaxed);
        let Ok(read) = self.reader.join() else { return Stacks::default() };
        let names = read.names.unwrap_or_default();
        let counts: BTreeMap<usize, u64> = match &read.resident {
            Some(resident) => resident.by_stack(),
            None => read.counts.iter().copied().enumerate().collect(),
        };
        // Lost samples are taken for such as the others.
        let all = |count: u64| count * (read.samples + read.lost) / read.samples.max(1);
        let unit = |count: u64| match self.blamed {
            Blamed::Faults => all(count * self.period),
            Blamed::Copies => all(count * self.period / 1000),
            Blamed::Memory => all(count >> 10),
        };
        let is_its =
            |process: i32| program.is_none_or(|program| read.processes.descends(process, program));
        if remove_maps {
            for process in read.processes.all().filter(|process| is_its(*process)) {
                // Most have none.
                let _ = std::fs::remove_file(symbols::perf_map(process));
            }
        }
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, count) in counts {
            let Some((process, text)) = names.get(&stack) else { continue };
            if unit(count) > 0 && is_its(*process) {
                *folded.entry(text.clone()).or_default() += unit(count);
            }
        }
        Stacks {
            folded,
            samples: read.samples,
            lost: read.lost,
            truncated: read.truncated,
            without_kernel: self.without_kernel,
        }
    }
}

/// Reads until it is stopped. Events of one round are handled once the next round has begun: only then none of
/// another CPU can be older.
fn read(
    [mut samplers, mut traces]: [Vec<perf_event::Sampler>; 2],
    stop: &AtomicBool,
    blamed: Blamed,
    period: u64,
) -> Read {
    let mut done =
        Read { resident: (blamed == Blamed::Memory).then(Resident::new), ..Read::default() };
    let mut waiting: Vec<(u64, Event)> = Vec::new();
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        let begun = now();
        for sampler in &mut samplers {
            while let Some(record) = sampler.next_record() {
                waiting.extend(done.parse(&record));
            }
        }
        for trace in &mut traces {
            while let Some(record) = trace.next_record() {
                waiting.extend(traced(&record));
            }
        }
        waiting.sort_by_key(|(time, _)| *time);
        let until =
            if is_last { u64::MAX } else { begun.saturating_sub(2 * OFTEN.as_nanos() as u64) };
        let ready = waiting.partition_point(|(time, _)| *time < until);
        for (time, event) in waiting.drain(..ready) {
            done.handle(time, event, period);
        }
        if let Some(resident) = &mut done.resident {
            resident.look();
        }
        if is_last {
            done.name(blamed);
            return done;
        }
        std::thread::sleep(OFTEN);
    }
}

/// A fault of which nothing but the address was written.
fn traced(record: &perf_event::Record<'_>) -> Option<(u64, Event)> {
    let data::Record::Sample(sample) = record.parse_record().ok()? else { return None };
    let process = sample.pid()?.cast_signed();
    Some((sample.time()?, Event::Fault { process, address: sample.addr()? }))
}

/// Nanoseconds by the events' clock.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl Read {
    fn parse(&mut self, record: &perf_event::Record<'_>) -> Option<(u64, Event)> {
        let misc = record.misc();
        // Behind all but samples stand the process, its thread, and the time.
        let bytes = record.to_contiguous();
        let time = bytes.last_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let id = |process: u32| process.cast_signed();
        Some(match record.parse_record().ok()? {
            data::Record::Fork(fork) if fork.pid != fork.ppid => {
                (time, Event::Forked { process: id(fork.pid), parent: id(fork.ppid) })
            }
            data::Record::Comm(comm) if comm.pid == comm.tid || misc & BY_EXEC != 0 => {
                let name = String::from_utf8_lossy(&comm.comm).trim_end_matches('\0').to_owned();
                (time, Event::Named { process: id(comm.pid), name, by_exec: misc & BY_EXEC != 0 })
            }
            data::Record::Mmap2(map) => {
                let name = map.filename.split(|byte| *byte == 0).next().unwrap_or_default();
                let file = PathBuf::from(OsStr::from_bytes(name));
                let (begin, offset) = (map.addr, map.pgoff);
                let process = id(map.pid);
                (time, Event::Mapped { process, begin, end: begin + map.len, offset, file })
            }
            data::Record::Sample(sample) => {
                self.samples += 1;
                let registers = sample.regs_user()?.regs.to_vec();
                let event = Event::Sample {
                    process: id(sample.pid()?),
                    address: sample.addr().unwrap_or(0),
                    page: sample.data_page_size().unwrap_or(0),
                    registers,
                    stack: sample.stack_user()?.to_vec(),
                    in_kernel: misc & MODE == IN_KERNEL,
                };
                (sample.time()?, event)
            }
            data::Record::Lost(lost) => {
                self.lost += lost.lost;
                return None;
            }
            data::Record::LostSamples(lost) => {
                self.lost += lost.lost;
                return None;
            }
            _ => return None,
        })
    }

    fn handle(&mut self, time: u64, event: Event, period: u64) {
        let smallest = rustix::param::page_size() as u64;
        match event {
            Event::Fault { process, address } => {
                if let Some(resident) = &mut self.resident {
                    resident.faulted(process, address & !(smallest - 1), time);
                }
            }
            Event::Forked { process, parent } => self.processes.forked(process, parent),
            Event::Named { process, name, by_exec } => self.processes.named(process, name, by_exec),
            Event::Mapped { process, begin, end, offset, file } => {
                self.processes.mapped(process, begin..end, offset, &file);
            }
            Event::Sample { process, address, page, registers, stack, in_kernel } => {
                let sampled = Sampled { registers: &registers, stack: &stack };
                let (frames, ended_early) = self.processes.unwind(process, &sampled);
                self.truncated += u64::from(ended_early);
                let next = self.stacks.len();
                let number = *self.stacks.entry((process, frames, in_kernel)).or_insert(next);
                if number == next {
                    self.counts.push(0);
                }
                self.counts[number] += 1;
                if let Some(resident) = &mut self.resident {
                    let bytes = page.max(smallest) * period;
                    resident.add(process, address & !(smallest - 1), bytes, number, time);
                }
            }
        }
    }

    /// Names all stacks; of copies, those only that end in one, without what the copy consists of.
    fn name(&mut self, blamed: Blamed) {
        let mut symbols = Symbols::new();
        let mut named = Named::new();
        for ((process, frames, in_kernel), number) in &self.stacks {
            let mut names: Vec<String> = vec![self.processes.name(*process).replace(';', ":")];
            for frame in frames.iter().rev() {
                names.extend_from_slice(symbols.names(frame));
            }
            // Functions of a file without symbols are told apart by nothing.
            names.dedup_by(|one, before| one == before && one.starts_with('['));
            if blamed == Blamed::Copies {
                let Some(at) = names.iter().skip(1).position(|name| symbols::is_copy(name)) else {
                    continue;
                };
                names.truncate(at + 2);
            } else if *in_kernel {
                names.push("[system call]".to_owned());
            }
            named.insert(*number, (*process, names.join(";")));
        }
        self.names = Some(named);
    }
}
