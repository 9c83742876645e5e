//! What was found, as Markdown and as JSON. Pure.

use super::Shown;
use super::counts::Sum;
use super::plan::{Times, Verdict};
use cachewise_measure::stats::{PairedRatio, median};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// All there is to tell.
pub(super) struct Found<'a> {
    pub machine: String,
    pub profile: String,
    pub shown: &'a [Shown],
    pub skipped: &'a [(String, String)],
    /// Programs that Ctrl-C kept from being run, or from being run often enough.
    pub missing: &'a [String],
}

/// Ranges of sizes for the table: name and the size it ends before.
const RANGES: [(&str, u64); 6] = [
    ("below 128 B", 128),
    ("to 4 KiB", 4 << 10),
    ("to 64 KiB", 64 << 10),
    ("to 1 MiB", 1 << 20),
    ("to 16 MiB", 16 << 20),
    ("more", u64::MAX),
];

/// Call sites of each program in the JSON.
const SITES: usize = 16;

pub(super) fn markdown(found: &Found<'_>) -> String {
    let mut text = String::new();
    let mut line = |one: &str| {
        let _ = writeln!(text, "{one}");
    };
    line(&format!("{}; profile: {}", found.machine, found.profile));
    line("");
    line(
        "Speed is time without the library over time with it, of the same round: above 1 the library is",
    );
    line(
        "faster. The control is the same quotient of two runs without. CPU is the CPU time with it over that",
    );
    line("without: below 1 it takes less. With 95 % intervals; the verdict is that of the speed.");
    line("");
    line(
        "| program | output | speed | control | verdict | rounds | without, s | CPU | input asked for, % |",
    );
    line("|---|---|---:|---:|---|---:|---:|---:|---:|");
    for one in found.shown {
        line(&row(one));
    }
    for (name, why) in found.skipped {
        line(&format!("| {name} | | | | skipped: {} | | | | |", cell(why)));
    }
    for name in found.missing {
        line(&format!("| {name} | | | | interrupted | | | | |"));
    }
    line("");
    line(&summary(found));
    line("");
    for one in found.shown {
        line(&format!("- **{}**: {}", one.name, one.about));
    }
    line("");
    line("Calls, and bytes, by operation and size:");
    line("");
    line(&format!(
        "| program (processes) | operation | {} |",
        RANGES.map(|(name, _)| name).join(" | ")
    ));
    line(&format!("|---|---|{}", "---:|".repeat(RANGES.len())));
    for one in found.shown {
        for operation in one.counts.operations() {
            let mut from = 0;
            let sums = RANGES.map(|(_, to)| {
                let sum = one.counts.between(Some(operation), from, to);
                from = to;
                shown_sum(sum)
            });
            let (name, processes) = (&one.name, one.counts.processes);
            line(&format!("| {name} ({processes}) | {operation} | {} |", sums.join(" | ")));
        }
    }
    text
}

/// The table in a sentence; silence would pass for a good result.
fn summary(found: &Found<'_>) -> String {
    let right: Vec<&Shown> = found.shown.iter().filter(|one| one.wrong.is_none()).collect();
    let named = |verdict: Verdict| {
        let with = right.iter().filter(|one| one.times.verdict() == verdict);
        let names: Vec<_> = with.map(|one| one.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "Same output: {} of {}. Slower than 0.98: {}; cannot tell: {}; faster than 1.02: {}.",
        right.len(),
        found.shown.len(),
        named(Verdict::Slower),
        named(Verdict::CannotTell),
        named(Verdict::Faster),
    )
}

fn row(one: &Shown) -> String {
    let name = &one.name;
    if let Some(wrong) = &one.wrong {
        return format!(
            "| {name} | **WRONG** | | | {} | {} | | | |",
            cell(wrong),
            one.times.rounds()
        );
    }
    let (speed, control) = (one.times.speed(), one.times.control());
    let verdict = match one.times.verdict() {
        Verdict::Slower => "**slower**",
        other => other.name(),
    };
    let without = without(&one.times);
    let rounds = one.times.rounds();
    let cpu = interval(&one.times.cpu_ratio());
    let (speed, control) = (interval(&speed), interval(&control));
    let percent = one.percent;
    format!(
        "| {name} | same | {speed} | {control} | {verdict} | {rounds} | {without:.2} | {cpu} | {percent} |"
    )
}

/// Median seconds without the library.
fn without(times: &Times) -> f64 {
    let all: Vec<f64> = times.without.iter().chain(&times.again).copied().collect();
    median(&all)
}

fn interval(ratio: &PairedRatio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.median, ratio.low, ratio.high)
}

