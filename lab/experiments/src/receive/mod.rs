//! `receive`: what a network stack's copies should do (001.7, .8).
//!
//! *Receive*: a device has written a ring of buffers, a system call copies one of them out to the
//! user's buffer, a program reads it or does not. *Send*: a program has written its buffer, a
//! system call copies it in to a ring that a device fetches from memory and the CPU never reads.
//! Seven policies choose the stores; a bystander's working set is warm before every call. A real TCP
//! receive over loopback stands beside them.

mod tcp;

use crate::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "receive",
    formerly: &["tcp-copies"],
    about: "copies from a device's ring to a user's buffer and back, by policy; a real TCP receive beside it",
    seeds: &["001.1", "001.6-8", "002.14"],
    operations: &[Operation::Copy],
    takes: &["--kernels", "--size"],
    classic: "bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k",
    tables,
    figures,
    today: &[LIBC, TCP],
    run: Some(run),
    ..PLAIN
};

/// From this many bytes on a policy stores non-temporally: between the smallest and the middle size here.
const LARGE: usize = 64 << 10;

/// SunOS's own: "this seems too small" (002.14).
const SMALL: usize = 128;

/// Bytes that an Ethernet frame carries of a TCP stream with timestamps.
const FRAME: usize = 1448;

/// One point, of which a policy may look at everything: who writes, who reads, how much.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// Into the kernel, for a device to fetch; else out of it.
    sends: bool,
    size: usize,
    l2: usize,
    reused: bool,
    /// True where the caller says that the data is read soon, and it is.
    read: bool,
    other_core: bool,
}

impl Point {
    fn state(&self) -> &'static str {
        if self.sends { SEND } else { RECEIVE }
    }
}

/// A policy: whether to use non-temporal stores (001.8).
type Policy = fn(Point) -> bool;

/// In the order of their [names](POLICIES).
const CHOICES: [Policy; 7] = [
    |_| false,
    |_| true,
    |at| at.size >= SMALL,
    |at| at.size >= LARGE,
    |at| at.size > at.l2,
    |at| !at.read,
    |at| at.sends,
];

fn figures() -> Vec<Figure> {
    let panels = ["state", USER_REUSED, READ, OTHER_CORE, "size"];
    let bars = |title, value| Figure::bars(title, value).by(&panels).of("receive|send");
    vec![
        bars("Whole cost of a call by policy", "cost"),
        bars("Gigabits per second of one core", GBIT),
    ]
}

/// A copy as one policy makes it, with temporal stores or with non-temporal ones. The policy looks at its
/// circumstances in every call.
fn copyout<'r>(
    name: &str,
    policy: Policy,
    stores: [Function; 2],
    point: Point,
    device: Option<&'r Device>,
) -> Call<'r> {
    let chosen = move || stores[usize::from(policy(std::hint::black_box(point)))];
    let calls = move |places: &[Place]| places.iter().for_each(|place| once(chosen(), place));
    let call = Call::new(name, calls).made_of(chosen(), None);
    call.preceded(move |places, calls| {
        let written = places.iter().take(calls);
        device.into_iter().for_each(|device| written.clone().for_each(|it| device.write(it)));
    })
}

/// Another core in the place of a device: a thread that writes ring buffers through its own cache.
struct Device {
    thread: rayon::ThreadPool,
    word: AtomicU64,
}

impl Device {
    fn start() -> Option<Device> {
        let thread = rayon::ThreadPoolBuilder::new().num_threads(1);
        let thread = thread.thread_name(|_| "device".to_owned()).build().ok()?;
        Some(Device { thread, word: AtomicU64::new(0x5EED) })
    }

    /// Has the source of a place written over and waits for it.
    fn write(&self, place: &Place) {
        // SAFETY: the buffer of a place, which its owner leaves alone until this has returned.
        let ring = unsafe { std::slice::from_raw_parts_mut(place.src.cast_mut(), place.n) };
        self.thread.install(|| {
            for eight in ring.as_chunks_mut::<8>().0 {
                let last = self.word.load(Ordering::Relaxed);
                let word = last.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                self.word.store(word, Ordering::Relaxed);
                *eight = (word | 1).to_ne_bytes();
            }
        });
    }
}

fn run(setting: &mut Setting) -> Result {
    let (temporal, non_temporal) = kernels(setting)?;
    let note = format!("policies choose between {} and {}", temporal.name, non_temporal.name);
    setting.out.note(note)?;
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let device = if cpus > 1 {
        Device::start()
    } else {
        setting.out.note("skipped the ring written by another core: there is none")?;
        None
    };
    let points = points(setting, device.is_some());
    let stores = [temporal.function, non_temporal.function];
    let weight = |point: &Point| (point.size + (1 << 20)) as f64;
    setting.through(points, weight, |setting, point| {
        one_point(setting, stores, device.as_ref(), point)?;
        Ok(format!("{} {}", point.state(), bytes(point.size)))
    })
}

