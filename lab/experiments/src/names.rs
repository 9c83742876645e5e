//! Names that several experiments share: coordinates, figures, states. Who measures writes them, who draws a table reads
//! them.

pub const FORK: &str = "fork";
/// A receive over the loopback device.
pub const TCP: &str = "tcp loopback";
/// Axis: bytes of the pages the operands lie on.
pub const PAGE_BYTES: &str = "page_bytes";
/// Axis: offset of the first difference; the length where there is none.
pub const FIRST_DIFFERENCE: &str = "first_difference";
pub const LAUNCH: &str = "launch";
/// States: who wrote the destination before the calls in a row: temporal stores, non-temporal ones, and
/// non-temporal ones after which every line was read.
pub const AFTER: [&str; 3] =
    ["after temporal stores", "after non-temporal stores", "after non-temporal stores and a read"];
/// Suffixes of candidates' names: the loop as it is, and each change of it.
pub const TWINS: [&str; 5] = ["", ", misaligned", ", prefetchnta", ", stray word", ", stray lines"];
/// States: where the pairs of pages that are compared lie.
pub const PAIRS: [&str; 2] = ["pairs in memory", "pairs in the L2"];
pub const CHUNK: &str = "chunk";
/// Figure: loops that one of the seed's five runs has.
pub const LOOPS: &str = "loops";
/// Figure: pages zeroed per loop, as the candidate counted.
pub const ZEROED: &str = "zeroed_per_loop";
/// Figure: pages copied per loop, as the candidate counted.
pub const COPIED: &str = "copied_per_loop";
/// Axis: lines of a page that are touched.
pub const LINES: &str = "cline";
/// Axis: threads at work, the calling one among them.
pub const THREADS: &str = "threads";
/// Axis: how often the pages are taken and given back in one sample.
pub const REPS: &str = "rep";
/// Figure: pages handed out per second of the CPU (seed 003's columns).
pub const PER_CPU: &str = "flt_per_cpu_s";
/// Figure: seconds of one sample in user mode, of all threads together.
pub const USER: &str = "user_s";
/// Figure: the scrubber's CPU, for zeroing these pages before or meanwhile.
pub const SCRUB: &str = "scrub_s";
/// Figure: decimal gigabytes handed out in one sample.
pub const GIGABYTES: &str = "gb";
/// Figure: page faults per page, as the system counts them.
pub const FAULTS: &str = "faults_per_page";
/// Figure: nanoseconds of CPU per page: taking, touching, giving back, zeroing by whomever.
pub const TOTAL_CPU: &str = "total_cpu_ns";
/// State of the rows that hand out pages.
pub const FAULT: &str = "fault";
/// State: the CPU time of a page of which all lines are written, whoever zeroes it.
pub const CPU_OF_PAGE: &str = "CPU time of a page";
/// A fault that finds its page there and zero, and maps it: what is left of a fault without zeroing.
pub const READY_FAULT: &str = "ready 4k";
/// A ready page whose fault maps the neighbours too, as it does when pages are read first.
pub const READY_AROUND: &str = "ready 4k, fault-around";
/// A page of the pool, zeroed before: no fault.
pub const PREZEROED: &str = "pool prezeroed";
/// The pool with everything zeroed at first, and the scrubber against the program.
pub const DRAINING: &str = "pool draining";
/// State: one fault of so many bytes.
pub const FAULT_BY_SIZE: &str = "fault by size";
/// State: pages that were just used against pages that were zeroed long ago.
pub const HOT_PAGES: &str = "hot pages";
/// A page that was just used, zeroed and touched.
pub const HOT_ZEROED: &str = "used, zeroed at hand-out";
/// State: engines of a pool that zero memory in batches; the engines, the first being what the others are
/// compared with.
pub const ENGINE: &str = "zeroing engine";
/// The CPU, with the kernel that the profile has for data not read again.
pub const ENGINE_AROUND: &str = "cpu-around";
pub const ENGINE_CUDA: &str = "cuda";
/// Figure: gigabytes a second that an engine zeroes.
pub const ENGINE_GBPS: &str = "engine_gbps";
/// Figure: CPU seconds for a gigabyte.
pub const CPU_PER_GB: &str = "cpu_s_per_gb";
/// Figure: milliseconds that a bystander on another CPU loses for a gigabyte.
pub const BYSTANDER_PER_GB: &str = "bystander_ms_per_gb";
/// Figure: part of the requests that found zeroed memory.
pub const HIT_SHARE: &str = "hit_share";
/// Figure: the candidate's time over the best peer's.
pub const OF_ENVELOPE: &str = "of_envelope";
/// State: from a device's ring to a user's buffer.
pub const RECEIVE: &str = "receive";
/// State: from a user's buffer to a device's ring.
pub const SEND: &str = "send";
/// Candidates: when a network stack uses non-temporal stores (001.8).
pub const POLICIES: [&str; 7] = [
    "never NT",
    "always NT",
    "NT from 128",
    "NT from 64K",
    "NT above L2",
    "NT when known",
    "NT copyin only",
];
/// Axis: 1 where the user's buffer is one, reused; 0 where a large one is streamed through.
pub const USER_REUSED: &str = "user_reused";
/// Axis: 1 where another core has just written the ring, 0 where its lines are in memory.
pub const OTHER_CORE: &str = "ring_by_other_core";
/// Axis: fraction of the user's buffer that its program reads.
pub const READ: &str = "read";
/// Figure: decimal gigabits per second of operation, reader and bystander together.
pub const GBIT: &str = "gbit_per_s";
/// Figure: part of one core that the copy takes at 10 Gb/s.
pub const COPY_SHARE: &str = "cpu_share_copy_10g";
/// Figure: part of one core that copy, reader and bystander take at 10 Gb/s.
pub const CPU_SHARE: &str = "cpu_share_10g";
/// Axis: bytes of other data read between the operation and its reader.
pub const DELAY_BYTES: &str = "delay_bytes";
/// Axis: nanoseconds that pass between the operation and its reader.
pub const DELAY_NS: &str = "delay_ns";
/// Axis: components saved, as bits of XCR0.
pub const COMPONENTS: &str = "components";
/// Figure: nanoseconds of saving and restoring alone, less what dirtying the registers took.
pub const NET_NS: &str = "net_ns";
/// Figure: components that the last save found in another than their initial state (XSTATE_BV).
pub const HELD: &str = "held";

/// A coordinate of yes or no.
pub const fn flag(set: bool) -> f64 {
    if set { 1.0 } else { 0.0 }
}

/// Components of XCR0 by name: `x87+sse+avx`.
pub fn component_names(components: u64) -> String {
    let known = [(0b1, "x87"), (0b10, "sse"), (0b100, "avx"), (0b1110_0000, "avx512")];
    let named = known.iter().filter(|(bits, _)| components & bits == *bits);
    let named: Vec<&str> = named.map(|(_, name)| *name).collect();
    if named.is_empty() { "none".to_owned() } else { named.join("+") }
}
