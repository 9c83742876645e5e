//! Experiments for real, with as little as they take: their rows, figures and verdicts agree with each
//! other, they stop when told, and they refuse what means nothing to them. No test looks at a timing.
#![cfg(target_arch = "x86_64")]

use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::experiments::{self, Options, Setting};
use cachewise_lab::recorder::{Progress, Recorder};
use cachewise_measure::{Figure, FigureKind, Level, Row};

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

/// Stops once a cell was finished, if it is to.
struct Until {
    stops: bool,
    advanced: bool,
}

impl Progress for Until {
    fn begin(&mut self, _: &str, units: f64) {
        assert!(units > 0.0);
    }
    fn advance(&mut self, _: &str, units: f64) {
        assert!(units > 0.0);
        self.advanced = true;
    }
    fn cancelled(&self) -> bool {
        self.stops && self.advanced
    }
}

struct Ran {
    interrupted: bool,
    rows: Vec<Row>,
    verdicts: Vec<String>,
}

fn run(bench: &mut Bench, name: &str, options: &Options, stops: bool) -> Result<Ran, LabError> {
    let mut until = Until { stops, advanced: false };
    let mut out = Recorder::new(&mut until, None);
    let finish = experiments::find(name)?.run(&mut Setting { bench, options, out: &mut out });
    let verdicts = cachewise_report::sentences::of(name, &out.rows, &out.decisions.kernels);
    let interrupted = match finish {
        Err(LabError::Interrupted) => true,
        finish => {
            finish?;
            false
        }
    };
    Ok(Ran { interrupted, rows: out.rows, verdicts })
}

/// Every coordinate and quantity of a figure exists among the rows it draws.
fn drawable(figure: &Figure, rows: &[Row]) {
    let of_it: Vec<&Row> =
        rows.iter().filter(|row| row.cell.state.starts_with(&figure.states)).collect();
    assert!(!of_it.is_empty(), "no row for {}", figure.title);
    let known = ["size", "candidate", "state", "reader", "bystander", "source", "destination"];
    for coordinate in std::iter::once(&figure.x).chain(&figure.y).chain(&figure.panels) {
        let is_axis = of_it.iter().any(|row| row.cell.axes.contains_key(coordinate));
        assert!(
            known.contains(&coordinate.as_str()) || is_axis,
            "{}: no {coordinate}",
            figure.title
        );
    }
    let quantities = ["gbps", "ns", "total_ns", "ratio", "total_ratio", "cost"];
    let is_extra = of_it.iter().any(|row| row.extra.contains_key(&figure.value));
    assert!(
        quantities.contains(&figure.value.as_str()) || is_extra,
        "{}: no {}",
        figure.title,
        figure.value
    );
    if figure.kind == FigureKind::Histogram {
        assert!(of_it.iter().all(|row| row.histogram.is_some()), "{}", figure.title);
    }
}

#[test]
fn rows_figures_and_verdicts_agree() {
    let mut bench = Bench::new(7, None).expect("a bench");
    for short in shorts() {
        let name = short.name;
        let ran = run(&mut bench, name, &short.options, false)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!ran.interrupted, "{name}");
        for candidate in short.candidates {
            assert!(
                ran.rows.iter().any(|row| row.candidate == *candidate),
                "{name}: no {candidate}"
            );
        }
        for row in &ran.rows {
            assert_eq!(row.experiment, name);
            assert!(
                row.operation_ns.iter().all(|ns| ns.is_finite() && *ns >= 0.0),
                "{name}: {row:?}"
            );
            assert!(row.operation_ns.len() >= 4 && row.ratio.is_some(), "{name}: {row:?}");
        }
        let cells = |row: &Row| format!("{:?} {}", row.cell, row.candidate);
        let mut seen = std::collections::BTreeSet::new();
        assert!(ran.rows.iter().all(|row| seen.insert(cells(row))), "{name}: a row stands twice");
        let experiment = experiments::find(name).expect("it ran");
        let mut figures = experiment.figures();
        if name == "aliasing" {
            // Distances are swept only where no residency is asked for.
            figures.retain(|figure| figure.states != "power");
        }
        assert!(!figures.is_empty(), "{name} draws nothing");
        figures.iter().for_each(|figure| drawable(figure, &ran.rows));
        let said = ran.verdicts.join("\n");
        assert!(ran.verdicts.len() > 1, "{name}: {said}");
        assert!(!ran.verdicts[0].contains("was measured"), "{name} measured nothing: {said}");
        assert!(
            short.candidates.iter().skip(1).any(|candidate| said.contains(candidate)),
            "{name} speaks of none of its candidates: {said}"
        );
    }
}

