//! Figures that a program prints by itself, one row a benchmark, as costs: small is good.
//!
//! | format | read |
//! |---|---|
//! | `google-benchmark` | JSON of `--benchmark_format=json`: `real_time` of each repetition, or the median where only aggregates are printed |
//! | `pytest-benchmark` | JSON of `--benchmark-json=/dev/stdout`, among what pytest prints: `stats.median` |
//! | `criterion` | criterion's `time: [low middle high]` and libtest's `bench: N ns/iter` |
//! | `go` | the benchmark format of Go: every `value unit` behind the iterations, a row for each unit |
//! | `lines` | `name value unit`, a line each; a unit may be missing |
//! | `cachewise` | records of this command: a candidate's time over its reference's |
//!
//! Rows of one name are repetitions: their median counts.

use cachewise_judge::order::median;
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The way in which a program prints its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Google Benchmark's JSON.
    GoogleBenchmark,
    /// pytest-benchmark's JSON.
    PytestBenchmark,
    /// Lines of criterion and of libtest.
    Criterion,
    /// Go's benchmark format.
    Go,
    /// `name value unit`.
    Lines,
    /// A record of this command.
    Cachewise,
}

/// Names of the formats.
pub const FORMATS: [(&str, Format); 6] = [
    ("google-benchmark", Format::GoogleBenchmark),
    ("pytest-benchmark", Format::PytestBenchmark),
    ("criterion", Format::Criterion),
    ("go", Format::Go),
    ("lines", Format::Lines),
    ("cachewise", Format::Cachewise),
];

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Format, String> {
        let known = FORMATS.iter().find(|(name, _)| *name == word).map(|(_, format)| *format);
        let names = || FORMATS.map(|(name, _)| name).join(", ");
        known.ok_or_else(|| format!("expected one of {}, found {word}", names()))
    }
}

/// Quantity of a figure, by which its cost is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Something a second, of which more is better: the cost is its inverse.
    Rate,
    /// A plain number of which less is better.
    Count,
    /// A time over another one.
    Ratio,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Own {
    /// Seconds, bytes, a number, or one over a rate.
    pub cost: f64,
    /// The kind of figure.
    pub kind: Kind,
}

impl Own {
    /// The figure as its program prints it: a rate is no longer inverted.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.kind == Kind::Rate { 1.0 / self.cost } else { self.cost }
    }
}

/// Reads a unit: its kind, and the factor that makes seconds, bytes or units of it. `ns/op` and `ns/iter` are times,
/// `MB/s` and `requests/sec` rates. `None` for a unit of which nobody knows whether less is better.
///
/// ```
/// use cachewise_advise::figures::{Kind, unit};
/// assert_eq!(unit("us"), Some((Kind::Seconds, 1e-6)));
/// assert_eq!(unit("MB/s"), Some((Kind::Rate, 1e6)));
/// assert_eq!(unit("B/op"), Some((Kind::Bytes, 1.0)));
/// assert_eq!(unit("points"), None);
/// ```
#[must_use]
pub fn unit(word: &str) -> Option<(Kind, f64)> {
    let word = word.trim_end_matches([',', ';', '.']);
    if word.is_empty() {
        return Some((Kind::Count, 1.0));
    }
    if let Some(what) = ["/s", "/sec", "/second"].iter().find_map(|end| word.strip_suffix(end)) {
        return Some((Kind::Rate, bytes_of(what).or_else(|| prefix_of(what)).unwrap_or(1.0)));
    }
    if let "qps" | "rps" | "fps" | "iops" | "bps" | "Hz" = word {
        return Some((Kind::Rate, 1.0));
    }
    if let Some(prefix) = word.strip_suffix("bps").or_else(|| word.strip_suffix("Hz")) {
        return prefix_of(prefix).map(|scale| (Kind::Rate, scale));
    }
    let of_one = word.split_once('/').map_or(word, |(what, _)| what);
    let seconds = match of_one {
        "ps" => 1e-12,
        "ns" | "nsec" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "usec" | "microseconds" => 1e-6,
        "ms" | "msec" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "min" | "minutes" => 60.0,
        "allocs" | "faults" | "page-faults" | "instructions" | "cycles" | "cpu-cycles" => {
            return Some((Kind::Count, 1.0));
        }
        other => return bytes_of(other).map(|scale| (Kind::Bytes, scale)),
    };
    Some((Kind::Seconds, seconds))
}

fn bytes_of(word: &str) -> Option<f64> {
    if word == "bytes" || word == "byte" {
        return Some(1.0);
    }
    let prefix = word.strip_suffix('B')?;
    match prefix.strip_suffix('i') {
        Some(prefix) => {
            let power = ["", "K", "M", "G", "T"].iter().position(|one| *one == prefix)?;
            (power > 0).then(|| 1024_f64.powi(power as i32))
        }
        None => prefix_of(prefix),
    }
}

