//! Figures of a host that is old, full and shared, a section at a time:
//! `cargo run --release -p cachewise-scrubd --example host -- SECTION [--rounds N] [--to FILE]`, as root, on a machine that does
//! nothing else. Each prints a table, and FILE becomes its record. A killed run leaves nothing changed: see `processes`.
//!
//! The million of leases is a test: `CACHEWISE_SOAK="1000000 10000"` with `tests/soak.rs`.

mod processes;

use cachewise_measure::turns::orders;
use cachewise_measure::{
    Clock, Machine, NoiseSnapshot, PairedRatio, Row, Writer, record, warnings,
};
use processes::{GIB, MIB, Process, Server};
use record::{CellKey, Header};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A section: its name, the measuring, and the rounds that its figures take.
type Section = (&'static str, fn(&mut Table), usize);
const SECTIONS: [Section; 6] = [
    ("pressure", pressure, 6),
    ("old-host", old_host, 6),
    ("cost", cost, 6),
    ("load", load, 6),
    ("fork", fork, 12),
    ("programs", programs, 6),
];
const KINDS: [&str; 3] = ["huge", "small", "leased"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if processes::run(&words) {
        return ExitCode::SUCCESS;
    }
    let accepted = |what: &str| {
        eprintln!("found {what}, accepted {}", SECTIONS.map(|(name, ..)| name).join(", "));
        ExitCode::from(2)
    };
    let Some((name, options)) = words.split_first() else { return accepted("no section") };
    let Some((name, section, rounds)) = SECTIONS.iter().find(|(known, ..)| known == name) else {
        return accepted(name);
    };
    let mut table =
        Table { section: name, rounds: *rounds, gib: None, rows: Vec::new(), notes: Vec::new() };
    let mut to: Option<&Path> = None;
    for option in options.chunks(2) {
        match *option {
            ["--rounds", number] if number.parse().is_ok_and(|number: usize| number > 0) => {
                table.rounds = number.parse().expect("a number");
            }
            ["--fragment", gib] if gib.parse().is_ok_and(|gib: usize| gib > 0) => {
                table.gib = gib.parse().ok();
            }
            ["--to", file] => to = Some(file.as_ref()),
            _ => {
                eprintln!("found {option:?}, accepted --rounds N, --to FILE, --fragment GIB");
                return ExitCode::from(2);
            }
        }
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "found no root, accepted root: this changes settings and control groups, and locks memory"
        );
        return ExitCode::from(2);
    }
    let (machine, clock) = (Machine::describe(), Clock::of_process().facts());
    let mut header = Header::now("cachewise-scrubd's host", machine, clock, 0);
    header.settings.insert("experiment".into(), table.experiment().into());
    let before = NoiseSnapshot::take();
    section(&mut table);
    header.warnings = warnings(&before, &NoiseSnapshot::take(), &header.machine);
    header.warnings.iter().for_each(|warning| println!("# {}: {}", warning.cause, warning.figure));
    table.print();
    if let Some(file) = to {
        table.write(file, &header).expect("a record");
    }
    ExitCode::SUCCESS
}

