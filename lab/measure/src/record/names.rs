//! The names that rows have in common: candidates, coordinates beside those of every cell, and figures
//! particular to an experiment. Who measures writes them, who reports reads them.

/// This machine's C library.
pub const LIBC: &str = "libc";
/// The library itself, decision included.
pub const LIBRARY: &str = "cachewise";
/// The same in a shared library, where a program finds libc too.
pub const SHARED: &str = "cachewise.shared";
/// The C library under tunables, in a process of its own.
pub const TUNED_LIBC: &str = "libc+tunables";
/// The kernel's own fork.
pub const FORK: &str = "fork";
/// A receive over the loopback device.
pub const TCP: &str = "tcp loopback";

/// Axis: destination minus source, modulo a page.
pub const OFFSET: &str = "offset";
/// Axis: bytes of the pages the operands lie on.
pub const PAGE_BYTES: &str = "page_bytes";
/// Axis: the power of two by which the destination lies above the source, beside the offset.
pub const DISTANCE: &str = "distance";
/// Figure: time over the same kernel's at the same alignment, half a page further on.
pub const ALIAS_RATIO: &str = "alias_ratio";

/// State: the target is read, every line, between the calls, and the calls alone are timed.
pub const TARGET_READ: &str = "target pre-read";
/// State: calls back to back, so that each meets what the last one left.
pub const TARGET_UNREAD: &str = "target not read";
/// State: every call finds its target in memory.
pub const TARGET_FAR: &str = "target far";
/// State: a source at each level, with `prefetchnta` and without.
pub const PREFETCHNTA: &str = "prefetchnta";
/// Axis: 1 where the target is read between the calls.
pub const PRE_READ: &str = "target_pre_read";
/// Axis: 1 where the source is cached.
pub const SOURCE_CACHED: &str = "source_cached";

/// Axis: offset of the first difference; the length where there is none.
pub const FIRST_DIFFERENCE: &str = "first_difference";
/// Axis: which launch.
pub const LAUNCH: &str = "launch";
/// Figures: part of the mismatches that differ within so many bytes.
pub const WITHIN: [&str; 3] = ["within_16", "within_32", "within_64"];
/// Figure: part of the single calls that took less than 100 ns.
pub const BELOW_100: &str = "below_100_ns";
/// Figure: part of the comparisons whose operands are equal.
pub const EQUAL: &str = "equal";
/// Figure: nanoseconds that reading the clock cost, subtracted from every single call.
pub const CLOCK_COST: &str = "clock_cost_ns";
/// Figure: the clock's smallest step in nanoseconds.
pub const CLOCK_STEP: &str = "clock_step_ns";
/// Figure: 1 where a launch was a process of its own.
pub const OWN_PROCESS: &str = "own_process";

/// Axis: which of the calls in a row, from 1.
pub const CALL: &str = "call";
/// States: who wrote the destination before the calls in a row: temporal stores, non-temporal ones, and
/// non-temporal ones after which every line was read.
pub const AFTER: [&str; 3] =
    ["after temporal stores", "after non-temporal stores", "after non-temporal stores and a read"];

/// Suffixes of candidates' names: the loop as it is, and each change of it.
pub const TWINS: [&str; 5] = ["", ", misaligned", ", prefetchnta", ", stray word", ", stray lines"];

/// States: which pages a buffer is made of, by the cache's sets that they compete for.
pub const PAGES_OF: [&str; 3] =
    ["zeroing pages of one colour", "zeroing pages of every colour", "zeroing pages as given"];
/// Figure: how many colours they have.
pub const COLOURS: &str = "colours";

/// States: where the pairs of pages that are compared lie.
pub const PAIRS: [&str; 2] = ["pairs in memory", "pairs in the L2"];

/// Axis: bytes per call.
pub const CHUNK: &str = "chunk";
/// Axis: 1 where the pieces come in random order.
pub const SHUFFLED: &str = "shuffled";

/// Figure: loops that one of the seed's five runs has.
pub const LOOPS: &str = "loops";
/// State: the pages that are zeroed and copied to lie in memory.
pub const COLD_DESTINATION: &str = "cold destination";
/// Figure: pages zeroed per loop, as the candidate counted.
pub const ZEROED: &str = "zeroed_per_loop";
/// Figure: pages copied per loop, as the candidate counted.
pub const COPIED: &str = "copied_per_loop";
/// Figure: page faults per loop of the kernel's row.
pub const FAULTS_PER_LOOP: &str = "faults_per_loop";