fn prefix_of(word: &str) -> Option<f64> {
    Some(match word {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    })
}

/// Rows while they are read: every repetition of each.
#[derive(Default)]
struct Rows(BTreeMap<String, (Kind, Vec<f64>)>);

impl Rows {
    /// Adds a figure, which is left out where it is not above 0: of such there is no ratio.
    fn add(&mut self, name: &str, value: f64, (kind, scale): (Kind, f64)) -> Result<(), String> {
        let value = value * scale;
        if !(value > 0.0 && value.is_finite()) {
            return Ok(());
        }
        let row = self.0.entry(name.to_owned()).or_insert((kind, Vec::new()));
        if row.0 != kind {
            return Err(format!("{name}: expected one kind of unit, found two"));
        }
        row.1.push(if kind == Kind::Rate { 1.0 / value } else { value });
        Ok(())
    }

    fn done(self, what: &str) -> Result<BTreeMap<String, Own>, String> {
        if self.0.is_empty() {
            return Err(format!("expected {what} on standard output, found no figure above 0"));
        }
        let one = |(name, (kind, costs)): (String, (Kind, Vec<f64>))| {
            (name, Own { cost: median(&costs), kind })
        };
        Ok(self.0.into_iter().map(one).collect())
    }
}

impl Format {
    /// Reads a program's standard output.
    ///
    /// # Errors
    /// No row is found, JSON is damaged, a unit is unknown: what was expected and what was found, with the line.
    pub fn read(self, output: &[u8]) -> Result<BTreeMap<String, Own>, String> {
        let text = String::from_utf8_lossy(output);
        match self {
            Format::GoogleBenchmark => google(&json(&text)?),
            Format::PytestBenchmark => pytest(&json(&text)?),
            Format::Criterion => criterion(&text),
            Format::Go => go(&text),
            Format::Lines => lines(&text),
            Format::Cachewise => record(output),
        }
    }
}

/// The first JSON object that begins a line; what stands before and behind it is text for people.
fn json(text: &str) -> Result<Value, String> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let begins_line =
        |at: &usize| text[..*at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let Some(at) = starts.into_iter().find(begins_line) else {
        return Err("expected a JSON object on standard output, found no line that begins with {"
            .to_owned());
    };
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(format!("expected a JSON object on standard output: {error}")),
        None => {
            Err("expected a JSON object on standard output, found its beginning alone".to_owned())
        }
    }
}

fn benchmarks(value: &Value) -> Result<&Vec<Value>, String> {
    value["benchmarks"]
        .as_array()
        .ok_or_else(|| "expected the field \"benchmarks\", found none".to_owned())
}

fn google(value: &Value) -> Result<BTreeMap<String, Own>, String> {
    let all = benchmarks(value)?;
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let is_single = |one: &&Value| text(one, "run_type") != "aggregate";
    let has_single = all.iter().any(|one| is_single(&one));
    let mut rows = Rows::default();
    for one in all {
        let is_median = text(one, "aggregate_name") == "median";
        if one["error_occurred"].as_bool() == Some(true)
            || (if has_single { !is_single(&one) } else { !is_median })
        {
            continue;
        }
        let (name, run) = (text(one, "name"), text(one, "run_name"));
        let name = if run.is_empty() { name } else { run };
        let word = text(one, "time_unit");
        let scale = unit(if word.is_empty() { "ns" } else { &word })
            .filter(|(kind, _)| *kind == Kind::Seconds)
            .ok_or_else(|| {
                format!("{name}: expected a unit of time in \"time_unit\", found {word}")
            })?;
        let time = one["real_time"]
            .as_f64()
            .ok_or_else(|| format!("{name}: expected a number in \"real_time\""))?;
        rows.add(&name, time, scale)?;
    }
    rows.done("benchmarks of Google Benchmark")
}

fn pytest(value: &Value) -> Result<BTreeMap<String, Own>, String> {
    let mut rows = Rows::default();
    for one in benchmarks(value)? {
        let name = one["fullname"].as_str().or(one["name"].as_str());
        let name = name.ok_or("expected \"fullname\" in each benchmark, found none")?;
        let middle = one["stats"]["median"].as_f64();
        let middle = middle.ok_or_else(|| format!("{name}: expected a number in stats.median"))?;
        rows.add(name, middle, (Kind::Seconds, 1.0))?;
    }
    rows.done("benchmarks of pytest-benchmark")
}

/// A number as benchmarks print it: a comma separates thousands.
fn number(word: &str) -> Option<f64> {
    let number = word.replace(',', "").parse::<f64>().ok()?;
    number.is_finite().then_some(number)
}