struct Table {
    section: &'static str,
    rounds: usize,
    /// Memory to fragment, in GiB; all but the last one that is available if `None`.
    gib: Option<usize>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Table {
    /// The name of the section's record.
    fn experiment(&self) -> String {
        format!("scrubd-{}", self.section)
    }

    /// Enters the times of a candidate in ms, by round, with further figures.
    fn enter(
        &mut self,
        state: &str,
        bytes: usize,
        who: [&str; 2],
        ms: &[f64],
        more: &[(&str, f64)],
    ) {
        let [candidate, reference] = who;
        let cell = CellKey::new("zero-pages", bytes, state);
        let ns = ms.iter().map(|ms| ms * 1e6).collect();
        self.rows.push(Row::new(&self.experiment(), cell, candidate, reference, ns).with(more));
    }

    fn note(&mut self, text: String) {
        println!("# {text}");
        self.notes.push(text);
    }

    /// Compares each with its reference, and with the others of its cell that are asked for.
    fn compare(&mut self) {
        let all = self.rows.clone();
        for row in &mut self.rows {
            let is_base = |other: &&Row| other.cell == row.cell && other.candidate == row.reference;
            let base = all.iter().find(is_base).filter(|base| base.candidate != row.candidate);
            let Some(base) = base else { continue };
            row.ratio = Some(PairedRatio::paired(&row.operation_ns, &base.operation_ns));
            row.verdict = row.said();
        }
    }

    fn print(&mut self) {
        self.compare();
        println!("{}: ms, median (95 % of {}); ratio to the reference", self.section, self.rounds);
        for row in &self.rows {
            let ms: Vec<f64> = row.operation_ns.iter().map(|ns| ns / 1e6).collect();
            let mut line = format!("{} | {} | {}", row.cell.state, row.candidate, shown(&ms));
            if let Some(ratio) = &row.ratio {
                line += &format!(" | {ratio:.2} of {}", row.reference);
            }
            for (name, value) in &row.extra {
                line += &format!(" | {} {value:.2}", name.replace('_', " "));
            }
            println!("{line}");
        }
    }

    fn write(&self, file: &Path, header: &Header) -> Result<(), record::RecordError> {
        let mut writer = Writer::create(file)?;
        writer.header(header)?;
        self.rows.iter().try_for_each(|row| writer.row(row))?;
        self.notes.iter().try_for_each(|note| writer.note(note))?;
        writer.finish(false).map(drop)
    }
}

fn shown(values: &[f64]) -> String {
    match values {
        [] => "none".into(),
        _ => {
            let (low, high) = cachewise_judge::interval::of_median(values);
            format!("{:.1} ({low:.1} .. {high:.1})", median(values))
        }
    }
}

fn median(values: &[f64]) -> f64 {
    cachewise_judge::order::median(values)
}

/// Values of each candidate, from rounds in which they take turns: a round gives a list of them.
fn in_turns(
    kinds: usize,
    rounds: usize,
    mut once: impl FnMut(usize) -> Vec<f64>,
) -> Vec<Vec<Vec<f64>>> {
    let mut found = vec![Vec::new(); kinds];
    for order in orders(kinds, rounds, 1) {
        for kind in order {
            let values = once(kind);
            found[kind].resize(values.len(), Vec::new());
            found[kind]
                .iter_mut()
                .zip(values)
                .for_each(|(all, value): (&mut Vec<f64>, f64)| all.push(value));
        }
    }
    found
}

fn used(kind: &str, bytes: usize, passes: usize, server: &Server) -> Vec<f64> {
    let [bytes, passes] = [bytes, passes].map(|number| number.to_string());
    Process::start(&["use", kind, &bytes, &passes, &server.socket.to_string_lossy()]).numbers()
}

// 1. Pressure.

/// A control group's version and folder; `None`, with a note, where none can be made.
fn group(table: &mut Table, mib: usize) -> Option<(Process, String, String)> {
    let mut keeper = Process::start(&["group", &mib.to_string()]);
    let said = keeper.line();
    let (version, rest) = said.split_once(' ')?;
    if version == "0" {
        table.note(format!("pressure in a control group: SKIPPED, none can be made: {rest}"));
        return None;
    }
    Some((keeper, version.to_owned(), rest.to_owned()))
}

fn pressure(table: &mut Table) {
    let whole = cachewise_scrubd::pressure::Host::new().look().available as usize / MIB;
    // Mix, limit or none, ready, kept, taken, pieces of that, pause after each; MiB and ms.
    let mixes = [
        ("600 MiB, 400 ready, 300 taken at once", 600, 400, 0, 300, 300, 0),
        ("the same, 10 MiB each 100 ms", 600, 400, 0, 300, 10, 100),
        ("the same, 1 MiB each ms", 600, 400, 0, 300, 1, 1),
        ("the same at once, 200 ready kept", 600, 400, 200, 300, 300, 0),
        ("2 GiB, 1800 ready, 1200 taken at once", 2048, 1800, 0, 1200, 1200, 0),
        (
            "the machine, all but 2 GiB ready, 4 GiB taken",
            0,
            whole.saturating_sub(2048) / 256 * 256,
            0,
            4096,
            64,
            0,
        ),
    ];
    for (mix, limit, size, keep, bytes, piece, pause) in mixes {
        let (mut killed, mut took, mut short, mut given) = (0, Vec::new(), Vec::new(), Vec::new());
        for _ in 0..table.rounds {
            let group = if limit == 0 { None } else { group(table, limit) };
            if limit != 0 && group.is_none() {
                break;
            }
            let (version, path) =
                group.as_ref().map_or(("0", "-"), |(_, version, path)| (&**version, &**path));
            if table.rows.is_empty() && took.is_empty() && limit != 0 {
                table.note(format!("control groups: version {version}"));
            }
            let segment = if limit == 0 { 256 * MIB } else { 50 * MIB };
            let server = Server::start([size * MIB, segment, keep * MIB], path);
            let mut watcher = Process::start(&["watch", path]);
            assert_eq!(watcher.line(), "ready");
            let [all, one, rest] =
                [bytes * MIB, piece * MIB, pause].map(|number| number.to_string());
            let mut neighbour = Process::start(&["take", &all, &one, &rest, path]);
            match neighbour.line().parse() {
                Ok(ms) => took.push(ms),
                Err(_) => killed += 1,
            }
            watcher.stop();
            short.extend(watcher.numbers());
            given.extend(server.status().map(|status| status.given_back as f64 / MIB as f64));
        }
        if !short.is_empty() {
            let more = [
                ("neighbours_killed", f64::from(killed)),
                ("it_took_ms", median(&took)),
                ("MiB_given_back", median(&given)),
            ];
            table.enter(mix, bytes * MIB, ["below the margin", ""], &short, &more);
        }
    }
}

// 2. The old host.

fn old_host(table: &mut Table) {
    let bytes = 2 * GIB;
    let server = Server::start([bytes, bytes, 0], "-");
    let rows = |table: &mut Table, state: &str, rest: u64| {
        let found = in_turns(KINDS.len(), table.rounds, |kind| {
            std::thread::sleep(Duration::from_secs(rest));
            let values = used(KINDS[kind], bytes, 1, &server);
            server.wait_until_full();
            values
        });
        for (kind, values) in KINDS.iter().zip(&found) {
            let [resident, pass, huge] = &values[..] else { panic!("found {values:?}") };
            let more = [("first_pass_ms", median(pass)), ("in_huge_pages", median(huge))];
            table.enter(state, bytes, [kind, "huge"], resident, &more);
        }
        let ratio = PairedRatio::paired(&found[2][0], &found[1][0]);
        table.note(format!("{state}: leased takes {ratio:.4} of small pages' time"));
    };
    rows(table, "as it was found", 0);
    // The host takes free memory back meanwhile, where the guest reports it.
    rows(table, "after 10 s of rest", 10);
    let Some(_holder) = fragmented(table) else { return };
    rows(table, "fragmented", 0);
}

/// Fragments free memory for as long as the process lives.
fn fragmented(table: &mut Table) -> Option<Process> {
    let available = cachewise_scrubd::pressure::Host::new().look().available as usize / GIB;
    let gib = table.gib.unwrap_or(available.saturating_sub(1));
    let mut holder = Process::start(&["fragment", &gib.to_string()]);
    let whole = holder.line();
    if whole.is_empty() {
        table.note(format!("fragmented memory: SKIPPED, there are no {gib} GiB to be had"));
        return None;
    }
    table.note(format!("{gib} GiB fragmented; whole and free are {whole} times 2 MiB"));
    Some(holder)
}

// 3. Total cost.

/// Wall ms, CPU ms with the server's, the server's, and its share of a CPU, of one process after another.
fn processes_of(kind: &str, number: usize, bytes: usize, server: &Server) -> Vec<f64> {
    let (before, own, begun) = (server.wait_until_full(), children_cpu(), Instant::now());
    for _ in 0..number {
        used(kind, bytes, 2, server);
    }
    let wall = begun.elapsed().as_secs_f64();
    let cpu = children_cpu() - own;
    // Until all is as before; its answers to this question are a part of its time, too.
    let after = server.wait_until_full();
    let servers = after.cpu_seconds - before.cpu_seconds;
    let zeroing = after.zeroed_cpu_seconds - before.zeroed_cpu_seconds;
    let of = |seconds: f64| seconds * 1e3 / number as f64;
    vec![of(wall), of(cpu + servers), of(servers), zeroing / (after.seconds - before.seconds)]
}

/// CPU seconds of children that have ended.
fn children_cpu() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a place for what is told.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: zeros are a value of it, too.
    let usage = unsafe { usage.assume_init() };
    let of = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn cost(table: &mut Table) {
    let bytes = 256 * MIB;
    let sizes = [4 * bytes, bytes, 0];
    let servers = [Server::start(sizes, "-"), Server::in_place(sizes)];
    let kinds = [&KINDS[..], &["leased, in place"]].concat();
    for (number, rounds) in [(1, 4 * table.rounds), (100, table.rounds)] {
        let found = in_turns(kinds.len(), rounds, |kind| {
            let server = &servers[usize::from(kind == KINDS.len())];
            processes_of(kinds[kind], number, bytes, server)
        });
        for (place, what) in ["wall", "CPU, scrubd's included"].into_iter().enumerate() {
            for (kind, values) in kinds.iter().zip(&found) {
                let more = [
                    ("CPU_of_scrubd_ms", median(&values[2])),
                    ("CPUs_zeroing", median(&values[3])),
                ];
                let more = if place == 0 { &[][..] } else { &more };
                let state = format!("{number} in turn, {what}");
                table.enter(&state, bytes, [kind, "huge"], &values[place], more);
            }
            let ratio = PairedRatio::paired(&found[2][place], &found[1][place]);
            table
                .note(format!("{number} in turn, {what}: leased takes {ratio:.2} of small pages'"));
        }
    }
}

// 4. Load.

fn load(table: &mut Table) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = GIB;
    // After all was leased and returned, and after a restart.
    let ready = |restart: bool| {
        let begun = Instant::now();
        if restart {
            let server = Server::start([bytes, bytes, 0], "-");
            server.wait_until_full();
            return begun.elapsed().as_secs_f64() * 1e3;
        }
        let server = Server::start([bytes, bytes, 0], "-");
        used("leased", bytes, 1, &server);
        let begun = Instant::now();
        server.wait_until_full();
        begun.elapsed().as_secs_f64() * 1e3
    };
    // Besides busy threads: their speed, too.
    let busy = |work: &dyn Fn() -> f64| {
        let mut all: Vec<_> = (0..2 * cpus).map(|_| Process::start(&["spin"])).collect();
        all.iter_mut().for_each(|one| assert_eq!(one.line(), "ready"));
        std::thread::sleep(Duration::from_secs(2));
        let ms = work();
        all.iter_mut().for_each(Process::stop);
        (ms, all.iter_mut().map(|one| one.numbers()[0]).sum::<f64>())
    };
    let mut found: [[Vec<f64>; 2]; 2] = Default::default();
    let mut slowed: [Vec<f64>; 2] = Default::default();
    for _ in 0..table.rounds {
        let (_, alone) = busy(&|| {
            std::thread::sleep(Duration::from_secs(5));
            0.0
        });
        for restart in [false, true] {
            let place = usize::from(restart);
            found[place][0].push(ready(restart));
            let (ms, beside) = busy(&|| ready(restart));
            found[place][1].push(ms);
            slowed[place].push(beside / alone);
        }
    }
    let beside = format!("beside {} busy threads on {cpus} CPUs", 2 * cpus);
    for ((what, [quiet, loaded]), slowed) in
        ["ready again after all was leased", "ready after a restart"]
            .iter()
            .zip(&found)
            .zip(&slowed)
    {
        table.enter(what, bytes, ["quiet", "quiet"], quiet, &[]);
        let more = [("speed_of_the_threads", median(slowed))];
        table.enter(what, bytes, [&beside, "quiet"], loaded, &more);
    }
}

