//! The kernels that a user means: names, aliases, regular expressions; and the nearest names when none
//! answers.

use crate::error::LabError;
use cachewise_kernels::{Features, Kernel, Operation, TABLE};
use regex_lite::Regex;

/// Kernels of `operation` whose canonical name or alias matches `pattern` (a regular expression
/// that has to match a whole name, or a plain part of one), in table order; all of them when
/// `pattern` is `None`.
///
/// # Errors
/// When the pattern is not a regular expression, or nothing answers to it; the error then carries
/// the nearest names.
pub fn kernels(
    operations: &[Operation],
    pattern: Option<&str>,
) -> Result<Vec<&'static Kernel>, LabError> {
    let of_operations = || TABLE.iter().filter(|kernel| operations.contains(&kernel.operation()));
    let Some(pattern) = pattern else { return Ok(of_operations().collect()) };
    let whole = Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim();
        let accepted = format!("a regular expression ({why})");
        LabError::unsuited("kernels", format!("\"{pattern}\""), &accepted)
    })?;
    let names = |kernel: &Kernel| {
        std::iter::once(kernel.name).chain(kernel.aliases.iter().copied()).collect::<Vec<_>>()
    };
    let chosen: Vec<_> = of_operations()
        .filter(|kernel| names(kernel).into_iter().any(|name| whole.is_match(name)))
        .collect();
    if chosen.is_empty() {
        return Err(LabError::UnknownKernel {
            found: pattern.to_owned(),
            nearest: nearest(pattern, of_operations().flat_map(names)),
        });
    }
    Ok(chosen)
}

/// Least similarity of a name that is suggested.
const NEAR: f64 = 0.75;

/// End of an error: up to three names similar to `wanted`, best first; empty if there is none.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let scored = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let mut scored: Vec<(f64, &str)> = scored.filter(|(score, _)| *score >= NEAR).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|entry| entry.1);
    let near: Vec<&str> = scored.into_iter().take(3).map(|(_, name)| name).collect();
    if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) }
}

/// Splits kernels into those this CPU can run and those it cannot, of which the names and reasons.
pub fn runnable(
    kernels: Vec<&'static Kernel>,
    available: Features,
) -> (Vec<&'static Kernel>, Vec<String>) {
    let (here, absent): (Vec<&Kernel>, Vec<&Kernel>) =
        kernels.into_iter().partition(|kernel| kernel.runs_on(available));
    let lacks = |kernel: &Kernel| kernel.requires.missing_from(available);
    let why = |kernel: &Kernel| format!("{}: this CPU lacks {}", kernel.name, lacks(kernel));
    (here, absent.into_iter().map(why).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names_and_aliases() {
        let copies = kernels(&[Operation::Copy], Some(r"copy\.avx(\.nt)?")).expect("two");
        assert!(copies.iter().map(|kernel| kernel.name).eq(["copy.avx", "copy.avx.nt"]));
        let period = kernels(&[Operation::Copy], Some("copy[A-Z0]")).expect("seed 002");
        assert!(period.iter().all(|kernel| !kernel.aliases.is_empty()));
    }
}