fn criterion(text: &str) -> Result<BTreeMap<String, Own>, String> {
    let (mut rows, mut before) = (Rows::default(), "");
    for (at, line) in text.lines().enumerate() {
        let unknown =
            |word: &str| format!("line {}: expected a unit of time, found {word}", at + 1);
        if let Some((name, figures)) = line.split_once("time:")
            && let Some(inside) =
                figures.trim().strip_prefix('[').and_then(|text| text.split(']').next())
        {
            // The name stands on a line of its own where it is long.
            let name = if name.trim().is_empty() { before.trim() } else { name.trim() };
            let words: Vec<&str> = inside.split_whitespace().collect();
            if let [_, _, middle, word, _, _] = words[..]
                && let Some(value) = number(middle)
            {
                rows.add(name, value, unit(word).ok_or_else(|| unknown(word))?)?;
            }
        } else if let Some((name, figures)) =
            line.strip_prefix("test ").and_then(|line| line.split_once("bench:"))
        {
            let mut words = figures.split_whitespace();
            let name = name.trim().trim_end_matches("...").trim();
            if let (Some(value), Some(word)) = (words.next().and_then(number), words.next()) {
                rows.add(name, value, unit(word).ok_or_else(|| unknown(word))?)?;
            }
        }
        before = if line.trim().is_empty() { before } else { line };
    }
    rows.done("lines of criterion or libtest")
}

/// `BenchmarkName-8  1000  1234 ns/op  12 B/op`. A `Unit` line with `better=higher` or `better=lower` says what a unit of
/// the program's own is.
fn go(text: &str) -> Result<BTreeMap<String, Own>, String> {
    let (mut rows, mut own) = (Rows::default(), BTreeMap::new());
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Unit", word, ref settings @ ..] => {
                let better = |way: &str| settings.contains(&way);
                let kind = if better("better=higher") { Kind::Rate } else { Kind::Count };
                if better("better=higher") || better("better=lower") {
                    own.insert(word, (kind, 1.0));
                }
            }
            [name, iterations, ref figures @ ..]
                if name.starts_with("Benchmark")
                    && iterations.parse::<u64>().is_ok()
                    && figures.len() >= 2 =>
            {
                for pair in figures.chunks_exact(2) {
                    let [value, word] = [pair[0], pair[1]];
                    let found = number(value).ok_or_else(|| {
                        format!("line {}: expected a number, found {value}", at + 1)
                    })?;
                    let known = own.get(word).copied().or_else(|| unit(word));
                    let known = known.ok_or_else(|| {
                        format!("line {}: expected a known unit, or a line \"Unit {word} better=lower\"", at + 1)
                    })?;
                    let row =
                        if word == "ns/op" { name.to_owned() } else { format!("{name} {word}") };
                    rows.add(&row, found, known)?;
                }
            }
            _ => {}
        }
    }
    rows.done("lines of Go's benchmark format")
}

fn lines(text: &str) -> Result<BTreeMap<String, Own>, String> {
    let mut rows = Rows::default();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, value, word) = match words[..] {
            [name, value] => (name, value, ""),
            [name, value, word] => (name, value, word),
            _ => continue,
        };
        let Some(value) = number(value) else { continue };
        let known = unit(word).ok_or_else(|| {
            format!(
                "line {}: expected a time, bytes or something a second, found the unit {word}",
                at + 1
            )
        })?;
        rows.add(name.trim_end_matches(':'), value, known)?;
    }
    rows.done("lines of NAME VALUE UNIT")
}