/// The first line of a text that others wrote, for a table.
fn cell(text: &str) -> String {
    let mut line: String = text.lines().next().unwrap_or_default().chars().take(120).collect();
    line = line.replace('|', "\\|");
    line
}

fn shown_sum((calls, bytes): Sum) -> String {
    if calls == 0 { "-".to_owned() } else { format!("{}, {}", short(calls), size(bytes)) }
}

/// Three digits.
fn short(number: u64) -> String {
    scaled(number, 1000.0, &["", " k", " M", " G", " T"])
}

fn size(bytes: u64) -> String {
    scaled(bytes, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

fn scaled(number: u64, step: f64, units: &[&str]) -> String {
    let (mut value, mut at) = (number as f64, 0);
    // What would be rounded to 1000 has the next unit.
    while value >= step.min(999.5) && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let digits = match value {
        _ if at == 0 => 0,
        value if value < 9.95 => 2,
        value if value < 99.5 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[at])
}

/// One line per program, numbers rounded: a reader of the file sees differences by program.
pub(super) fn as_json(found: &Found<'_>) -> String {
    let head = json!({
        "machine": found.machine,
        "profile": found.profile,
        "skipped": found.skipped.iter()
            .map(|(name, why)| json!({ "program": name, "skipped": cell(why) }))
            .collect::<Vec<_>>(),
        "interrupted": found.missing,
    });
    let head = head.to_string();
    let programs: Vec<String> = found.shown.iter().map(|one| program(one).to_string()).collect();
    // Inside the head's braces.
    let head = head.strip_suffix('}').unwrap_or(&head);
    format!("{head},\n\"programs\":[\n{}\n]}}\n", programs.join(",\n"))
}

fn program(one: &Shown) -> Value {
    let ratio = |ratio: PairedRatio| json!([ratio.median, ratio.low, ratio.high].map(rounded));
    let seconds = |all: &[f64]| all.iter().map(|one| json!(rounded(*one))).collect::<Vec<_>>();
    let calls: Vec<Value> = one
        .counts
        .calls
        .iter()
        .map(|((operation, _), (class, (calls, bytes)))| json!([operation, class, calls, bytes]))
        .collect();
    let largest = one.counts.largest_sites();
    let sites: Vec<Value> = largest
        .iter()
        .take(SITES)
        .map(|(operation, place, (calls, bytes))| json!([operation, place, calls, bytes]))
        .collect();
    json!({
        "program": one.name,
        "about": one.about,
        "same_output": one.wrong.is_none(),
        "wrong": one.wrong.as_deref().map(cell),
        "verdict": one.wrong.is_none().then(|| one.times.verdict().name()),
        "stopped": one.stopped.name(),
        "speed_median_low_high": ratio(one.times.speed()),
        "control_median_low_high": ratio(one.times.control()),
        "seconds_with": seconds(&one.times.with),
        "seconds_without": seconds(&one.times.without),
        "seconds_without_again": seconds(&one.times.again),
        "input_percent": one.percent,
        "rounds_settled": one.planned,
        "cpu_median_low_high": ratio(one.times.cpu_ratio()),
        "cpu_seconds_with": seconds(&one.times.cpu[0]),
        "cpu_seconds_without": seconds(&one.times.cpu[1]),
        "cpu_seconds_without_again": seconds(&one.times.cpu[2]),
        "processes": one.counts.processes,
        "calls_by_operation_class_calls_bytes": calls,
        "large_call_sites": sites,
        "large_call_sites_in_all": largest.len(),
    })
}

/// To a microsecond, or a millionth.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::counts::Counts;
    use crate::programs::plan::{Stopped, Took};

    fn shown(name: &str, with: &[f64], told: &str) -> Shown {
        let mut times = Times::default();
        for with in with {
            times.push([*with, 1.0, 1.0].map(|wall| Took { wall, cpu: 0.5 }));
        }
        let (counts, stopped) = (Counts::read(told), Stopped::Rounds);
        let about = format!("what {name} does.");
        let planned = with.len();
        let percent = 40;
        Shown {
            name: name.to_owned(),
            about,
            times,
            percent,
            planned,
            stopped,
            counts,
            wrong: None,
        }
    }

    const TOLD: &str = "cachewise: calls of process 7 (/bin/x)\n\
        copy 0 3 0\ncopy 64..128 1500 150000\ncopy 128..256 20 3000\ncopy 1M..2M 1 1048576\n\
        compare 2K..4K 999999 2097151999\nzero 32M..64M 2 100000000\n\
        zero site 2 100000000 /lib/x.so+0x10 clear+0x2\n";

    fn everything() -> [Shown; 5] {
        let mut wrong = shown("broken", &[], "");
        wrong.wrong = Some("another output while counted\nand | more".to_owned());
        wrong.stopped = Stopped::Failed;
        let quick = shown("quick", &[0.8; 6], TOLD);
        let wide = shown("wide", &[0.9, 1.1, 0.95, 1.05, 0.9, 1.1], "");
        [quick, shown("even", &[1.01; 6], ""), shown("slow", &[1.1; 6], ""), wide, wrong]
    }

    #[test]
    fn both_forms_say_everything() {
        let found = Found {
            machine: "a machine".to_owned(),
            profile: "a profile".to_owned(),
            shown: &everything(),
            skipped: &[("absent".to_owned(), "absent not installed".to_owned())],
            missing: &["late".to_owned()],
        };
        insta::assert_snapshot!("markdown", markdown(&found));
        let text = as_json(&found);
        insta::assert_snapshot!("json", text);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["programs"].as_array().map(Vec::len), Some(5));
        assert_eq!(value["interrupted"], json!(["late"]));
    }

    #[test]
    fn numbers_have_three_digits_and_the_next_unit_in_time() {
        let cases = [
            (0, "0", "0 B"),
            (999, "999", "999 B"),
            (1000, "1.00 k", "0.98 KiB"),
            (1_048_575, "1.05 M", "1.00 MiB"),
            (99_960, "100 k", "97.6 KiB"),
            (999_499, "999 k", "976 KiB"),
            (999_600, "1.00 M", "976 KiB"),
            (u64::MAX, "18446744 T", "16777216 TiB"),
        ];
        for (number, as_number, as_size) in cases {
            assert_eq!((short(number).as_str(), size(number).as_str()), (as_number, as_size));
        }
    }

    #[test]
    fn a_record_of_everything_stays_below_100_kib() {
        let mut told = String::from("cachewise: calls of process 7 (/bin/x)\n");
        for operation in ["copy", "move", "fill", "zero", "compare"] {
            for octave in 0..30 {
                let _ = writeln!(
                    told,
                    "{operation} {}..{} 123456789 123456789012",
                    1_u64 << octave,
                    2_u64 << octave
                );
                let long = "a_rather_long_symbol_name_as_programs_have";
                let _ = writeln!(
                    told,
                    "{operation} site 123456 12345678901 /usr/lib/x86_64-linux-gnu/libprogram.so.1.2.3+0x{octave:06x} {long}+0x123"
                );
            }
        }
        let program = |number: usize| shown(&format!("program{number}"), &[1.234567; 20], &told);
        let shown: Vec<Shown> = (0..10).map(program).collect();
        let found = Found {
            machine: "a machine".to_owned(),
            profile: "a profile".to_owned(),
            shown: &shown,
            skipped: &[],
            missing: &[],
        };
        for text in [markdown(&found), as_json(&found)] {
            assert!(text.len() < 100 << 10, "{}", text.len());
        }
    }
}
