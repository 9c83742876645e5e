//! Output of runs, compared: by digest where it is the same each time, by its shape where it is not, and errors counted.
//!
//! Plain runs alone show what differs from run to run; the first of them, which may build a cache, does not count.

use regex_lite::Regex;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

/// Lines of different shapes that are kept of one run.
const MOST_SHAPES: usize = 2000;

/// Output of one run, or a file that it wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Digest of standard output or of the files that are compared; `None` where numbers in it are what is measured, or it is a
    /// load's.
    pub exact: Option<u64>,
    /// Lines with their numbers replaced, and how often each was printed.
    shapes: BTreeMap<String, usize>,
    /// Errors that it counts, and lines that name one without a number.
    pub errors: f64,
    /// The first line with an error.
    pub error: Option<String>,
}

/// A digest of bytes.
#[must_use]
pub fn digest(parts: &[Vec<u8>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// The shape of a line: every number is the same one.
fn shape(line: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"0x[0-9A-Fa-f]+|[0-9]+(?:[.,:][0-9]+)*(?:[eE][-+]?[0-9]+)?";
        Regex::new(pattern).expect("a pattern")
    });
    NUMBER.replace_all(line, "#").into_owned()
}

/// Errors that a line counts: its numbers where it names errors, or one; none where all its numbers are 0.
fn errors_in(line: &str) -> f64 {
    static ERROR: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"(?i)\b(errors?|failed|failures?|refused|timed? ?outs?|non-2xx\S*|exception|traceback|panic(ked)?|aborted|fatal)\b";
        Regex::new(words).expect("a pattern")
    });
    static COUNT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[0-9]+(?:\.[0-9]+)?").expect("a pattern"));
    let Some(word) = ERROR.find(line) else { return 0.0 };
    // `non-2xx` and `HTTP/1.1` are names.
    let rest = format!("{} {}", &line[..word.start()], &line[word.end()..]);
    let numbers: Vec<f64> =
        COUNT.find_iter(&rest).filter_map(|n| n.as_str().parse().ok()).collect();
    match numbers[..] {
        [] => 1.0,
        _ if numbers.iter().all(|n| *n == 0.0) => 0.0,
        _ => 1.0_f64.max(numbers.into_iter().fold(0.0, f64::max)),
    }
}

impl Printed {
    /// Text of both outputs; `exact` is the digest of what has to be the same to the byte.
    #[must_use]
    pub fn of(output: &[u8], told: &str, exact: Option<u64>) -> Printed {
        let mut printed = Printed { exact, ..Printed::default() };
        let text = String::from_utf8_lossy(output);
        for line in text.lines() {
            let full = printed.shapes.len() >= MOST_SHAPES;
            let shape = shape(line.trim());
            if !full || printed.shapes.contains_key(&shape) {
                *printed.shapes.entry(shape).or_default() += 1;
            }
        }
        for line in text.lines().chain(told.lines()) {
            let errors = errors_in(line);
            if errors > 0.0 {
                printed.errors += errors;
                printed.error.get_or_insert_with(|| line.trim().to_owned());
            }
        }
        printed
    }
}

/// The outputs of plain runs, and what they say about another's.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    plain: Vec<Printed>,
}

/// Comparison of another's output with that of plain runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Equal, as far as it repeats.
    Same,
    /// The plain program has to run again before anything is said.
    Ask,
    /// Wrong: how.
    Wrong(String),
    /// Lines that appear or vanish where their number differs anyway.
    Differs(String),
}

impl Outputs {
    /// Adds a plain run's.
    pub fn add(&mut self, printed: Printed) {
        self.plain.push(printed);
    }

