//! `receive`: what a network stack's copies should do (001.7, .8).
//!
//! *Receive*: a device has written a ring of buffers, a system call copies one of them out to the
//! user's buffer, a program reads it or does not. *Send*: a program has written its buffer, a
//! system call copies it in to a ring that a device fetches from memory and the CPU never reads.
//! Six policies choose the stores; a bystander's working set is warm before every call. A real TCP
//! receive over loopback stands beside them.

mod tcp;

use super::common::{self, Measured, says};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::{Question, Scene, State};
use crate::routines::{LIBC, libc_reference};
use crate::select;
use cachewise_kernels::table::CopyFn;
use cachewise_kernels::{Function, Kernel, Operation, find};
use cachewise_measure::{
    Candidate, Delay, Figure, FigureKind, Level, PairedRatio, Place, Row, Verdict, stats,
};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

pub use tcp::TCP;

/// Axis: 1 where the user's buffer is one, reused; 0 where a large one is streamed through.
pub const USER_REUSED: &str = "user_reused";
/// Axis: 1 where another core has just written the ring, 0 where its lines are in memory.
pub const OTHER_CORE: &str = "ring_by_other_core";
/// Axis: fraction of the user's buffer that its program reads.
pub const READ: &str = "read";
/// Row figure: decimal gigabits per second of operation, reader and bystander together.
pub const GBIT: &str = "gbit_per_s";
/// Row figure: part of one core that the copy takes at 10 Gb/s.
pub const COPY_SHARE: &str = "cpu_share_copy_10g";
/// Row figure: part of one core that copy, reader and bystander take at 10 Gb/s.
pub const CPU_SHARE: &str = "cpu_share_10g";

const RECEIVE: &str = "receive";
const SEND: &str = "send";

/// Nanoseconds that a byte has at 10 Gb/s.
const BYTE_NS_AT_10G: f64 = 0.8;

/// From this many bytes the third policy goes around the cache: between the smallest and the
/// middle size here, and far above the 128 of 002.14 that were "too small".
const LARGE: usize = 64 << 10;

/// When to store around the cache (001.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Never,
    Always,
    Large,
    BeyondL2,
    Known,
    CopyIn,
}

const POLICIES: [(Policy, &str); 6] = [
    (Policy::Never, "never NT"),
    (Policy::Always, "always NT"),
    (Policy::Large, "NT from 64K"),
    (Policy::BeyondL2, "NT above L2"),
    (Policy::Known, "NT when known"),
    (Policy::CopyIn, "NT copyin only"),
];

/// What a policy may look at.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    size: usize,
    l2: usize,
    /// The caller says that nobody reads it soon.
    never_read: bool,
    /// Into the kernel, for a device to fetch.
    copyin: bool,
}

impl Policy {
    fn goes_around(self, at: Circumstances) -> bool {
        match self {
            Policy::Never => false,
            Policy::Always => true,
            Policy::Large => at.size >= LARGE,
            Policy::BeyondL2 => at.size > at.l2,
            Policy::Known => at.never_read,
            Policy::CopyIn => at.copyin,
        }
    }
}

/// Drawn: operation, reader and bystander by policy; and speed.
pub(super) fn figures() -> Vec<Figure> {
    let panels = ["state", USER_REUSED, READ, OTHER_CORE, "size"].map(str::to_owned).to_vec();
    let bars = |title: &str, value: &str| Figure {
        title: title.to_owned(),
        kind: FigureKind::Bars,
        x: "candidate".to_owned(),
        y: None,
        value: value.to_owned(),
        panels: panels.clone(),
        candidates: Vec::new(),
        states: String::new(),
    };
    vec![
        bars("Whole cost of a call by policy", "cost"),
        bars("Gigabits per second of one core", GBIT),
    ]
}

/// One point: who writes, who reads, how much.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    state: &'static str,
    size: usize,
    reused: bool,
    read: bool,
    other_core: bool,
}