/// One kernel for each side: the widest here, the period's bcopy and pagecopy with `--classic`, or
/// the two that were asked for.
fn kernels(setting: &mut Setting) -> Result<(&'static Kernel, &'static Kernel)> {
    if setting.options.kernels.is_some() {
        let chosen = asked_or(setting, &[Operation::Copy], Vec::new)?;
        let (non_temporal, temporal): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|kernel| kernel.is_non_temporal());
        let (&[temporal], &[non_temporal]) = (&temporal[..], &non_temporal[..]) else {
            let found = format!(
                "{} with temporal stores and {} with non-temporal ones",
                temporal.len(),
                non_temporal.len()
            );
            let accepted = "one of each, for the policies to choose between: copy\\.sse2(\\.nt)?";
            return Err(LabError::unsuited("--kernels", found, accepted));
        };
        return Ok((temporal, non_temporal));
    }
    let (both, why) = if setting.options.classic {
        let both = find("copy.rep.movsq").zip(find("copy.gpr64.nt.pf320"));
        (both, "the period's bcopy and pagecopy are x86-64 routines")
    } else {
        let both = widest(Operation::Copy, setting.bench.features);
        (both, "this CPU has no non-temporal copy for a policy to choose")
    };
    both.map_or_else(|| nothing(why), Ok)
}

/// The cells: every size received into a reused and a streamed buffer, read and not; and
/// sent.
fn points(setting: &Setting, has_device: bool) -> Vec<Point> {
    let options = setting.options;
    let l2 = setting.bench.machine.caches.l2.bytes;
    let sizes = setting.sizes_or(match options {
        // A page of a jumbo frame, and what a socket buffer of 2006 could hold.
        _ if options.classic => vec![4 << 10, 256 << 10],
        // The least is what an Ethernet frame carries of TCP.
        _ if options.quick => vec![FRAME, 16 << 10, 4 * l2],
        _ => vec![64, FRAME, 4 << 10, 16 << 10, 256 << 10, 4 * l2],
    });
    let mut points = Vec::new();
    for size in sizes {
        let other_core = false;
        let send = Point { sends: true, size, l2, reused: true, read: false, other_core };
        for (reused, read) in [(true, false), (true, true), (false, false), (false, true)] {
            let receive = Point { sends: false, reused, read, ..send };
            points.push(receive);
            if has_device && (!options.quick || (reused && read)) {
                points.push(Point { other_core: true, ..receive });
            }
        }
        points.push(send);
    }
    points
}

fn one_point(
    setting: &mut Setting,
    stores: [Function; 2],
    device: Option<&Device>,
    point: Point,
) -> Result {
    let place = |reused: bool, offset| {
        if reused { Placement::reused(offset) } else { Placement::at(Level::Dram, offset) }
    };
    let cell = Cell {
        // A ring that the other core has just written is one buffer, wherever it left it.
        source: place(point.sends || point.other_core, 512),
        destination: place(!point.sends && point.reused, 0),
        bystander: Some(setting.bench.bystander_bytes(point.size)),
        ..Cell::reused(point.state())
    };
    let cell = if point.read { cell.read_after(Delay::None, 1.0) } else { cell };
    let mut task = setting.task(Operation::Copy, point.size, cell);
    task.plan.max_sample_ns = if setting.options.quick { 5e6 } else { 2e7 };
    let device = device.filter(|_| point.other_core);
    let libc = libc_reference(Operation::Copy).function;
    let copyout = |name, policy, stores| copyout(name, policy, stores, point, device);
    let mut copyouts = vec![copyout(LIBC, CHOICES[0], [libc; 2])];
    let policies = POLICIES.into_iter().zip(CHOICES);
    copyouts.extend(policies.map(|(name, policy)| copyout(name, policy, stores)));
    let mut connection =
        if point.sends || point.other_core { None } else { tcp::open(setting, point.size)? };
    let mut candidates = each(&mut copyouts);
    candidates.extend(connection.iter_mut().map(|tcp| tcp as &mut dyn Candidate));
    let Some(found) = setting.measure(&task, &mut candidates)? else { return Ok(()) };
    let mut rows = found.rows();
    if let Some(error) = connection.as_mut().and_then(tcp::Connection::take_failure) {
        setting.out.note(format!("left out {TCP}: {error}"))?;
        rows.retain(|row| row.candidate != TCP);
    }
    let cpu = connection.as_ref().and_then(tcp::Connection::cpu_ns_per_call);
    let both = connection.as_mut().and_then(tcp::Connection::cpu_ns_of_both);
    let size = point.size as f64;
    let axes = [
        (USER_REUSED, flag(point.reused)),
        (OTHER_CORE, flag(point.other_core)),
        (READ, flag(point.read)),
    ];
    for row in rows {
        let whole = stats::median(&row.total_ns()).max(f64::MIN_POSITIVE);
        let copy = row.median_ns();
        // A receive waits for its sender; what counts is what it costs the receiver.
        let cost = if row.candidate == TCP { cpu.unwrap_or(copy) } else { copy };
        let share = |nanoseconds: f64| nanoseconds / size / tcp::BYTE_NS_AT_10G;
        let both = both
            .filter(|_| row.candidate == TCP)
            .map(|both| ("cpu_share_both_ends_10g", share(both)));
        let shares = [(COPY_SHARE, share(cost)), (CPU_SHARE, share(whole - copy + cost))];
        let row = row.with(&[(GBIT, size * 8.0 / whole)]).with(&shares).with(both.as_slice());
        setting.out.row(at(row, &axes))?;
    }
    Ok(())
}