// 6. Fork.

fn fork(table: &mut Table) {
    let bytes = 256 * MIB;
    let server = Server::start([2 * bytes, 2 * bytes, 0], "-");
    let kinds = ["memory without a pool", "pool, private", "pool, leased"];
    let mut wrong = 0;
    let found = in_turns(kinds.len(), table.rounds, |kind| {
        server.wait_until_full();
        let words = ["fork", kinds[kind], &bytes.to_string(), &server.socket.to_string_lossy()];
        let [fork, child, alone, well, same, status] = Process::start(&words).numbers()[..] else {
            panic!("the child of {} said nothing: a signal ended it", kinds[kind])
        };
        wrong += u32::from([well, same, status] != [1.0, 1.0, 0.0]);
        vec![fork, child, fork + child, alone]
    });
    for (place, state) in ["fork", "the child writes all", "both"].into_iter().enumerate() {
        for (kind, values) in kinds.iter().zip(&found) {
            let more = [("MiB_copied_at_the_fork", median(&values[3]))];
            let more = if place == 0 { &more[..] } else { &[] };
            table.enter(state, bytes, [kind, kinds[0]], &values[place], more);
        }
    }
    table.note(format!("{wrong} children ended by a signal, or with other bytes"));
}

// Programs that nobody wrote for this.