#[test]
fn told_to_stop_they_keep_finished_rows_and_say_what_they_amount_to() {
    let mut bench = Bench::new(7, None).expect("a bench");
    for short in shorts() {
        let ran = run(&mut bench, short.name, &short.options, true)
            .unwrap_or_else(|error| panic!("{}: {error}", short.name));
        assert!(ran.interrupted, "{}", short.name);
        assert!(!ran.rows.is_empty() && !ran.verdicts.is_empty(), "{}", short.name);
    }
}

#[test]
fn what_means_nothing_is_refused_in_one_line() {
    let mut bench = Bench::new(7, None).expect("a bench");
    let mut refused = |name: &str, options: &Options| {
        let error = run(&mut bench, name, options, false).err().expect("a refusal").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let placed = Options { placements: vec![(Level::L1, Level::L1)], ..Options::default() };
    for name in ["sticky", "vector-state", "compare-latency", "page-compare", "extent"] {
        let error = refused(name, &placed);
        assert!(error.starts_with("--residency") && error.contains("accepted"), "{error}");
    }
    let classic = Options { classic: true, ..Options::default() };
    for name in ["aliasing", "values", "twins", "sticky", "page-compare", "vector-state", "extent"]
    {
        assert!(refused(name, &classic).starts_with("--classic"), "{name}");
    }
    let odd = Options { sizes: vec![5000], ..Options::default() };
    assert!(refused("extent", &odd).contains("an extent of 5000 bytes; accepted"));
    let useless = Options { kernels: Some(r"copy\.avx\.nt\.pf512".into()), ..Options::default() };
    assert!(refused("read-batch", &useless).contains("nothing to measure"));
}

#[test]
fn pages_of_one_colour_are_zeroed_where_their_addresses_are_told() {
    let mut bench = Bench::new(7, None).expect("a bench");
    let options =
        Options { kernels: Some(r"zero\.sse2".into()), quick: true, ..Options::default() };
    match run(&mut bench, "page-colour", &options, false) {
        Ok(ran) => {
            let of = |state: &str| {
                ran.rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>()
            };
            let (one, every) =
                (of("zeroing pages of one colour"), of("zeroing pages of every colour"));
            assert!(one.iter().all(|row| row.extra["colours"] == 1.0));
            assert!(every.iter().all(|row| row.extra["colours"] > 1.0));
            assert!(one.len() == every.len() && one.len() >= 2, "libc and the kernel");
            let figures = experiments::find("page-colour").expect("it ran").figures();
            figures.iter().for_each(|figure| drawable(figure, &ran.rows));
            assert!(
                ran.verdicts.iter().any(|text| text.contains("zero.sse2")),
                "{:?}",
                ran.verdicts
            );
        }
        Err(error) => {
            let text = error.to_string();
            assert!(
                matches!(error, LabError::Nothing { .. }) && text.lines().count() == 1,
                "{text}"
            );
            assert!(text.contains("/proc/self/pagemap") || text.contains("sets"), "{text}");
        }
    }
}

#[test]
fn messages_that_the_kernel_copied_all_the_same_have_no_verdict() {
    let mut bench = Bench::new(8, None).expect("a bench");
    let options = Options { sizes: vec![16 << 10], quick: true, ..Options::default() };
    let ran = run(&mut bench, "tcp-copies", &options, false).expect("it runs");
    assert!(ran.rows[0].candidate == "tcp loopback" && !ran.interrupted);
    for row in &ran.rows {
        assert!(row.operation_ns.iter().all(|ns| *ns > 0.0), "{}", row.candidate);
        let figure = |name: &str| row.extra.get(name).copied();
        let (copied, mapped) = (figure("sends_copied"), figure("bytes_mapped"));
        assert_eq!(copied.is_some(), row.candidate.contains("ZEROCOPY"), "{}", row.candidate);
        assert_eq!(mapped.is_some(), row.candidate == "TCP_ZEROCOPY_RECEIVE");
        if copied > Some(0.0) && row.candidate != row.reference && mapped.is_none() {
            assert!(row.verdict.is_none(), "{}", row.candidate);
        }
        // The sentence and the table compare the same two.
        assert_eq!(
            row.reference == "MSG_ZEROCOPY",
            row.cell.state == "MSG_ZEROCOPY message, both ends"
        );
        assert!(mapped.is_none() || row.reference == "MSG_ZEROCOPY", "{}", row.candidate);
        let said = ran.verdicts.iter().any(|text| text.starts_with(&row.candidate));
        assert!(said || row.candidate == "tcp loopback", "{:?}", ran.verdicts);
    }
    let figures = experiments::find("tcp-copies").expect("it ran").figures();
    figures.iter().for_each(|figure| drawable(figure, &ran.rows));
}