/// Rows of a record: each candidate's time over its reference's, since ratios travel and seconds do not.
fn record(output: &[u8]) -> Result<BTreeMap<String, Own>, String> {
    let text = String::from_utf8_lossy(output);
    let read = cachewise_measure::record::read_text("standard output", &text);
    let record = read.map_err(|error| error.to_string())?;
    let mut rows = Rows::default();
    for row in record.rows.iter().filter(|row| !row.dropped && row.candidate != row.reference) {
        let Some(ratio) = row.total_ratio.or(row.ratio) else { continue };
        let cell = serde_json::to_value(&row.cell).unwrap_or_default();
        let cell: Vec<String> =
            cell.as_object().into_iter().flatten().map(|(_, value)| bare(value)).collect();
        let name = format!("{} {} {}", row.experiment, row.candidate, cell.join(" "));
        rows.add(&name, ratio.median, (Kind::Ratio, 1.0))?;
    }
    rows.done("a record of this command with candidates beside a reference")
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(format: Format, text: &str) -> Vec<(String, f64)> {
        let rows = format.read(text.as_bytes()).expect(text);
        // Twelve digits: sums of decimal fractions are not exact.
        let digits = |cost: f64| format!("{cost:.11e}").parse().expect("a number");
        rows.into_iter().map(|(name, own)| (name, digits(own.cost))).collect()
    }

    fn row(name: &str, cost: f64) -> (String, f64) {
        (name.to_owned(), format!("{cost:.11e}").parse().expect("a number"))
    }

    #[test]
    fn each_format_gives_seconds_by_name() {
        let google = r#"warning
{ "context": {}, "benchmarks": [
  {"name": "a/1", "run_name": "a/1", "run_type": "iteration", "real_time": 10, "time_unit": "us"},
  {"name": "a/1", "run_name": "a/1", "run_type": "iteration", "real_time": 30, "time_unit": "us"},
  {"name": "a/1_mean", "run_name": "a/1", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 99, "time_unit": "us"},
  {"name": "b", "run_type": "iteration", "real_time": 5, "time_unit": "ns"},
  {"name": "c", "run_type": "iteration", "error_occurred": true, "real_time": 5, "time_unit": "ns"} ] }"#;
        assert_eq!(costs(Format::GoogleBenchmark, google), [row("a/1", 2e-5), row("b", 5e-9)]);
        let medians = r#"{"benchmarks": [
  {"name": "a_median", "run_name": "a", "run_type": "aggregate", "aggregate_name": "median", "real_time": 7, "time_unit": "ms"},
  {"name": "a_stddev", "run_name": "a", "run_type": "aggregate", "aggregate_name": "stddev", "real_time": 1, "time_unit": "ms"}]}"#;
        assert_eq!(costs(Format::GoogleBenchmark, medians), [row("a", 7e-3)]);
        let pytest = "collected 1 item\n\n{\n \"benchmarks\": [{\"fullname\": \"t.py::x\", \"stats\": {\"median\": 0.25}}]\n}\npassed\n";
        assert_eq!(costs(Format::PytestBenchmark, pytest), [row("t.py::x", 0.25)]);
        let criterion = "sum 1k     time:   [1.20 µs 1.25 µs 1.30 µs]\n                 change: [-1% +0% +1%]\n\
            a long name\n                time:   [1.0000 ms 2.0000 ms 3.0000 ms]\n\
            test libtest ... bench:       1,234.5 ns/iter (+/- 56)\n";
        assert_eq!(
            costs(Format::Criterion, criterion),
            [row("a long name", 2e-3), row("libtest", 1234.5 * 1e-9), row("sum 1k", 1.25 * 1e-6)]
        );
        let go = "goos: linux\nUnit hits/op better=higher\nBenchmarkX-2  100  50 ns/op  16 B/op  4.0 hits/op\nBenchmarkX-2  100  70 ns/op  16 B/op  4.0 hits/op\nPASS\n";
        let found = costs(Format::Go, go);
        assert_eq!(
            found,
            [
                row("BenchmarkX-2", 6e-8),
                row("BenchmarkX-2 B/op", 16.0),
                row("BenchmarkX-2 hits/op", 0.25)
            ]
        );
        let lines = "copy 2 ms\nread: 4 MB/s\nrounds 3\nHello, all of you\n";
        assert_eq!(
            costs(Format::Lines, lines),
            [row("copy", 2e-3), row("read", 1.0 / 4e6), row("rounds", 3.0)]
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (format, text) in [
            (Format::GoogleBenchmark, "no json"),
            (Format::GoogleBenchmark, "{\"benchmarks\": ["),
            (Format::GoogleBenchmark, "{\"benchmarks\": []}"),
            (
                Format::GoogleBenchmark,
                "{\"benchmarks\": [{\"name\": \"a\", \"real_time\": 1, \"time_unit\": \"B\"}]}",
            ),
            (Format::PytestBenchmark, "{\"benchmarks\": [{\"fullname\": \"a\"}]}"),
            (Format::Criterion, "a time: [1 parsec 2 parsec 3 parsec]"),
            (Format::Go, "BenchmarkX 100 5 apples"),
            (Format::Lines, "score 5 points"),
            (Format::Lines, "copy 2 ms\ncopy 2 MB/s"),
            (Format::Lines, "nothing"),
            (Format::Lines, "zero 0 s"),
            (Format::Cachewise, "{}"),
        ] {
            assert!(format.read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_unit_has_a_direction_or_is_unknown() {
        for (word, expected) in [
            ("ns/iter", Some((Kind::Seconds, 1e-9))),
            ("KiB", Some((Kind::Bytes, 1024.0))),
            ("kB", Some((Kind::Bytes, 1e3))),
            ("GiB/s", Some((Kind::Rate, 1024.0 * 1024.0 * 1024.0))),
            ("requests/sec", Some((Kind::Rate, 1.0))),
            ("MHz", Some((Kind::Rate, 1e6))),
            ("Gbps", Some((Kind::Rate, 1e9))),
            ("ps", Some((Kind::Seconds, 1e-12))),
            ("steps", None),
            ("%", None),
            ("iB", None),
        ] {
            assert_eq!(unit(word), expected, "{word}");
        }
    }
}
