//! Experiments run for real, small, and what they hand over fits together: rows, the figures that
//! say how these are drawn, and the sentences about them.

use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::experiments::{self, Experiment, Options, Setting};
use cachewise_lab::recorder::{Progress, Recorder};
use cachewise_measure::{Figure, FigureKind, Level, ProofVerdict, Row};
use std::sync::{LazyLock, Mutex, PoisonError};

/// One bench for all: experiments share its arena, and none may be timed beside another.
static BENCH: LazyLock<Mutex<Bench>> =
    LazyLock::new(|| Mutex::new(Bench::new(1, None).expect("a machine to measure")));

/// What an experiment handed over.
struct Outcome {
    finish: Result<(), LabError>,
    rows: Vec<Row>,
    notes: Vec<String>,
    verdicts: Vec<String>,
}

impl Outcome {
    /// Whether some rows say nothing: on a machine that is not quiet, operands may not be proved to be
    /// where they are said to be, and a time may be below nothing. Then, and only then, it is said.
    #[track_caller]
    fn is_withheld(&self) -> bool {
        let failed = |row: &Row| row.proofs.iter().any(|at| at.verdict == ProofVerdict::Failed);
        let fewer = self.rows.iter().any(|row| failed(row) || !row.is_measurable());
        let said = |part: &str| self.verdicts.iter().any(|text| text.contains(part));
        assert_eq!(
            fewer,
            said("Withheld: ") || said("Not measurable here: "),
            "{:?}",
            self.verdicts
        );
        fewer
    }
}

/// Looks on, and stops after a number of advances.
struct Patience {
    begun: f64,
    advanced: f64,
    left: usize,
}

impl Progress for Patience {
    fn begin(&mut self, _: &str, units: f64) {
        self.begun = units;
    }
    fn advance(&mut self, _: &str, units: f64) {
        self.advanced += units;
        self.left = self.left.saturating_sub(1);
    }
    fn cancelled(&self) -> bool {
        self.left == 0
    }
}

fn run_with(name: &str, options: &Options, patience: &mut Patience) -> Outcome {
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    let experiment = experiments::find(name).expect("it is listed");
    let mut out = Recorder::new(patience, None);
    let finish = experiment.run(&mut Setting { bench: &mut bench, options, out: &mut out });
    let verdicts = cachewise_report::sentences::of(name, &out.rows, &out.decisions.kernels);
    Outcome { finish, rows: out.rows, notes: out.notes, verdicts }
}

/// Nobody stops it before so many advances.
fn patient(left: usize) -> Patience {
    Patience { begun: 0.0, advanced: 0.0, left }
}

fn run(name: &str, options: &Options) -> Outcome {
    let mut patience = patient(usize::MAX);
    let outcome = run_with(name, options, &mut patience);
    assert!(matches!(outcome.finish, Ok(())), "{name}: {:?}", outcome.finish);
    let share = patience.advanced / patience.begun;
    assert!((0.99..=1.01).contains(&share), "{name}: the bar ends at {share}");
    consistent(name, &outcome);
    outcome
}

fn quick(kernels: &str, sizes: &[usize]) -> Options {
    Options {
        kernels: (!kernels.is_empty()).then(|| kernels.to_owned()),
        sizes: sizes.to_vec(),
        quick: true,
        ..Options::default()
    }
}

/// Experiments whose rows all have every coordinate, and stand beside the reference they name.
const EACH: [&str; 5] = ["page-clear", "page-copy", "reuse-map", "cached-target", "receive"];