/// Axis: lines of a page that are touched.
pub const LINES: &str = "cline";
/// Axis: the same as a fraction of the page.
pub const TOUCHED: &str = "touched";
/// Axis: threads at work, the calling one among them.
pub const THREADS: &str = "threads";
/// Axis: how often the pages are taken and given back in one sample.
pub const REPS: &str = "rep";
/// Figure: pages handed out per second of the CPU (seed 003's columns).
pub const PER_CPU: &str = "flt_per_cpu_s";
/// Figure: pages handed out per second of the wall clock.
pub const PER_WALL: &str = "fault_per_wall_s";
/// Figure: seconds of one sample in user mode, of all threads together.
pub const USER: &str = "user_s";
/// Figure: the same in kernel mode.
pub const SYSTEM: &str = "system_s";
/// Figure: the same by the wall clock.
pub const WALL: &str = "wall_s";
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
/// Reference of every way to get a page.
pub const KERNEL_FAULT: &str = "kernel 4k";
/// A fault that finds its page there and zero, and maps it: what is left of a fault without zeroing.
pub const READY_FAULT: &str = "ready 4k";
/// The same where a fault maps the neighbours too, as it does when pages are read first.
pub const READY_AROUND: &str = "ready 4k, fault-around";
/// A page of the pool, zeroed before: no fault.
pub const PREZEROED: &str = "pool prezeroed";
/// The pool with nothing zeroed: at hand-out.
pub const HOT_ZERO: &str = "pool hot-zero";
/// The pool with everything zeroed at first, and the scrubber against the program.
pub const DRAINING: &str = "pool draining";
/// State: one fault of so many bytes.
pub const FAULT_BY_SIZE: &str = "fault by size";
/// A fault on anonymous memory, which zeroes.
pub const ANONYMOUS: &str = "anonymous";
/// A fault on shared memory that is not there yet, which zeroes.
pub const SHARED_FRESH: &str = "shared, fresh";
/// A fault on shared memory that is there and zero, which maps it.
pub const SHARED_READY: &str = "shared, ready";
/// State: pages that were just used against pages that were zeroed long ago.
pub const HOT_PAGES: &str = "hot pages";
/// A page that was just used, zeroed and touched.
pub const HOT_ZEROED: &str = "used, zeroed at hand-out";
/// A page that was zeroed before and is in memory, touched.
pub const COLD_PREZEROED: &str = "prezeroed, in memory";
/// State: a program beside the scrubber, whose settings are the candidates.
pub const SCRUB_SETTINGS: &str = "scrubber's settings";
/// State: engines of a pool that zero memory in batches; the engines, the first being what the others are
/// compared with.
pub const ENGINE: &str = "zeroing engine";
/// The CPU, with the kernel that the profile has for data not read again.
pub const ENGINE_AROUND: &str = "cpu-around";
/// The CPU, with the kernel for data read soon.
pub const ENGINE_THROUGH: &str = "cpu-through";
/// The system: pages are dropped and populated anew.
pub const ENGINE_SYSTEM: &str = "system";
/// A GPU's copy engine.
pub const ENGINE_CUDA: &str = "cuda";
/// Figure: gigabytes a second that an engine zeroes.
pub const ENGINE_GBPS: &str = "engine_gbps";
/// Figure: CPU seconds for a gigabyte.
pub const CPU_PER_GB: &str = "cpu_s_per_gb";
/// Figure: milliseconds that a bystander on another CPU loses for a gigabyte.
pub const BYSTANDER_PER_GB: &str = "bystander_ms_per_gb";
/// State: a service that keeps all CPUs busy, beside the engine of its pool.
pub const SERVICE: &str = "busy service";
/// Its memory is zeroed when it is handed out.
pub const SERVICE_HOT: &str = "zeroed at hand-out";
/// Its memory is never zeroed: the bound.
pub const SERVICE_NEVER: &str = "never zeroed";
/// Axis: a request's own work, in microseconds.
pub const WORK_US: &str = "work_us";
/// Figure: requests a second of all threads together.
pub const REQUESTS_PER_S: &str = "requests_per_s";
/// State: the bystander's walk while the scrubber works by those settings.
pub const BYSTANDER_WALK: &str = "bystander beside the scrubber";
/// Reference of the other settings: from order 4 on, down to single pages, by non-temporal
/// stores.
pub const SCRUB_BASE: &str = "start 4, stop 0, non-temporal";
/// The same by temporal stores.
pub const SCRUB_THROUGH: &str = "temporal";
/// A program as it is, which `advise` compares settings with.
pub const PLAIN: &str = "plain";
/// States: all settings beside the plain program, their CPU time, and fresh runs of the best.
pub const ADVISED_RACE: &str = "race";
/// See [`ADVISED_RACE`].
pub const ADVISED_CPU: &str = "CPU time";
/// See [`ADVISED_RACE`].
pub const ADVISED_FRESH: &str = "fresh runs";
/// Figure: bytes of memory that the largest process held at most.
pub const PEAK: &str = "peak_bytes";
/// Figure: the same over the plain program's.
pub const PEAK_RATIO: &str = "peak_ratio";
/// Setting of a record of `advise`: the variables that it recommends.
pub const RECOMMENDED: &str = "recommended";
/// Setting of a record of `advise --blame`: the event (`of`), the `unit` of its counts, and the `folded` stacks.
pub const BLAME: &str = "blame";
/// State: memory over time, a row for each setting and moment.
pub const ADVISED_MEMORY: &str = "memory over time";
/// Figure: bytes that all processes hold, of the goal that was asked for.
pub const HELD_BYTES: &str = "memory_bytes";
/// Figure: the same over the plain program's, and its 95 % interval.
pub const HELD_RATIO: &str = "memory_ratio";
/// See [`HELD_RATIO`].
pub const HELD_LOW: &str = "memory_ratio_low";
/// See [`HELD_RATIO`].
pub const HELD_HIGH: &str = "memory_ratio_high";
/// Axis: seconds since a program's start.
pub const SECONDS: &str = "seconds";
/// Figure: mebibytes that all processes hold.
pub const HELD_MIB: &str = "held_mib";
/// Figure: page faults of a run.
pub const PAGE_FAULTS: &str = "page_faults";
/// Figure: no setting's time is less than this part of the plain program's, by what was counted.
pub const LEAST_RATIO: &str = "least_ratio";
/// Figure: part of the requests that found zeroed memory.
pub const HIT_SHARE: &str = "hit_share";
/// Figure: nanoseconds of the scrubber's CPU per page that the program took.
pub const SCRUB_CPU: &str = "scrub_cpu_ns";
/// Single hand-outs while the scrubber works.
pub const SCRUBBING: &str = "zalloc, scrubbing";

