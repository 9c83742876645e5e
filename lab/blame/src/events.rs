//! The kernel's events: opened for what this thread starts, with a buffer for each CPU.

use crate::Blamed;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::fmt;
use std::fs;
use std::io;

/// Bytes of stack that a sample carries; a sample has less than 64 KiB.
const STACK: u32 = 16 << 10;
/// Bytes of a buffer to begin with, and the least that is tried.
const BUFFER: usize = 16 << 20;
const LEAST_BUFFER: usize = 128 << 10;
/// Nanoseconds of CPU between two samples of copies: a prime, near a millisecond.
const CLOCK_PERIOD: u64 = 1_000_003;
/// Samples that are enough.
const SAMPLES: u64 = 1000;

/// Registers that unwinding begins with, by their numbers in perf_regs.h.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// The system refuses: which setting forbids it.
#[derive(Debug)]
pub struct Refused(io::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
        let level = level.trim();
        match self.0.raw_os_error() {
            Some(libc::EACCES | libc::EPERM)
                if level.parse::<i32>().is_ok_and(|level| level > 2) =>
            {
                write!(
                    f,
                    "perf_event_open: found kernel.perf_event_paranoid = {level}; accepted at most 2 (sysctl \
                     kernel.perf_event_paranoid=2), or CAP_PERFMON"
                )
            }
            Some(libc::EACCES | libc::EPERM) => write!(
                f,
                "perf_event_open: refused although kernel.perf_event_paranoid is {level}: a seccomp filter or security \
                 module forbids it; a container needs --cap-add PERFMON or a filter that allows perf_event_open"
            ),
            Some(libc::ENOSYS | libc::ENOENT | libc::ENODEV) => {
                write!(f, "perf_event_open: not in this kernel or sandbox ({})", self.0)
            }
            Some(libc::EMFILE) => write!(f, "perf_event_open: too many open files: ulimit -n"),
            _ => write!(f, "perf_event_open: {}", self.0),
        }
    }
}

impl std::error::Error for Refused {}

/// Buffers of all CPUs, and what their samples stand for.
pub(crate) struct Opened {
    pub(crate) samplers: Vec<Sampler>,
    /// For resident memory: all faults, with their addresses only; a page that faults again was given back.
    pub(crate) traces: Vec<Sampler>,
    /// The event's count for one sample.
    pub(crate) period: u64,
    /// True if events inside of system calls are not sampled.
    pub(crate) without_kernel: bool,
}

/// Opens them for whatever this thread starts from now on; they count from the first `exec` on. `faults` is about the
/// number of page faults to come.
pub(crate) fn open(blamed: Blamed, faults: u64) -> Result<Opened, Refused> {
    let period = match blamed {
        Blamed::Copies => CLOCK_PERIOD,
        // Odd, so that a loop which touches pages by turns is not sampled in step with it.
        Blamed::Faults | Blamed::Memory => (faults / SAMPLES).max(1) | 1,
    };
    let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
    // Privileged first; page sizes from Linux 5.11 on.
    for (without_kernel, page_size) in [(false, true), (false, false), (true, true), (true, false)]
    {
        match all_cpus(blamed, period, without_kernel, page_size) {
            Ok(samplers) => {
                let traces = match blamed {
                    Blamed::Memory => traces(without_kernel).map_err(Refused)?,
                    Blamed::Faults | Blamed::Copies => Vec::new(),
                };
                return Ok(Opened { samplers, traces, period, without_kernel });
            }
            Err(error) => last = error,
        }
    }
    Err(Refused(last))
}

fn all_cpus(
    blamed: Blamed,
    period: u64,
    without_kernel: bool,
    page_size: bool,
) -> io::Result<Vec<Sampler>> {
    let mut samplers = Vec::new();
    for cpu in online() {
        let event = match blamed {
            Blamed::Copies => Software::TASK_CLOCK,
            // At its end, when the size of the page is known.
            Blamed::Faults | Blamed::Memory => Software::PAGE_FAULTS_MIN,
        };
        let mut builder = Builder::new(event);
        builder.observe_self().one_cpu(cpu).inherit(true).enabled(false).enable_on_exec(true);
        builder.exclude_kernel(without_kernel).exclude_hv(true).sample_period(period);
        let mut carried = SampleFlag::IP
            | SampleFlag::TID
            | SampleFlag::TIME
            | SampleFlag::ADDR
            | SampleFlag::REGS_USER
            | SampleFlag::STACK_USER;
        if page_size && blamed != Blamed::Copies {
            carried |= SampleFlag::DATA_PAGE_SIZE;
        }
        builder.sample(carried).sample_regs_user(REGISTERS).sample_stack_user(STACK);
        builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true).sample_id_all(true);
        builder.clockid(Clock::MONOTONIC);
        samplers.push(buffered(&builder)?);
    }
    Ok(samplers)
}

fn traces(without_kernel: bool) -> io::Result<Vec<Sampler>> {
    let trace = |cpu: usize| {
        let mut builder = Builder::new(Software::PAGE_FAULTS_MIN);
        builder.observe_self().one_cpu(cpu).inherit(true).enabled(false).enable_on_exec(true);
        builder.exclude_kernel(without_kernel).exclude_hv(true).sample_period(1);
        builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::ADDR);
        builder.clockid(Clock::MONOTONIC);
        buffered(&builder)
    };
    online().into_iter().map(trace).collect()
}

/// Without a privilege, buffers of a user have a limit (kernel.perf_event_mlock_kb).
fn buffered(builder: &Builder<'_>) -> io::Result<Sampler> {
    let mut bytes = BUFFER;
    loop {
        match builder.build()?.sampled(bytes) {
            Err(_) if bytes > LEAST_BUFFER => bytes /= 2,
            done => return done,
        }
    }
}

/// CPUs that are online.
fn online() -> Vec<usize> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus.extend(first..=last);
        }
    }
    if cpus.is_empty() { vec![0] } else { cpus }
}