/// Rows are whole, figures draw something, sentences are sentences.
fn consistent(name: &str, outcome: &Outcome) {
    assert!(!outcome.rows.is_empty(), "{name}");
    let mut seen = std::collections::BTreeSet::new();
    for row in &outcome.rows {
        assert_eq!(row.experiment, name);
        assert!(row.operation_ns.iter().all(|ns| ns.is_finite() && *ns >= 0.0), "{name}: {row:?}");
        assert!(row.operation_ns.len() >= 4 && row.ratio.is_some(), "{name}: {row:?}");
        let stands = seen.insert(format!("{:?} {}", row.cell, row.candidate));
        assert!(stands, "{name}: {} stands twice", row.candidate);
        if EACH.contains(&name) {
            assert!(row.operation_ns.len() >= 15 || row.dropped, "{name}: {row:?}");
            let is_its = |other: &&Row| other.cell == row.cell && other.candidate == row.reference;
            assert!(outcome.rows.iter().any(|other| is_its(&other)), "{name}: {}", row.candidate);
        }
    }
    for figure in experiments::find(name).expect("it is listed").figures() {
        // Distances are swept only where no residency is asked for.
        if (name, figure.states.as_str()) != ("aliasing", "power") {
            draws(name, &figure, &outcome.rows);
        }
    }
    for verdict in &outcome.verdicts {
        assert!(!verdict.contains("NaN") && verdict.len() > 20, "{name}: {verdict}");
    }
}

/// A figure's coordinates and its quantity are to be found in the rows that it shows.
fn draws(name: &str, figure: &Figure, rows: &[Row]) {
    let shown: Vec<&Row> = rows
        .iter()
        .filter(|row| row.cell.state.starts_with(&figure.states))
        .filter(|row| figure.candidates.is_empty() || figure.candidates.contains(&row.candidate))
        .collect();
    let what = format!("{name}: \"{}\"", figure.title);
    assert!(!shown.is_empty(), "{what} shows nothing");
    let known = ["size", "candidate", "state", "reader", "bystander", "source", "destination"];
    let has = |check: &dyn Fn(&&Row) -> bool| match EACH.contains(&name) {
        true => shown.iter().all(check),
        false => shown.iter().any(check),
    };
    for coordinate in figure.panels.iter().chain([&figure.x]).chain(&figure.y) {
        let is_axis = has(&|row| row.cell.axes.contains_key(coordinate));
        assert!(known.contains(&coordinate.as_str()) || is_axis, "{what}: no {coordinate}");
    }
    let value = figure.value.as_str();
    let is_there = match value {
        "gbps" | "ns" | "total_ns" | "ratio" | "cost" | "calls" => true,
        "total_ratio" => shown.iter().all(|row| row.total_ratio.is_some()),
        extra => has(&|row| row.extra.contains_key(extra)),
    };
    assert!(is_there, "{what}: no {value}");
    assert_eq!(figure.kind == FigureKind::HeatMap, figure.y.is_some(), "{what}");
    if figure.y.as_deref() == Some("reader") {
        assert!(shown.iter().all(|row| row.cell.reader.is_some()), "{what}");
    }
    if figure.kind == FigureKind::Histogram {
        assert!(shown.iter().all(|row| row.histogram.is_some()), "{what}");
    }
}

