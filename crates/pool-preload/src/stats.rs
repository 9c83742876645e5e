//! What the pool did in this process, in the form that `CACHEWISE_POOL_STATS` names. A process that
//! made no pool says nothing.

use crate::pool::{Figures, MISSES};
use cachewise_pages::{ScrubberState, Unit};
use std::fmt::Write as _;

/// In the order of `Miss`: the word for machines, and for people.
const WHY: [(&str, &str); MISSES] = [
    ("full", "the pool was full"),
    ("busy", "another thread was in it"),
    ("too_large", "larger than is served"),
    ("alignment", "an alignment it has not"),
    ("other", "no memory, or a signal handler"),
];

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Prometheus,
}

impl Form {
    pub(crate) fn of(word: &[u8]) -> Option<Form> {
        match word {
            b"1" | b"text" => Some(Form::Text),
            b"json" => Some(Form::Json),
            b"prometheus" => Some(Form::Prometheus),
            _ => None,
        }
    }
}

/// The figures, with the program's name and the process's number, ending in a newline.
pub(crate) fn written(figures: &Figures, form: Form, program: &str, pid: u32) -> String {
    match form {
        Form::Text => text(figures, program, pid),
        Form::Json => json(figures, program, pid),
        Form::Prometheus => prometheus(figures, program, pid),
    }
}

fn text(figures: &Figures, program: &str, pid: u32) -> String {
    let pool = &figures.pool;
    let mib = |bytes: u64| bytes >> 20;
    let on: u64 = figures.missed.iter().sum();
    let reasons: Vec<_> = figures
        .missed
        .iter()
        .zip(WHY)
        .filter(|(count, _)| **count > 0)
        .map(|(count, (_, why))| format!("{count}: {why}"))
        .collect();
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
    let all: Vec<_> =
        values(figures).iter().map(|(name, value)| format!("{name} {value}")).collect();
    let program = printable(program);
    format!(
        "cachewise: pool figures of {program}[{pid}]: {}\n\
         cachewise: pool: {} large requests served, {on} handed on{reasons}, in {program}[{pid}]; {} found \
         zeroed, {} not; {} MiB zeroed in the background in {} ms of CPU, {} MiB at hand-out; {} MiB \
         in use at most of {}, {} MiB resident, {} MiB given back to the system{}\n",
        all.join(", ").replace("_total", ""),
        figures.served,
        pool.zero_hits,
        pool.zero_misses,
        mib(pool.scrubbed),
        pool.scrub_cpu.as_millis(),
        mib(pool.hot_zeroed),
        mib(figures.most_in_use),
        mib(pool.capacity),
        mib(pool.resident),
        mib(pool.trimmed),
        verdict(figures),
    )
}

fn too_small(figures: &Figures) -> bool {
    figures.missed[0] > 0
}

/// What to make of it.
fn verdict(figures: &Figures) -> &'static str {
    let pool = &figures.pool;
    let rarely = pool.zero_misses > pool.zero_hits;
    match () {
        () if too_small(figures) => "; the pool is too small for this program",
        () if rarely && pool.load_rests > 0 => {
            "; little was zeroed beforehand: the load was above one per CPU"
        }
        () if rarely && pool.scrubber == ScrubberState::Off => {
            "; nothing was zeroed beforehand: there was no thread for it"
        }
        () => "",
    }
}

/// What figures of the pool are called here, where that is not their name.
const CALLED: [(&str, &str); 4] = [
    ("zero_hits", "found_zeroed"),
    ("zero_misses", "not_zeroed"),
    ("trimmed", "given_back"),
    ("huge_broken", "huge_pages_broken"),
];

/// Names and values for machines: this library's own, then every figure of the pool.
fn values(figures: &Figures) -> Vec<(String, u64)> {
    let own = [
        ("served_total", figures.served),
        ("full_bytes_total", figures.full_bytes),
        ("most_in_use_bytes", figures.most_in_use),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let of_pool = figures.pool.figures().into_iter().map(|(name, unit, value)| {
        let name = CALLED.iter().find(|(known, _)| *known == name).map_or(name, |(_, name)| name);
        let name = match unit {
            Unit::Bytes => format!("{name}_bytes"),
            Unit::BytesSoFar => format!("{name}_bytes_total"),
            Unit::TimesSoFar => format!("{name}_total"),
            Unit::NanosecondsSoFar => {
                format!("{}_nanoseconds_total", name.trim_end_matches("_ns"))
            }
        };
        (name, value)
    });
    own.into_iter().chain(of_pool).collect()
}

fn json(figures: &Figures, program: &str, pid: u32) -> String {
    let program = quoted(program);
    let mut line = format!("{{\"cachewise_pool\":{{\"program\":\"{program}\",\"pid\":{pid}");
    for (name, value) in values(figures) {
        let _ = write!(line, ",\"{}\":{value}", name.trim_end_matches("_total"));
    }
    let reasons: Vec<_> = figures
        .missed
        .iter()
        .zip(WHY)
        .map(|(count, (why, _))| format!("\"{why}\":{count}"))
        .collect();
    let small = too_small(figures);
    let _ = write!(line, ",\"too_small\":{small},\"handed_on\":{{{}}}}}}}", reasons.join(","));
    line.push('\n');
    line
}

fn prometheus(figures: &Figures, program: &str, pid: u32) -> String {
    let labels = format!("program=\"{}\",pid=\"{pid}\"", quoted(program));
    let mut lines = String::new();
    for (name, value) in values(figures) {
        let _ = writeln!(lines, "cachewise_pool_{name}{{{labels}}} {value}");
    }
    for (count, (why, _)) in figures.missed.iter().zip(WHY) {
        let _ =
            writeln!(lines, "cachewise_pool_handed_on_total{{{labels},reason=\"{why}\"}} {count}");
    }
    let small = u64::from(too_small(figures));
    let _ = writeln!(lines, "cachewise_pool_too_small{{{labels}}} {small}");
    lines
}

/// A file's name may hold anything; a terminal and a parser get none of it.
fn printable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

fn quoted(name: &str) -> String {
    printable(name).replace('\\', "\\\\").replace('"', "\\\"")
}
