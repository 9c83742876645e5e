//! Sizes and alignments with which programs call the C library's memory operations.
//!
//! The built-in ones are 128 quantiles each (the sizes below which (i + 1/2)/128 of the calls lie) of
//! the distributions that Fleetbench publishes from Google's fleet (Chen et al., "automemcpy", ISMM
//! 2021; fleetbench, `libc` benchmarks). A quantile table forgets the largest half percent of the
//! calls, and with it most of the bytes: it is about small calls. `--distribution FILE` reads the
//! published form in full.
//!
//! The published form is text of three lines, each a comma-separated list of `value:probability`:
//! sizes in bytes; whether the buffers overlap (0 or 1); alignments in bytes (1 to 64).

use crate::record;
use fastrand::Rng;
use std::fmt::Display;
use std::path::Path;

/// A distribution file cannot be used: file, line, what was found, what is accepted.
#[derive(Debug, thiserror::Error)]
#[error("--distribution {0}")]
pub struct Refused(String);

#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Its name: a built-in one's, or the file's.
    pub name: String,
    /// Sizes with how often they occur.
    pub sizes: Vec<(usize, f64)>,
    /// Part of the calls whose source and destination overlap.
    pub overlapping: f64,
    /// Alignments of the pointers with how often they occur.
    pub alignments: Vec<(usize, f64)>,
}

/// A file that cannot be used; its line from 1.
fn refused(file: &Path, line: usize, found: impl Display, accepted: &str) -> Refused {
    Refused(format!("{}:{line}: expected {accepted}, found {found}", file.display()))
}

/// Derived from Fleetbench's `Memcpy_Fleet.csv` and so on (Apache-2.0), in the published form: quantiles
/// count alike.
const BUILT_IN: [(&str, &str); 5] = [
    ("memcpy", include_str!("distributions/memcpy.csv")),
    ("memmove", include_str!("distributions/memmove.csv")),
    ("memset", include_str!("distributions/memset.csv")),
    ("memcmp", include_str!("distributions/memcmp.csv")),
    ("bcmp", include_str!("distributions/bcmp.csv")),
];

impl Distribution {
    /// The built-in one for calls of a C function: `memcpy`, `memmove`, `memset`, `memcmp`, `bcmp`.
    pub fn built_in(function: &str) -> Option<Distribution> {
        let (name, text) = BUILT_IN.iter().find(|(name, _)| *name == function)?;
        Distribution::parse(text, name, Path::new(name)).ok()
    }

    /// Reads the published form.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not such a list; either with file and line.
    pub fn read(path: &Path) -> Result<Distribution, Refused> {
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Distribution::parse(&text_of(path)?, &name, path)
    }

    fn parse(text: &str, name: &str, file: &Path) -> Result<Distribution, Refused> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let mut next = |accepted, largest| {
            let end = text.lines().count();
            list(lines.next().unwrap_or((end, "")), file, accepted, largest)
        };
        let sizes = next("value:probability,value:probability,.. with whole values", 1 << 30)?;
        let overlap = next("0:probability,1:probability", 1)?;
        let accepted = "alignments that are powers of two up to 4096, with probabilities";
        let alignments = next(accepted, 4096)?;
        if let Some((odd, _)) = alignments.iter().find(|(value, _)| !value.is_power_of_two()) {
            return Err(refused(file, 3, odd, accepted));
        }
        let total: f64 = overlap.iter().map(|(_, probability)| probability).sum();
        let overlapping =
            overlap.iter().filter(|(value, _)| *value == 1).map(|(_, p)| p).sum::<f64>() / total;
        Ok(Distribution { name: name.to_owned(), sizes, overlapping, alignments })
    }

    pub fn largest(&self) -> usize {
        self.sizes.iter().map(|(size, _)| *size).max().unwrap_or(0)
    }

    pub fn mean(&self) -> usize {
        let calls: f64 = self.sizes.iter().map(|(_, weight)| weight).sum();
        let bytes: f64 = self.sizes.iter().map(|(size, weight)| *size as f64 * weight).sum();
        (bytes / calls) as usize
    }

    pub fn size(&self, random: &mut Rng) -> usize {
        draw(&self.sizes, random)
    }

    /// A place for `n` bytes in `span` bytes from a 4096-aligned start, aligned as drawn and no
    /// better.
    pub fn place(&self, n: usize, span: usize, random: &mut Rng) -> usize {
        let align = draw(&self.alignments, random).max(1);
        let room = span.saturating_sub(n + align) / (2 * align);
        // An odd multiple, so that the next power of two does not divide it.
        let place = (2 * random.usize(..=room) + 1) * align;
        if place + n <= span { place } else { 0 }
    }

    /// Returns whether this call's buffers overlap.
    pub fn overlaps(&self, random: &mut Rng) -> bool {
        random.f64() < self.overlapping
    }
}