/// A copy as one policy makes it. The policy looks at its circumstances in every call.
struct Copyout<'r> {
    name: &'static str,
    policy: Option<Policy>,
    through: CopyFn,
    around: CopyFn,
    circumstances: Circumstances,
    device: Option<&'r Device>,
}

impl Copyout<'_> {
    fn chosen(&self) -> CopyFn {
        match self.policy {
            Some(policy) if policy.goes_around(std::hint::black_box(self.circumstances)) => {
                self.around
            }
            _ => self.through,
        }
    }
}

impl Candidate for Copyout<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn call(&mut self, place: &Place) {
        let copy = self.chosen();
        // SAFETY: the sampler's places are valid for n bytes, source and destination apart, and
        // both kernels run here.
        unsafe { copy(place.dst, place.src, place.n) };
    }

    fn before(&mut self, places: &[Place], calls: usize) {
        if let Some(device) = self.device {
            for place in &places[..calls.min(places.len())] {
                device.write(place);
            }
        }
    }

    fn function(&self) -> Option<Function> {
        Some(Function::Copy(self.chosen()))
    }

    fn stays(&self) -> bool {
        true
    }
}

/// Another core in the place of a device: it writes ring buffers through its own cache.
struct Device {
    requests: Option<SyncSender<(usize, usize)>>,
    done: Receiver<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Device {
    fn start() -> Option<Device> {
        let (requests, incoming) = sync_channel::<(usize, usize)>(1);
        let (finished, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("device".to_owned()).spawn(move || {
            let mut word = 0x5EED_u64;
            while let Ok((address, bytes)) = incoming.recv() {
                let words = std::ptr::with_exposed_provenance_mut::<u64>(address);
                for index in 0..bytes / 8 {
                    word = word.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    // SAFETY: the buffer of a place, which its owner leaves alone until this
                    // thread says that it is done; no alignment is assumed.
                    unsafe { words.wrapping_add(index).write_unaligned(word | 1) };
                }
                if finished.send(()).is_err() {
                    break;
                }
            }
        });
        Some(Device { requests: Some(requests), done, thread: Some(thread.ok()?) })
    }

    /// Has the source of a place written over and waits for it.
    fn write(&self, place: &Place) {
        let address = place.src.cast_mut().expose_provenance();
        let sent = self.requests.as_ref().is_some_and(|to| to.send((address, place.n)).is_ok());
        if sent {
            // Its thread ends when this does; while it lives it answers.
            let _ = self.done.recv();
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    common::refuse_placements(setting, "the ring and the user's buffer have places of their own")?;
    let (through, around) = kernels(setting)?;
    (setting.notes)(format!("policies choose between {} and {}", through.0, around.0))?;
    let device = if parallelism() > 1 {
        Device::start()
    } else {
        (setting.notes)("skipped the ring written by another core: there is none".to_owned())?;
        None
    };
    let points = points(setting, device.is_some());
    let weight = |point: &Point| (point.size + (1 << 20)) as f64;
    setting.observer.begin(experiment.name, points.iter().map(weight).sum());
    let mut rows = Vec::new();
    for point in points {
        let measured =
            one_point(experiment, setting, (through.1, around.1), device.as_ref(), point)?;
        match measured {
            Measured::Interrupted => {
                say(setting, &rows);
                return Ok(Finish::Interrupted);
            }
            Measured::Skipped => {}
            Measured::Rows(of_cell) => {
                for row in of_cell {
                    (setting.rows)(&row)?;
                    rows.push(row);
                }
            }
        }
        let text = format!("{} {}", point.state, super::short_bytes(point.size));
        setting.observer.advance(&text, weight(&point));
    }
    say(setting, &rows);
    Ok(Finish::Complete)
}

fn say(setting: &mut Setting<'_>, rows: &[Row]) {
    for verdict in verdicts(rows) {
        (setting.verdicts)(verdict);
    }
}

fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A kernel's name and entry point.
type Named = (String, CopyFn);

/// One kernel for each side: the widest here, the period's bcopy and pagecopy with `--classic`, or
/// the two that were asked for.
fn kernels(setting: &mut Setting<'_>) -> Result<(Named, Named), LabError> {
    let features = setting.bench.features;
    let (through, around) = match setting.options.kernels.as_deref() {
        Some(pattern) => {
            let chosen = select::kernels(&[Operation::Copy], Some(pattern))?;
            let (around, through): (Vec<_>, Vec<_>) = common::present(setting, chosen)?
                .into_iter()
                .partition(|kernel| kernel.is_non_temporal());
            match (&through[..], &around[..]) {
                (&[through], &[around]) => (through, around),
                (through, around) => {
                    return Err(LabError::Unsuited {
                        option: "--kernels",
                        found: format!(
                            "{} that store through the cache and {} around it",
                            through.len(),
                            around.len()
                        ),
                        accepted: "one of each, for the policies to choose between: \
                                   copy\\.sse2(\\.nt)?"
                            .to_owned(),
                    });
                }
            }
        }
        None if setting.options.classic => {
            match (find("copy.rep.movsq"), find("copy.gpr64.nt.pf320")) {
                (Some(through), Some(around)) => (through, around),
                _ => {
                    return Err(LabError::Nothing {
                        why: "the period's bcopy and pagecopy are x86-64 routines".to_owned(),
                    });
                }
            }
        }
        None => common::widest(Operation::Copy, features).ok_or_else(|| LabError::Nothing {
            why: "this CPU has no copy around the cache for a policy to choose".to_owned(),
        })?,
    };
    let entry = |kernel: &Kernel| match kernel.function {
        Function::Copy(copy) => Ok((kernel.name.to_owned(), copy)),
        _ => Err(LabError::Nothing { why: format!("{} copies no bytes", kernel.name) }),
    };
    Ok((entry(through)?, entry(around)?))
}

/// What is measured: every size received into a reused and a streamed buffer, read and not; and
/// sent.
fn points(setting: &Setting<'_>, has_device: bool) -> Vec<Point> {
    let options = setting.options;
    let l2 = setting.bench.machine.caches.l2.bytes;
    let sizes = match options {
        _ if !options.sizes.is_empty() => options.sizes.clone(),
        // A page of a jumbo frame, and what a socket buffer of 2006 could hold.
        _ if options.classic => vec![4 << 10, 256 << 10],
        _ if options.quick => vec![16 << 10, 4 * l2],
        _ => vec![4 << 10, 16 << 10, 256 << 10, 4 * l2],
    };
    let mut points = Vec::new();
    for size in sizes {
        for reused in [true, false] {
            for read in [false, true] {
                points.push(Point { state: RECEIVE, size, reused, read, other_core: false });
                if has_device && (!options.quick || (reused && read)) {
                    points.push(Point { state: RECEIVE, size, reused, read, other_core: true });
                }
            }
        }
        points.push(Point { state: SEND, size, reused: true, read: false, other_core: false });
    }
    points
}

fn one_point(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    (through, around): (CopyFn, CopyFn),
    device: Option<&Device>,
    point: Point,
) -> Result<Measured, LabError> {
    let copyin = point.state == SEND;
    let circumstances = Circumstances {
        size: point.size,
        l2: setting.bench.machine.caches.l2.bytes,
        never_read: !point.read,
        copyin,
    };
    let memory = Some(Level::Dram);
    let scene = Scene {
        // A ring that the other core has just written is one buffer, wherever it left it.
        source: if copyin || point.other_core { None } else { memory },
        destination: if copyin || !point.reused { memory } else { None },
        bystander: Some(setting.bench.bystander_bytes(point.size)),
        ..Scene::reused(point.state)
    };
    let scene = if point.read { scene.read_after(Delay::None, 1.0) } else { scene };
    let mut plan = setting.plan(false);
    plan.max_sample_ns = if setting.options.quick { 5e6 } else { 2e7 };
    let question = Question {
        experiment: experiment.name,
        operation: Operation::Copy,
        size: point.size,
        state: State::Scene(scene),
        routines: &[],
        plan,
        verify: true,
    };
    let device = device.filter(|_| point.other_core);
    let Function::Copy(libc) = libc_reference(Operation::Copy).function else {
        return Ok(Measured::Skipped);
    };
    let reference =
        Copyout { name: LIBC, policy: None, through: libc, around: libc, circumstances, device };
    let mut copyouts = vec![reference];
    copyouts.extend(POLICIES.iter().map(|&(policy, name)| Copyout {
        name,
        policy: Some(policy),
        through,
        around,
        circumstances,
        device,
    }));
    let mut connection = match point {
        Point { state: RECEIVE, other_core: false, .. } => connection(setting, point.size)?,
        _ => None,
    };
    let mut candidates: Vec<&mut dyn Candidate> =
        copyouts.iter_mut().map(|copyout| copyout as &mut dyn Candidate).collect();
    candidates.extend(connection.iter_mut().map(|tcp| tcp as &mut dyn Candidate));
    let mut rows = match common::measure(setting, &question, &mut candidates)? {
        Measured::Rows(rows) => rows,
        other => return Ok(other),
    };
    if let Some(error) = connection.as_mut().and_then(tcp::Connection::take_failure) {
        (setting.notes)(format!("left out {TCP}: {error}"))?;
        rows.retain(|row| row.candidate != TCP);
    }
    let cpu = connection.as_ref().and_then(tcp::Connection::cpu_ns_per_call);
    let size = point.size as f64;
    for row in &mut rows {
        let whole = stats::median(&crate::evidence::whole(row)).max(f64::MIN_POSITIVE);
        let copy = stats::median(&row.operation_ns);
        // A receive waits for its sender; what counts is what it costs the receiver.
        let cost = if row.candidate == TCP { cpu.unwrap_or(copy) } else { copy };
        let share = |nanoseconds: f64| nanoseconds / size / BYTE_NS_AT_10G;
        row.extra.insert(GBIT.to_owned(), size * 8.0 / whole);
        row.extra.insert(COPY_SHARE.to_owned(), share(cost));
        row.extra.insert(CPU_SHARE.to_owned(), share(whole - copy + cost));
        let flag = |set: bool| f64::from(u8::from(set));
        row.cell.axes.extend([
            (USER_REUSED.to_owned(), flag(point.reused)),
            (OTHER_CORE.to_owned(), flag(point.other_core)),
            (READ.to_owned(), flag(point.read)),
        ]);
    }
    Ok(Measured::Rows(rows))
}

/// A loopback connection, or a note that says why there is none.
fn connection(setting: &mut Setting<'_>, size: usize) -> Result<Option<tcp::Connection>, LabError> {
    match tcp::Connection::open(size) {
        Ok(connection) => Ok(Some(connection)),
        Err(tcp::Refused::WrongBytes(what)) => Err(LabError::WrongBytes { what }),
        Err(tcp::Refused::Io(error)) => {
            (setting.notes)(format!("skipped {TCP}: {error}"))?;
            Ok(None)
        }
    }
}

/// Which policy costs least over everything, and what 001.8 recommends. Pure.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = common::cells(rows);
    if cells.is_empty() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    let means = means(&cells, |_| true);
    let text = |means: &[(&str, f64)]| {
        let texts: Vec<String> =
            means.iter().map(|(name, mean)| format!("{name} {mean:.2}")).collect();
        texts.join(", ")
    };
    if let [(best, least), (second, next), ..] = means[..] {
        // Policies that choose alike everywhere differ by noise alone: this much is none.
        let clear = next > least * TIE;
        let head = if clear {
            format!("\"{best}\" costs least")
        } else {
            format!("Cannot tell \"{best}\" from \"{second}\"; they cost least")
        };
        texts.push(format!(
            "Policies over {} cells of receiving and sending (001.8; whole cost over \"never NT\", \
             geometric mean): {head}: {}",
            cells.len(),
            text(&means)
        ));
    } else {
        texts.push("Policies (001.8) were not measured".to_owned());
    }
    texts.extend(recommended(&cells));
    for (state, what) in [(RECEIVE, "Receiving"), (SEND, "Sending, for a device to fetch (001.8)")]
    {
        let tally = |wanted: Verdict| {
            let of_it = cells.iter().filter(|(key, of_cell)| {
                key.state == state
                    && common::versus(of_cell, "always NT", "never NT")
                        .is_some_and(|pair| says(pair) == wanted)
            });
            of_it.count()
        };
        let (faster, slower) = (tally(Verdict::Faster), tally(Verdict::Slower));
        let all = cells.iter().filter(|(key, _)| key.state == state).count();
        if all > 0 {
            texts.push(format!(
                "{what}: around the cache costs less in {faster} of {all} cells, more in {slower}, \
                 cannot tell in {}",
                all - faster - slower
            ));
        }
    }
    texts.extend(beside_tcp(&cells));
    texts
}

/// Means closer than this are a tie.
const TIE: f64 = 1.02;

type Cells<'r> = [(&'r cachewise_measure::CellKey, Vec<&'r Row>)];

/// Each policy's whole cost over "never NT", the geometric mean over cells, cheapest first.
fn means(
    cells: &Cells<'_>,
    wanted: impl Fn(&cachewise_measure::CellKey) -> bool,
) -> Vec<(&'static str, f64)> {
    let mut means: Vec<(&'static str, f64)> = POLICIES
        .iter()
        .filter_map(|(_, name)| {
            let ratios: Vec<f64> = cells
                .iter()
                .filter(|(key, _)| wanted(key))
                .filter_map(|(_, of_cell)| common::versus(of_cell, name, "never NT"))
                .map(|pair| pair.median)
                .collect();
            (!ratios.is_empty()).then(|| (*name, stats::geometric_mean(&ratios)))
        })
        .collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    means
}

/// Is "only when known non-temporal" (Evans's advice) better than what size alone can decide?
fn recommended(cells: &Cells<'_>) -> Option<String> {
    let by_size = ["NT from 64K", "NT above L2"];
    let (mut known, mut rule): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let all = means(cells, |_| true);
    let best = all.iter().find(|(name, _)| by_size.contains(name))?.0;
    for (_, of_cell) in cells {
        let (Some(ours), Some(theirs)) = (
            common::versus(of_cell, "NT when known", "never NT"),
            common::versus(of_cell, best, "never NT"),
        ) else {
            continue;
        };
        known.push(ours.median);
        rule.push(theirs.median);
    }
    let pair = PairedRatio::new(&known, &rule, 0);
    let answer = match says(pair) {
        Verdict::Faster => "still true: the hint costs less",
        Verdict::Slower => "no longer true here: the size decides better",
        Verdict::CannotTell => "cannot tell here",
    };
    Some(format!(
        "A caller's hint decides what size cannot (001.8); {answer}: \"NT when known\" takes {} as \
         \"{best}\", cell by cell",
        common::times(pair)
    ))
}

/// What part of a real receive the copy is (001.7).
fn beside_tcp(cells: &Cells<'_>) -> Option<String> {
    let shares: Vec<(u64, f64, f64)> = cells
        .iter()
        .filter_map(|(key, of_cell)| {
            let share = |name| common::named(of_cell, name)?.extra.get(COPY_SHARE).copied();
            Some((key.size, share("never NT")?, share(TCP)?))
        })
        .collect();
    let (size, copy, tcp) = *shares.last()?;
    Some(format!(
        "A real TCP receive of {} over loopback takes {:.0} % of a core at 10 Gb/s, one copy of it \
         through the cache {:.0} %, {:.0} % of the receive (001.7 saw up to 70 %)",
        super::short_bytes(size as usize),
        tcp * 100.0,
        copy * 100.0,
        copy / tcp * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::common::made_up::{cell, row};
    use super::*;

    fn point(state: &str, size: u64, read: bool, never: f64, always: f64) -> Vec<Row> {
        let mut key = cell("copy", size, state);
        key.axes.insert(READ.to_owned(), f64::from(u8::from(read)));
        let at = Circumstances {
            size: size as usize,
            l2: 512 << 10,
            never_read: !read,
            copyin: state == SEND,
        };
        let mut rows = vec![row(&key, LIBC, never)];
        rows.extend(POLICIES.iter().map(|(policy, name)| {
            row(&key, name, if policy.goes_around(at) { always } else { never })
        }));
        rows
    }

    #[test]
    fn policies_differ_where_their_names_say() {
        let at = |size, read: bool, copyin| Circumstances {
            size,
            l2: 512 << 10,
            never_read: !read,
            copyin,
        };
        let choices = |at| POLICIES.map(|(policy, _)| policy.goes_around(at));
        assert_eq!(choices(at(4096, true, false)), [false, true, false, false, false, false]);
        assert_eq!(choices(at(LARGE, true, false)), [false, true, true, false, false, false]);
        assert_eq!(choices(at(1 << 20, false, false)), [false, true, true, true, true, false]);
        assert_eq!(choices(at(4096, false, true)), [false, true, false, false, true, true]);
    }

    #[test]
    fn each_outcome_has_its_sentence() {
        // Around the cache loses where it is read and wins where it is not, whatever the size.
        let hinted = [
            point(RECEIVE, 4096, true, 100.0, 200.0),
            point(RECEIVE, 4096, false, 100.0, 60.0),
            point(RECEIVE, 1 << 20, true, 100.0, 200.0),
            point(RECEIVE, 1 << 20, false, 100.0, 60.0),
            point(RECEIVE, 2 << 20, true, 100.0, 200.0),
            point(SEND, 4096, false, 100.0, 60.0),
        ]
        .concat();
        let texts = verdicts(&hinted);
        assert!(texts[0].contains("\"NT when known\" costs least"), "{texts:?}");
        assert!(
            texts.iter().any(|text| text
                .starts_with("Receiving: around the cache costs less in 2 of 5 cells, more in 3")),
            "{texts:?}"
        );
        assert!(
            texts.iter().any(|text| text.starts_with("Sending") && text.contains("less in 1 of 1")),
            "{texts:?}"
        );

        let never_matters = point(RECEIVE, 4096, true, 100.0, 100.0);
        let texts = verdicts(&never_matters);
        assert!(texts[0].contains("Cannot tell"), "{texts:?}");
        assert!(texts[1].contains("cannot tell here"), "{texts:?}");
        assert!(verdicts(&[]).is_empty());
        let key = cell("copy", 4096, RECEIVE);
        assert!(verdicts(&[row(&key, LIBC, 1.0)])[0].contains("were not measured"));
    }

    #[test]
    fn the_hint_needs_enough_cells_to_be_judged() {
        let sizes = (0..8).map(|shift| 4096 << shift);
        let helped: Vec<Row> = sizes
            .clone()
            .flat_map(|size| {
                [point(RECEIVE, size, false, 100.0, 50.0), point(RECEIVE, size, true, 100.0, 300.0)]
            })
            .flatten()
            .collect();
        let text = verdicts(&helped)[1].clone();
        assert!(text.contains("still true") || text.contains("cannot tell"), "{text}");
        let misled: Vec<Row> =
            sizes.flat_map(|size| point(RECEIVE, size << 8, false, 50.0, 100.0)).collect();
        assert!(verdicts(&misled)[1].contains("cannot tell here"), "{:?}", verdicts(&misled));
    }

    #[test]
    fn another_core_writes_what_it_is_asked_to() {
        let device = Device::start().expect("a thread");
        let mut ring = vec![0_u64; 512];
        let place = Place { dst: std::ptr::null_mut(), src: ring.as_mut_ptr().cast(), n: 4096 };
        device.write(&place);
        assert!(ring.iter().all(|word| word & 1 == 1));
        let first = ring.clone();
        let place = Place { src: ring.as_mut_ptr().cast(), ..place };
        device.write(&place);
        assert!(ring != first, "other bytes each time");
    }
}