fn programs(table: &mut Table) {
    let found = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !found("qemu-system-x86_64") {
        table.note("QEMU: SKIPPED, qemu-system-x86 is not installed".into());
        return;
    }
    let bytes = 2 * GIB;
    let server = Server::start([bytes, bytes, 0], "-");
    // Its monitor greets once the memory is there.
    let started = |leased: bool| {
        let memory = if leased {
            "memory-backend-file,id=ram,size=2G,mem-path={path},share=on,align=2M,prealloc=on"
        } else {
            "memory-backend-ram,id=ram,size=2G,prealloc=on"
        };
        let machine = "qemu-system-x86_64 -m 2G -machine q35,memory-backend=ram -accel kvm -accel tcg \
                       -nodefaults -display none -S -qmp stdio -object";
        let words: Vec<&str> =
            machine.split(' ').filter(|word| !word.is_empty()).chain([memory]).collect();
        let begun = Instant::now();
        let mut program = if leased {
            let bytes = bytes.to_string();
            let socket = server.socket.to_string_lossy();
            Process::start(&[&["with-lease", &bytes, &socket], &words[..]].concat())
        } else {
            Process::of(Command::new(words[0]).args(&words[1..]))
        };
        assert!(program.line().contains("QMP"), "QEMU did not start");
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        program.0.kill().expect("it runs");
        drop(program);
        server.wait_until_full();
        vec![ms]
    };
    let rows = |table: &mut Table, state: &str| {
        let found = in_turns(2, table.rounds, |kind| started(kind == 1));
        for (kind, values) in ["QEMU, private", "QEMU, leased"].iter().zip(&found) {
            table.enter(state, bytes, [kind, "QEMU, private"], &values[0], &[]);
        }
        dpdk(table, state);
    };
    rows(table, "as it was found");
    let Some(_holder) = fragmented(table) else { return };
    rows(table, "fragmented");
}