#[test]
fn every_experiment_describes_itself() {
    for experiment in experiments::ALL {
        let Experiment { name, about, seeds, .. } = experiment;
        // Threads sharing one operation are nobody's question but ours.
        assert!(about.len() > 20 && (!seeds.is_empty() || *name == "parallel"), "{name}");
        assert!(!experiment.figures().is_empty(), "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn pages_are_cleared_counted_and_judged() {
    let outcome = run("page-clear", &quick("mmx_AP.", &[32 << 10, 320 << 10]));
    let names: Vec<&str> = outcome.rows.iter().map(|row| row.candidate.as_str()).collect();
    assert_eq!(names[..3], ["libc", "zero.mmx", "zero.mmx.nt"]);
    for row in &outcome.rows {
        let pages = (row.cell.size / 4096) as f64;
        assert_eq!(row.extra["zeroed_per_loop"], pages);
        assert_eq!(row.extra["loops"], 1.6e6 / pages, "the seed's runs zero 1.6 million pages");
        assert_eq!(row.reader_ns.len(), row.operation_ns.len());
    }
    assert!(outcome.verdicts[0].starts_with("Vlasenko 2004 (000.12)"), "{:?}", outcome.verdicts);
    assert!(
        outcome.verdicts[0].contains("at 32 KiB") && outcome.verdicts[0].contains("at 320 KiB")
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_seeds_own_parameters_are_its_loops() {
    let options =
        Options { kernels: Some("zero\\.rep\\.stosb".into()), classic: true, ..Options::default() };
    let outcome = run("page-clear", &options);
    let calls: Vec<(u64, u32)> =
        outcome.rows.iter().map(|row| (row.cell.size, row.calls)).collect();
    assert_eq!(calls[0], (32 << 10, 200_000));
    assert_eq!(calls[2], (320 << 10, 20_000));
    assert!(outcome.verdicts[0].contains("not tested"), "{:?}", outcome.verdicts);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn pages_are_copied_as_a_fork_does() {
    let outcome = run("page-copy", &quick("mmx_AP.|copy\\.gpr64", &[4 << 10, 32 << 10]));
    for is_cold in [false, true] {
        let of_first = outcome.rows.iter().filter(|row| {
            row.cell.size == 4 << 10 && (row.cell.state == "cold destination") == is_cold
        });
        let names: Vec<&str> = of_first.map(|row| row.candidate.as_str()).collect();
        assert_eq!(names, ["libc", "mmx_APn", "mmx_APN", "mmx_APn/APN", "copy.gpr64"]);
    }
    for row in &outcome.rows {
        assert_eq!(row.extra["zeroed_per_loop"], 3.0, "000.10");
        assert_eq!(row.extra["copied_per_loop"], (row.cell.size / 4096 + 8) as f64, "000.9");
    }
    assert!(outcome.notes.iter().any(|note| note.contains("skipped fork")), "no program was given");
    assert!(outcome.verdicts[0].contains("of 2 buffers"), "{:?}", outcome.verdicts);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn huge_pages_are_copied_whole() {
    let outcome = run("page-copy", &quick("(zero|copy)\\.avx(\\.nt)?", &[8 << 10]));
    let huge = outcome.rows.iter().find(|row| row.candidate == "2M avx");
    // A CPU without AVX has no such row; neither has it the others.
    if let Some(row) = huge {
        assert_eq!(row.extra["copied_per_loop"], 8.0 + 512.0);
        assert!(outcome.verdicts.iter().any(|verdict| verdict.contains("whole 2 MiB page")));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_map_answers_the_question() {
    let mut options = quick("(copy|zero)\\.sse2(\\.nt)?", &[4096]);
    options.placements = vec![(Level::L2, Level::L2)];
    let outcome = run("reuse-map", &options);
    for row in &outcome.rows {
        assert!(row.reference == "copy.sse2" || row.reference == "zero.sse2", "{}", row.reference);
        assert!(row.cell.reader.is_some_and(|touched| touched >= 1.0 / 64.0));
        assert_eq!(row.cell.destination.as_deref(), Some("L2"));
    }
    let said = &outcome.verdicts[0];
    let cells = outcome.rows.iter().filter(|row| row.candidate == "copy.sse2.nt").count();
    let answers =
        said.starts_with("Is there ANY workload") && said.contains(&format!("of {cells} cells"));
    assert!(answers || outcome.is_withheld(), "{:?}", outcome.verdicts);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_kind_of_cpu_is_named() {
    let outcome = run("cached-target", &quick("copy[KLN]|copy\\.sse2", &[4096]));
    let verdicts = outcome.verdicts.join("\n");
    for text in ["NT to a cached target of 4 KiB (001.4", "copy.mmx.nt", "copy.mmx.pf320 (002.9)"] {
        assert!(outcome.is_withheld() || verdicts.contains(text), "{text}: {verdicts}");
    }
    let states: std::collections::BTreeSet<_> =
        outcome.rows.iter().map(|row| row.cell.state.as_str()).collect();
    assert_eq!(states.len(), 4, "{states:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn policies_receive_and_send() {
    let outcome = run("receive", &quick("copy\\.sse2(\\.nt)?", &[16 << 10]));
    for row in &outcome.rows {
        for figure in ["gbit_per_s", "cpu_share_copy_10g", "cpu_share_10g"] {
            assert!(row.extra[figure] > 0.0, "{figure} of {}", row.candidate);
        }
    }
    let policies = cachewise_measure::record::names::POLICIES;
    for state in ["receive", "send"] {
        for policy in policies {
            let named = |row: &&Row| row.candidate == policy && row.cell.state == state;
            assert!(outcome.rows.iter().any(|row| named(&row)), "{state} {policy}");
        }
    }
    let tcp = outcome.rows.iter().any(|row| row.candidate == "tcp loopback");
    let excused = outcome.notes.iter().any(|note| note.contains("tcp loopback"));
    assert!(tcp || excused, "{:?}", outcome.notes);
    let told = outcome.verdicts[0].contains("of receiving and sending");
    assert!(told || outcome.is_withheld(), "{:?}", outcome.verdicts);
}

#[cfg(target_arch = "x86_64")]
/// An experiment, and options under which it is short.
struct Short {
    name: &'static str,
    options: Options,
    /// Candidates that must be among the rows.
    candidates: &'static [&'static str],
}

fn shorts() -> Vec<Short> {
    let of = |kernels: &str, sizes: &[usize], placements: &[(Level, Level)]| Options {
        kernels: Some(kernels.to_owned()),
        sizes: sizes.to_vec(),
        placements: placements.to_vec(),
        quick: true,
        ..Options::default()
    };
    let l1 = (Level::L1, Level::L1);
    vec![
        Short {
            name: "read-batch",
            options: of(
                r"copy\.sse2(\.g[128])?|copy\.sse2\.movdqa(\.g8)?|copy\.sse2\.nt\.block(512|1k)",
                &[2048, 4096],
                &[l1],
            ),
            candidates: &["libc", "copy.sse2.g*", "copy.sse2.movdqa.g*", "copy.sse2.nt.block*"],
        },
        Short {
            name: "aliasing",
            options: of(r"copy\.rep\.movsb|zero\.rep\.stosb", &[4096], &[l1]),
            candidates: &["libc", "copy.rep.movsb", "zero.rep.stosb"],
        },
        Short {
            name: "values",
            options: of(
                r"copy\.sse\.nt|fill\.sse\.nt|zero\.clzero",
                &[1024],
                &[l1, (Level::Dram, Level::Dram)],
            ),
            candidates: &["libc", "copy.sse.nt", "fill.sse.nt"],
        },
        Short {
            name: "twins",
            options: Options { kernels: None, ..of("", &[4096], &[l1, (Level::L2, Level::L2)]) },
            candidates: &[
                "movdqa",
                "movq",
                "movq, misaligned",
                "movntdq, prefetchnta",
                "movntq, stray lines",
            ],
        },
        Short {
            name: "page-compare",
            options: Options { kernels: None, ..of("", &[], &[]) },
            candidates: &["libc", "cachewise", "compare.gpr64"],
        },
        Short {
            name: "sticky",
            options: of(r"copy\.rep\.movsb|fill\.rep\.stosb|zero\.sse2", &[8192], &[]),
            candidates: &["libc", "copy.rep.movsb", "fill.rep.stosb", "zero.sse2"],
        },
        Short {
            name: "vector-state",
            options: of(r"(copy|zero|compare)\.(gpr64|sse2)", &[64, 1024], &[]),
            candidates: &["xsave + xrstor", "copy.gpr64", "copy.sse2, bare", "compare.gpr64"],
        },
        Short {
            name: "compare-latency",
            options: of(r"compare\.(gpr64|sse2(\.pre64)?)", &[64], &[]),
            candidates: &["libc", "compare.gpr64", "compare.sse2", "compare.sse2.pre64"],
        },
        Short {
            name: "extent",
            options: of(r"zero\.rep\.stosb|copy\.rep\.movsb", &[64 << 10], &[]),
            candidates: &["libc", "zero.rep.stosb", "copy.rep.movsb"],
        },
    ]
}

#[cfg(target_arch = "x86_64")]
#[test]
fn rows_figures_and_verdicts_agree() {
    for Short { name, options, candidates } in shorts() {
        let outcome = run(name, &options);
        for candidate in candidates {
            let there = outcome.rows.iter().any(|row| row.candidate == *candidate);
            assert!(there, "{name}: no {candidate}");
        }
        let said = outcome.verdicts.join("\n");
        assert!(outcome.verdicts.len() > 1, "{name}: {said}");
        if outcome.is_withheld() {
            continue;
        }
        assert!(!outcome.verdicts[0].contains("was measured"), "{name} measured nothing: {said}");
        let named = candidates.iter().skip(1).any(|candidate| said.contains(candidate));
        assert!(named, "{name} speaks of none of its candidates: {said}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn told_to_stop_they_keep_finished_rows_and_say_what_they_amount_to() {
    let others = [
        ("page-clear", quick("zero\\.sse2", &[4096, 8192])),
        ("page-copy", quick("copy\\.sse2", &[4096, 8192])),
        ("reuse-map", quick("copy\\.sse2(\\.nt)?", &[4096])),
        ("cached-target", quick("copy\\.sse2(\\.nt)?", &[4096])),
        ("receive", quick("copy\\.sse2(\\.nt)?", &[4096])),
    ];
    let shorts = shorts().into_iter().map(|short| (short.name, short.options));
    for (name, options) in shorts.chain(others) {
        let outcome = run_with(name, &options, &mut patient(1));
        let interrupted = matches!(outcome.finish, Err(LabError::Interrupted));
        assert!(interrupted, "{name}: {:?}", outcome.finish);
        assert!(!outcome.rows.is_empty(), "{name} keeps the cell that was finished");
        assert!(!outcome.verdicts.is_empty(), "{name}");
        assert!(outcome.rows.iter().all(|row| row.operation_ns.len() >= 4), "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn options_without_meaning_are_refused_in_a_line() {
    let refused = |name: &str, options: &Options| {
        let outcome = run_with(name, options, &mut patient(usize::MAX));
        assert!(outcome.rows.is_empty());
        let text = outcome.finish.expect_err("a refusal").to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    let placed = Options { placements: vec![(Level::L2, Level::Dram)], ..Options::default() };
    for name in "page-clear page-copy cached-target receive sticky vector-state compare-latency \
        page-compare extent"
        .split_whitespace()
    {
        let text = refused(name, &placed);
        assert!(text.starts_with("--residency: found L2:DRAM, accepted no residency"), "{text}");
    }
    let classic = Options { classic: true, ..Options::default() };
    for name in ["aliasing", "values", "twins", "sticky", "page-compare", "vector-state", "extent"]
    {
        assert!(refused(name, &classic).starts_with("--classic"), "{name}");
    }
    for name in ["page-clear", "page-copy"] {
        let text = refused(name, &quick("", &[5000]));
        assert_eq!(text, "--size: found 5000, accepted whole pages of 4096 bytes");
    }
    let text = refused("cached-target", &quick("copy\\.sse2", &[]));
    assert!(text.contains("stores non-temporally or prefetches"), "{text}");
    let text = refused("receive", &quick("copy\\.sse2", &[]));
    assert!(text.starts_with("--kernels: found 1 with temporal stores and 0"), "{text}");
    for (name, kernels, sizes, says) in [
        ("reuse-map", "copy\\.sse2", &[][..], "none of the kernels chosen"),
        ("page-clear", "zero.nonesuch", &[], "nearest"),
        ("extent", "", &[5000], "an extent of 5000 bytes; accepted"),
        ("read-batch", "copy\\.avx\\.nt\\.pf512", &[], "nothing to measure"),
    ] {
        let text = refused(name, &quick(kernels, sizes));
        assert!(text.contains(says), "{name}: {text}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn pages_of_one_colour_are_zeroed_where_their_addresses_are_told() {
    let outcome = run_with("page-colour", &quick("zero\\.sse2", &[]), &mut patient(usize::MAX));
    match &outcome.finish {
        Ok(()) => {
            consistent("page-colour", &outcome);
            let of = |state: &str| {
                outcome.rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>()
            };
            let (one, every) =
                (of("zeroing pages of one colour"), of("zeroing pages of every colour"));
            assert!(one.iter().all(|row| row.extra["colours"] == 1.0));
            assert!(every.iter().all(|row| row.extra["colours"] > 1.0));
            assert!(one.len() == every.len() && one.len() >= 2, "libc and the kernel");
            let said = outcome.verdicts.join("\n");
            assert!(said.contains("zero.sse2"), "{said}");
        }
        Err(error) => {
            let text = error.to_string();
            assert!(matches!(error, LabError::Nothing(_)) && text.lines().count() == 1, "{text}");
            assert!(text.contains("/proc/self/pagemap") || text.contains("sets"), "{text}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn messages_that_the_kernel_copied_all_the_same_have_no_verdict() {
    let ran = run("tcp-copies", &quick("", &[16 << 10]));
    assert_eq!(ran.rows[0].candidate, "tcp loopback");
    for row in &ran.rows {
        assert!(row.operation_ns.iter().all(|ns| *ns > 0.0), "{}", row.candidate);
        let figure = |name: &str| row.figure(name);
        let (copied, mapped) = (figure("sends_copied"), figure("bytes_mapped"));
        assert_eq!(copied.is_some(), row.candidate.contains("ZEROCOPY"), "{}", row.candidate);
        assert_eq!(mapped.is_some(), row.candidate == "TCP_ZEROCOPY_RECEIVE");
        if copied > Some(0.0) && row.candidate != row.reference && mapped.is_none() {
            assert!(row.verdict.is_none(), "{}", row.candidate);
        }
        // The sentence and the table compare the same two.
        let is_pinned = row.cell.state == "MSG_ZEROCOPY message, both ends";
        assert_eq!(row.reference == "MSG_ZEROCOPY", is_pinned);
        assert!(mapped.is_none() || row.reference == "MSG_ZEROCOPY", "{}", row.candidate);
        let said = ran.verdicts.iter().any(|text| text.starts_with(&row.candidate));
        assert!(said || row.candidate == "tcp loopback", "{:?}", ran.verdicts);
    }
}

/// Page faults of this thread so far that needed no reading from a disk: other tests have theirs.
fn faults() -> i64 {
    cachewise_measure::children::usage(libc::RUSAGE_THREAD).ru_minflt
}

#[test]
fn a_fresh_destination_faults_at_every_call_and_an_old_one_does_not() {
    use cachewise_lab::bench::{Cell, Task};
    use cachewise_lab::routines::{Routine, libc_reference};
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    let kernel = cachewise_kernels::find("copy.gpr64").expect("it is listed");
    let routines = [libc_reference(cachewise_kernels::Operation::Copy), Routine::from(kernel)];
    let mut measured = |cell: Cell| {
        let task = Task {
            operation: cachewise_kernels::Operation::Copy,
            size: 4 << 20,
            cell,
            plan: cachewise_measure::Plan::default(),
        };
        let before = faults();
        let found = bench.routines(&task, &routines, true, &|| false).expect("rows");
        (found.rows(), faults() - before)
    };
    let calls = 2 * 15;
    measured(Cell::aliased());
    let (old, few) = measured(Cell::aliased());
    let (fresh, many) = measured(Cell::fresh());
    assert!(fresh.iter().all(|row| row.calls == 1 && row.operation_ns.len() == 15));
    assert_eq!(fresh[0].cell.state, "fresh");
    assert!(old.iter().all(|row| !row.dropped));
    // Two huge pages at least per call, or a thousand small ones.
    assert!(many >= 2 * calls, "{many} faults");
    assert!(few < calls, "{few} faults");
}

#[test]
fn a_cell_names_its_destination_and_restores_it() {
    use cachewise_lab::bench::{Cell, Task};
    use cachewise_lab::routines::libc_reference;
    use cachewise_measure::{Contents, Restore};
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    for (cell, label, restore) in [
        (Cell::warm(), "warm", Restore::Cached),
        (Cell::evicted(), "evicted", Restore::Evicted),
        (Cell::misaligned(), "misaligned", Restore::Cached),
        (Cell::aliased(), "4K-aliased", Restore::Cached),
        (Cell::above_power(4096), "above 2^n", Restore::Cached),
        (Cell::overlapping(), "overlap", Restore::Cached),
        (Cell { contents: Some(Contents::Overwritten), ..Cell::read() }, "read", Restore::Cached),
    ] {
        assert_eq!(cell.restore, restore, "{label}");
        let operation = cachewise_kernels::Operation::Move;
        let routines = [libc_reference(operation)];
        let plan = cachewise_measure::Plan { calls: Some(3), ..Default::default() };
        let task = Task { operation, size: 4096, cell, plan };
        let rows = bench.routines(&task, &routines, true, &|| false).expect(label).rows();
        assert_eq!(rows[0].cell.state, label);
        assert!(rows[0].operation_ns.iter().all(|ns| *ns > 0.0), "{label}");
    }
}