fn text_of(path: &Path) -> Result<String, Refused> {
    // A device may be without end.
    let read = record::bytes(path).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| std::io::Error::other("expected text, found bytes that are no UTF-8"))
    });
    // An error that is not the system's says itself what was expected.
    let accepted = |error: &std::io::Error| match error.raw_os_error() {
        Some(_) => "expected a readable file, found ",
        None => "",
    };
    read.map_err(|error| Refused(format!("{}: {}{error}", path.display(), accepted(&error))))
}

/// Reads one list of whole values up to `largest`: a file whose first line that is not blank has it.
pub fn read_list(
    path: &Path,
    accepted: &str,
    largest: usize,
) -> Result<Vec<(usize, f64)>, Refused> {
    let text = text_of(path)?;
    let line = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty());
    list(line.unwrap_or((0, "")), path, accepted, largest)
}

/// A line's list; an empty line is the end of the file.
fn list(
    (at, line): (usize, &str),
    file: &Path,
    accepted: &str,
    largest: usize,
) -> Result<Vec<(usize, f64)>, Refused> {
    let refused = |found: &str| refused(file, at + 1, found, accepted);
    if line.is_empty() {
        return Err(refused("the end of the file"));
    }
    let pair = |part: &str| {
        let (value, probability) = part.split_once(':')?;
        let (value, probability) = (value.trim().parse().ok()?, probability.trim().parse().ok()?);
        (value <= largest && (0.0..=1.0).contains(&probability)).then_some((value, probability))
    };
    let parts = line.trim().trim_end_matches(',').split(',');
    let values = parts
        .map(|part| pair(part).ok_or_else(|| refused(&format!("\"{part}\""))))
        .collect::<Result<Vec<(usize, f64)>, Refused>>()?;
    if values.iter().all(|(_, probability)| *probability == 0.0) {
        return Err(refused("no probability above zero"));
    }
    Ok(values)
}

/// One of the values by its weight.
pub fn draw(values: &[(usize, f64)], random: &mut Rng) -> usize {
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut left = random.f64() * total;
    for (value, weight) in values {
        left -= weight;
        if left < 0.0 {
            return *value;
        }
    }
    values.last().map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_ones_are_ascending_quantiles() {
        for name in ["memcpy", "memmove", "memset", "memcmp", "bcmp"] {
            let found = Distribution::built_in(name).expect("built in");
            assert_eq!(found.sizes.len(), 128, "{name}");
            assert!(found.sizes.is_sorted_by_key(|(size, _)| *size), "{name}");
            let most = found.sizes.iter().filter(|(size, _)| *size <= 128).count();
            assert!(most > 96, "{name}: {most} of 128 quantiles are at most 128 bytes");
        }
        assert_eq!(Distribution::built_in("strcpy"), None);
    }

    #[test]
    fn the_published_form_is_read_and_refused_by_line() {
        let parse = |text: &str| Distribution::parse(text, "x", Path::new("x.csv"));
        let found = parse("0:0.25,16:0.75\n0:0.9,1:0.1\n1:0.5,64:0.5\n").expect("three lines");
        assert_eq!(found.sizes, [(0, 0.25), (16, 0.75)]);
        assert!((found.overlapping - 0.1).abs() < 1e-12);
        assert_eq!(found.largest(), 16);
        for (text, says) in [
            ("", "1: found the end of the file"),
            ("1:x\n0:1\n1:1\n", "1: found \"1:x\""),
            ("1:1\n2:1\n1:1\n", "2: found \"2:1\""),
            ("1:1\n0:1\n3:1\n", "3: found 3"),
            ("1:0\n0:1\n1:1\n", "1: found no probability above zero"),
            ("8:0.5,16:1.5\n0:1\n1:1\n", "1: found \"16:1.5\""),
            ("8:1\n0:1\n", "3: found the end of the file"),
            ("-1:1\n0:1\n1:1\n", "1: found \"-1:1\""),
        ] {
            let error = parse(text).expect_err(text).to_string();
            let (line, found) = says.split_once(": ").expect("a line and what is there");
            assert!(
                error.starts_with(&format!("--distribution x.csv:{line}: expected ")),
                "{error}"
            );
            assert!(error.ends_with(&format!(", {found}")), "{error}");
        }
    }

    #[test]
    fn places_are_inside_and_aligned_as_drawn() {
        let distribution = Distribution {
            name: String::new(),
            sizes: vec![(100, 1.0)],
            overlapping: 0.0,
            alignments: vec![(8, 1.0)],
        };
        let mut random = Rng::with_seed(1);
        for _ in 0..1000 {
            let place = distribution.place(100, 16 << 10, &mut random);
            assert!(place + 100 <= 16 << 10);
            assert_eq!(place % 16, 8);
        }
        assert_eq!(distribution.place(100, 100, &mut random), 0);
    }
}