/// DPDK opens files of its own in a hugetlbfs, or asks for explicit huge pages: no lease, but the reservation shows what an
/// old host gives.
fn dpdk(table: &mut Table, state: &str) {
    let setting = "/proc/sys/vm/nr_hugepages";
    let before = std::fs::read_to_string(setting).unwrap_or_default();
    let (before, asked) = (before.trim().parse::<u64>().unwrap_or(0), 512);
    let begun = Instant::now();
    let mut keeper = Process::start(&["set", setting, &(before + asked).to_string()]);
    let got = keeper.line().parse::<u64>().unwrap_or(0).saturating_sub(before);
    table.note(format!(
        "{state}: {got} of {asked} explicit huge pages reserved, in {} ms",
        begun.elapsed().as_millis()
    ));
    for (pages, words) in [("explicit huge pages", "--in-memory"), ("small pages", "--no-huge")] {
        let words = format!(
            "-l 0,1 --no-pci {words} --no-telemetry -m 512 --vdev=net_null0 -- --total-num-mbufs=2048 --stats-period=1"
        );
        let text = match forwarding(&words) {
            None => return table.note("DPDK: SKIPPED, dpdk is not installed".into()),
            Some(Ok(ms)) => format!("forwards after {ms} ms"),
            Some(Err(last)) => format!("does not start: {last}"),
        };
        table.note(format!("{state}: testpmd with {pages}, without a lease, {text}"));
    }
}

/// The time in ms until testpmd forwards, or its last line; `None` where it is not installed.
fn forwarding(words: &str) -> Option<Result<u128, String>> {
    let begun = Instant::now();
    let mut command = Command::new("dpdk-testpmd");
    command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.stderr(Stdio::null()).spawn().map(Process).ok()?;
    let mut last = String::new();
    let started = loop {
        match program.line() {
            line if line.contains("packet forwarding") => break true,
            line if !line.is_empty() => last = line,
            _ if program.0.try_wait().is_ok_and(|ended| ended.is_some()) => break false,
            _ => {}
        }
    };
    let _ = program.0.kill();
    Some(if started { Ok(begun.elapsed().as_millis()) } else { Err(last) })
}