/// State: the library on the calling thread alone.
pub const ALONE: &str = "alone";
/// State: one kernel on equal parts by all threads of the pool.
pub const CEILING: &str = "ceiling";

/// Figure: the candidate's time over the best peer's.
pub const OF_ENVELOPE: &str = "of_envelope";

/// Axis: bytes read before the first of them is written.
pub const READ_BYTES: &str = "read_bytes";

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
/// Figure: part of one core that both ends of a real connection take at 10 Gb/s, kernel included.
pub const BOTH_ENDS: &str = "cpu_share_both_ends_10g";
/// State: a message over the loopback device, CPU time of both ends.
pub const TCP_MESSAGE: &str = "message, both ends";
/// State: the same, its sender with `MSG_ZEROCOPY`.
pub const TCP_PINNED_MESSAGE: &str = "MSG_ZEROCOPY message, both ends";
/// State: a stream of messages, CPU time of both ends, which run at once.
pub const STREAM: &str = "stream, both ends";
/// Candidates: over the loopback device, over virtual Ethernet devices, and over those with non-temporal
/// stores where a program's bytes are copied in.
pub const STREAMS: [&str; 3] = [TCP, "veth", "veth, tx-nocache-copy"];
/// Candidates: how it goes.
pub const TCP_WAYS: [&str; 4] = [TCP, "MSG_ZEROCOPY", "TCP_ZEROCOPY_RECEIVE", "io_uring"];
/// Figure: part of the zero-copy sends of which the kernel said that it copied them.
pub const SENDS_COPIED: &str = "sends_copied";
/// Figure: part of the bytes received that were mapped.
pub const BYTES_MAPPED: &str = "bytes_mapped";
/// Figure: part of one core that copy, reader and bystander take at 10 Gb/s.
pub const CPU_SHARE: &str = "cpu_share_10g";

/// Axis: bytes of other data read between the operation and its reader.
pub const DELAY_BYTES: &str = "delay_bytes";
/// Axis: nanoseconds that pass between the operation and its reader.
pub const DELAY_NS: &str = "delay_ns";

/// Figure: bytes the operation names, per cycle of the core.
pub const BYTES_PER_CYCLE: &str = "bytes_per_cycle";
/// Figure: speed over the best speed that any of the ceiling kernels reached at that level.
pub const CEILING_SHARE: &str = "ceiling_share";
/// Figure: that best speed, in GB/s.
pub const CEILING_GBPS: &str = "ceiling_gbps";

/// Axis: which value, an index of [`VALUES`]; for fills only 0 and 1.
pub const VALUE: &str = "value";
/// Axis: 1 where the destination held other bytes before.
pub const OVER_OTHERS: &str = "over_others";
/// Values that are stored.
pub const VALUES: [&str; 4] = ["zeros", "ones", "random", "denormals"];

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