    /// Returns whether bytes are compared: they are the same in all plain runs so far.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.plain.windows(2).all(|both| both[0].exact == both[1].exact)
    }

    /// Returns whether shapes are the same in all plain runs so far.
    fn shapes_repeat(&self) -> bool {
        self.plain.windows(2).all(|both| both[0].shapes.keys().eq(both[1].shapes.keys()))
    }

    /// Compares another's output with those of the plain runs. Where it differs from a first look, the plain program is asked
    /// again, since a date, a minute or a counter may have changed it for all.
    #[must_use]
    pub fn compare(&self, own: &Printed, was_asked: bool) -> Compared {
        let most = self.plain.iter().map(|plain| plain.errors).fold(0.0, f64::max);
        if own.errors > 1.5 * most + if most > 0.0 { 2.0 } else { 0.0 } {
            let line = own.error.clone().unwrap_or_default();
            return Compared::Wrong(format!(
                "it prints more errors than the plain program: {line}"
            ));
        }
        let is_exact = own.exact.is_some() && self.repeats();
        if is_exact && self.plain.iter().any(|plain| plain.exact == own.exact) {
            return Compared::Same;
        }
        let differing = self.differing(own);
        if !is_exact && differing.is_none() {
            return Compared::Same;
        }
        if !was_asked {
            return Compared::Ask;
        }
        match differing {
            _ if is_exact => Compared::Wrong("another output".to_owned()),
            // A load's lines come and go.
            Some(line) if own.exact.is_none() => Compared::Differs(line),
            Some(line) if self.shapes_repeat() => {
                Compared::Wrong(format!("another output: {line}"))
            }
            _ => Compared::Same,
        }
    }

    /// A line whose shape this output alone has, or alone lacks.
    fn differing(&self, own: &Printed) -> Option<String> {
        let known =
            |line: &&String| self.plain.iter().any(|plain| plain.shapes.contains_key(*line));
        if let Some(line) = own.shapes.keys().find(|line| !known(line)) {
            return Some(format!("\"{line}\" is new"));
        }
        let first = self.plain.first()?;
        let always =
            |line: &&String| self.plain.iter().all(|plain| plain.shapes.contains_key(*line));
        let gone = first.shapes.keys().filter(always).find(|line| !own.shapes.contains_key(*line));
        gone.map(|line| format!("\"{line}\" is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Printed {
        Printed::of(text.as_bytes(), "", Some(digest(&[text.as_bytes().to_vec()])))
    }

    fn load(text: &str) -> Printed {
        Printed::of(text.as_bytes(), "", None)
    }

    #[test]
    fn outputs_are_judged_by_what_plain_runs_print() {
        use Compared::{Ask, Differs, Same, Wrong};
        let wrong = || Wrong(String::new());
        let [same, once] = ["result 42\n", "pid 17\n"];
        for (plain, own, first, then) in [
            (vec![exact(same), exact(same)], exact(same), Same, Same),
            // Wrong once where the plain program never is.
            (vec![exact(same), exact(same)], exact("result 43\n"), Ask, wrong()),
            // A minute that ends: the plain program's differs, too, once it is asked.
            (vec![exact("1\n"), exact("2\n")], exact("2\n"), Same, Same),
            // Numbers differ from run to run, words do not.
            (vec![exact(once), exact("pid 18\n")], exact("pid 19\n"), Same, Same),
            (vec![exact(once), exact("pid 18\n")], exact("gone\n"), Ask, wrong()),
            // Nothing of it repeats.
            (vec![exact("a\n"), exact("b\n")], exact("c\n"), Ask, Same),
            // A load: its lines come and go, errors do not.
            (vec![load("rate 5 a second\n")], load("rate 9 a second\n"), Same, Same),
            (vec![load("rate 5\n")], load("rate 9\nretried 3\n"), Ask, Differs(String::new())),
            (vec![load("value 42\n")], load("ERROR 500\n"), wrong(), wrong()),
            (vec![load("Failed requests: 0\n")], load("Failed requests: 12\n"), wrong(), wrong()),
            (vec![load("errors: 40\n")], load("errors: 43\n"), Same, Same),
        ] {
            let outputs = Outputs { plain };
            for (was_asked, expected) in [(false, &first), (true, &then)] {
                let found = outputs.compare(&own, was_asked);
                let (kind, wanted) =
                    (std::mem::discriminant(&found), std::mem::discriminant(expected));
                assert_eq!(kind, wanted, "{found:?} {own:?}");
            }
        }
    }

    #[test]
    fn errors_are_counted_by_their_numbers() {
        for (line, errors) in [
            ("Non-2xx or 3xx responses: 12", 12.0),
            ("Failed requests:        0", 0.0),
            ("request failed", 1.0),
            ("0 errors, 3 timeouts", 3.0),
            ("terror 500", 0.0),
            ("Traceback (most recent call last):", 1.0),
            ("ERROR 500", 500.0),
        ] {
            assert_eq!(errors_in(line), errors, "{line}");
        }
        assert_eq!(shape("0x7f3a at 12:30:01.5, 3e-5 s"), "# at #, # s");
        let told = Printed::of(b"", "error: data lost\n", None);
        assert_eq!((told.errors, told.error.as_deref()), (1.0, Some("error: data lost")));
    }
}