/// One table per cell, in the order they were measured; rows of TCP with fewer copies, which older records have, as a
/// matrix.
fn tables(rows: &[Row]) -> Vec<Table> {
    let is_policy = |row: &Row| [RECEIVE, SEND].iter().any(|state| row.cell.state == *state);
    let (policies, others): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(is_policy);
    let policies = by_cell(&policies).into_iter().map(table);
    policies.chain(cachewise_report::matrix::tables(&others)).collect()
}

fn caption(key: &CellKey) -> String {
    let is = |name, yes, no| if key.axis(name).is_some_and(|set| set > 0.0) { yes } else { no };
    let size = bytes(key.size);
    if key.state == SEND {
        return format!(
            "send: copyin of {size} from a warm buffer to a ring that the CPU never reads"
        );
    }
    format!(
        "receive: copyout of {size} from a ring {} to a user's buffer that is {} and {}",
        is(OTHER_CORE, "written by another core", "in memory"),
        is(USER_REUSED, "reused", "streamed through"),
        is(READ, "read", "not read"),
    )
}

fn table((key, rows): (&CellKey, Vec<&Row>)) -> Table {
    let mut table = Table::of(
        caption(key),
        "policy | >Gb/s | >core at 10 Gb/s | >of it operation | >copy | >reader | >bystander | \
         >sum | >ratio | >95 % interval | verdict",
    );
    for row in &rows {
        let share = |part: Option<f64>| or_dash(part, |part| format!("{:.1} %", part * 100.0));
        // A whole that is not measurable has no rate.
        let of_whole = |name: &str| row.figure(name).filter(|_| row.is_measurable());
        let mut cells = vec![row.candidate.clone(), or_dash(of_whole(GBIT), significant)];
        cells.extend([of_whole(CPU_SHARE), row.figure(COPY_SHARE)].map(share));
        cells.extend(cost::parts(row));
        cells.extend(comparison(row));
        table.push(cells);
    }
    table.remark(
        "policies that make the same choice in a cell differ by noise alone; Gb/s and ratio are of \
         the sum",
    );
    if rows.iter().any(|row| row.candidate == TCP) {
        table.remark(
            "tcp loopback: times are by the clock and include waiting for the sender, shares are \
             the receiver's own CPU time",
        );
    }
    table.remarks.extend(residency(rows.into_iter()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_differ_where_their_names_say() {
        let (l2, reused, other_core) = (512 << 10, true, false);
        let at = |size, read, sends| Point { sends, size, l2, reused, read, other_core };
        let choices = |at| CHOICES.map(|is_non_temporal| is_non_temporal(at));
        let [no, yes] = [false, true];
        assert_eq!(choices(at(64, yes, no)), [no, yes, no, no, no, no, no]);
        assert_eq!(choices(at(128, yes, no)), [no, yes, yes, no, no, no, no]);
        assert_eq!(choices(at(LARGE, yes, no)), [no, yes, yes, yes, no, no, no]);
        assert_eq!(choices(at(1 << 20, no, no)), [no, yes, yes, yes, yes, yes, no]);
        assert_eq!(choices(at(64, no, yes)), [no, yes, no, no, no, yes, yes]);
    }
}
