//! What is known of one program: a section of the machine's profile, as text.
//!
//! The format is described in `docs/schema/program.md`. It is read and written without allocating,
//! because a preloaded library does both inside a program that did not ask for it.

use crate::Way;
use crate::evidence::{Evidence, KEPT, Moments};
use crate::operation::Operation;
use crate::trial::{Left, Outcome, Why};
use core::fmt::{self, Write};

/// The format version this crate reads and writes.
pub const VERSION: u32 = 2;

/// The largest section that is read.
pub const MAX_BYTES: usize = 2 << 20;

/// One call site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// The module's number in the section.
    pub module: u32,
    /// The return address, as the module's file counts.
    pub offset: u64,
    /// What it does.
    pub operation: Operation,
    /// Its sizes are at least 2 to this power, and below twice that.
    pub octave: u32,
    /// Bytes so far.
    pub bytes: u64,
    /// The way the profile went when it was last written.
    pub usual: Way,
    /// What is known.
    pub left: Left,
}

/// A module: what identifies its file, and where that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// Its number in the section.
    pub number: u32,
    /// The build id in hexadecimal, or `x` and a checksum of what the file begins with.
    pub id: &'a str,
    /// Its path when it was last seen.
    pub path: &'a str,
}

/// What is wrong with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// The first line is another.
    NotASection,
    /// Written by another version.
    OtherVersion(u32),
    /// It ends early.
    Truncated,
    /// A line is not what it should be.
    Line {
        /// Which, from 1.
        line: u32,
        /// The field.
        field: &'static str,
        /// What is accepted.
        accepted: &'static str,
    },
    /// Its bytes are others than were written.
    Damaged,
    /// Larger than [`MAX_BYTES`].
    TooLarge,
}

impl fmt::Display for SectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionError::NotASection => {
                write!(f, "line 1: accepted \"cachewise-program {VERSION}\"")
            }
            SectionError::OtherVersion(found) if *found < VERSION => {
                write!(f, "line 1: found version {found}, accepted {VERSION}: learned anew")
            }
            SectionError::OtherVersion(found) => {
                write!(f, "line 1: found version {found}, accepted {VERSION}")
            }
            SectionError::Truncated => f.write_str("found no end line: cut short"),
            SectionError::Line { line, field, accepted } => {
                write!(f, "line {line}, {field}: accepted {accepted}")
            }
            SectionError::Damaged => f.write_str("end: the checksum is another: damaged"),
            SectionError::TooLarge => write!(f, "found more than {MAX_BYTES} bytes"),
        }
    }
}

/// A section's text, checked as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    body: &'a str,
}

impl<'a> Section<'a> {
    /// Reads a section.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Section<'a>, SectionError> {
        if bytes.len() > MAX_BYTES {
            return Err(SectionError::TooLarge);
        }
        let text = core::str::from_utf8(bytes).map_err(|_| SectionError::NotASection)?;
        let mut lines = text.split_inclusive('\n');
        let version = lines.next().and_then(|line| line.strip_prefix("cachewise-program "));
        let version = version.and_then(|line| line.trim_end().parse::<u32>().ok());
        match version {
            None => return Err(SectionError::NotASection),
            Some(VERSION) => {}
            Some(other) => return Err(SectionError::OtherVersion(other)),
        }
        let mut end = text.len() - lines.clone().map(str::len).sum::<usize>();
        for (number, line) in (2..).zip(lines) {
            if !line.ends_with('\n') {
                return Err(SectionError::Truncated);
            }
            let mut words = Words { rest: line.trim_end_matches('\n'), line: number };
            match words.next("key", "a line's first word")? {
                "program" | "cpu" | "written" => {}
                "module" => drop(module(&mut words)?),
                "site" => drop(site(&mut words)?),
                "end" => {
                    let body = text.get(..end).unwrap_or("");
                    let sum = words.next("checksum", "fnv1a64: and sixteen digits")?;
                    let sum = sum.strip_prefix("fnv1a64:");
                    let sum = sum.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                    return if sum == Some(fnv1a64(body.as_bytes())) {
                        Ok(Section { body })
                    } else {
                        Err(SectionError::Damaged)
                    };
                }
                _ => {
                    return Err(SectionError::Line {
                        line: number,
                        field: "key",
                        accepted: "program, cpu, written, module, site or end",
                    });
                }
            }
            end += line.len();
        }
        Err(SectionError::Truncated)
    }

    /// A section whose checksum is right: then its lines are what somebody wrote who could. For whoever
    /// starts with every process of a program and has no time to read each number.
    ///
    /// # Errors
    /// As [`parse`](Section::parse), which is asked where the checksum is wrong.
    pub fn sealed(bytes: &'a [u8]) -> Result<Section<'a>, SectionError> {
        let sealed = || {
            let text = core::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_BYTES)?;
            let (version, _) = text.strip_prefix("cachewise-program ")?.split_once('\n')?;
            let (before, end) = text.strip_suffix('\n')?.rsplit_once('\n')?;
            let digits = end.strip_prefix("end fnv1a64:")?;
            let body = text.get(..=before.len())?;
            let sum = u64::from_str_radix(digits, 16).ok()?;
            let whole = version.parse() == Ok(VERSION) && sum == fnv1a64(body.as_bytes());
            whole.then_some(Section { body })
        };
        sealed().map_or_else(|| Section::parse(bytes), Ok)
    }

    /// How many lines say something of a site.
    #[must_use]
    pub fn count(&self) -> usize {
        self.body.lines().filter(|line| line.starts_with("site ")).count()
    }

    /// The sites without their evidence, for those who only follow.
    pub fn outcomes(&self) -> impl Iterator<Item = Site> + use<'a> {
        self.lines("site").filter_map(|mut words| site_alone(&mut words).ok())
    }

    fn lines(&self, key: &'static str) -> impl Iterator<Item = Words<'a>> + use<'a> {
        (1..).zip(self.body.lines()).filter_map(move |(line, text)| {
            let (first, rest) = text.split_once(' ')?;
            (first == key).then_some(Words { rest, line })
        })
    }

    /// What the line of that key says: `program`, `cpu` or `written`.
    #[must_use]
    pub fn text(&self, key: &'static str) -> &'a str {
        self.lines(key).next().map_or("", |words| words.rest)
    }

    /// The modules.
    pub fn modules(&self) -> impl Iterator<Item = Module<'a>> + use<'a> {
        self.lines("module").filter_map(|mut words| module(&mut words).ok())
    }

    /// The sites.
    pub fn sites(&self) -> impl Iterator<Item = Site> + use<'a> {
        self.lines("site").filter_map(|mut words| site(&mut words).ok())
    }
}

struct Words<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Words<'a> {
    fn next(
        &mut self,
        field: &'static str,
        accepted: &'static str,
    ) -> Result<&'a str, SectionError> {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        if word.is_empty() { Err(self.error(field, accepted)) } else { Ok(word) }
    }

    fn error(&self, field: &'static str, accepted: &'static str) -> SectionError {
        SectionError::Line { line: self.line, field, accepted }
    }

    fn parse<T>(
        &mut self,
        field: &'static str,
        accepted: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SectionError> {
        let word = self.next(field, accepted)?;
        parse(word).ok_or_else(|| self.error(field, accepted))
    }

    fn number<T: core::str::FromStr>(&mut self, field: &'static str) -> Result<T, SectionError> {
        self.parse(field, "a whole number", |word| word.parse().ok())
    }
}

fn module<'a>(words: &mut Words<'a>) -> Result<Module<'a>, SectionError> {
    let number = words.number("module")?;
    let id = words.next("build id", "hexadecimal digits, after an x where it is a checksum")?;
    Ok(Module { number, id, path: words.rest })
}

fn moments(words: &mut Words<'_>, count: u32) -> Result<Moments, SectionError> {
    let mean: i64 = words.number("mean")?;
    let error: i64 = words.number("error")?;
    Ok(Moments::restore(count, mean as f64 / 1000.0, error as f64 / 1000.0))
}

fn evidence(words: &mut Words<'_>) -> Result<Evidence, SectionError> {
    let pairs: u32 = words.number("pairs")?;
    let costs = [moments(words, pairs)?, moments(words, pairs)?];
    let difference = moments(words, pairs)?;
    let mut kept = [0; KEPT];
    for value in &mut kept {
        *value = words.number("evidence")?;
    }
    Ok(Evidence::restore(costs, difference, &kept))
}

fn site(words: &mut Words<'_>) -> Result<Site, SectionError> {
    let mut site = site_alone(words)?;
    site.left.evidence = evidence(words)?;
    site.left.screening = evidence(words)?;
    site.left.confirming = evidence(words)?;
    if words.rest.is_empty() {
        return Ok(site);
    }
    Err(words.error("end of the line", "nothing more"))
}

/// What stands before the evidence.
fn site_alone(words: &mut Words<'_>) -> Result<Site, SectionError> {
    let module = words.number("module")?;
    let offset = words.parse("offset", "0x and hexadecimal digits", |word| {
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    })?;
    let operation = words.parse("operation", "copy, move, fill or zero", Operation::from_name)?;
    let octave = words.parse("octave", "16 to 47", |word| {
        word.parse().ok().filter(|octave| (16..=47).contains(octave))
    })?;
    let calls = words.number("calls")?;
    let bytes = words.number("bytes")?;
    let usual = words.parse("usual", "temporal or nt", Way::from_name)?;
    let outcome = words.parse("outcome", "temporal, nt or why it cannot tell", |word| {
        let decided = Way::from_name(word).map(Outcome::Decided);
        decided.or_else(|| Why::from_name(word).map(Outcome::CannotTell))
    })?;
    let explored = words.number("explored")?;
    let reopened = words.number("reopened")?;
    let none = Evidence::NONE;
    let (evidence, screening, confirming) = (none, none, none);
    let left = Left { outcome, calls, explored, reopened, evidence, screening, confirming };
    Ok(Site { module, offset, operation, octave, bytes, usual, left })
}

impl Outcome {
    /// One word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Decided(way) => way.name(),
            Outcome::CannotTell(why) => why.name(),
        }
    }
}

fn write_evidence(out: &mut dyn Write, evidence: &Evidence) -> fmt::Result {
    write!(out, " {}", evidence.pairs())?;
    for moments in [&evidence.costs[0], &evidence.costs[1], &evidence.difference] {
        let thousandths = |value: f64| (value * 1000.0) as i64;
        write!(out, " {} {}", thousandths(moments.mean()), thousandths(moments.error()))?;
    }
    for kept in evidence.kept() {
        write!(out, " {kept}")?;
    }
    Ok(())
}

impl Site {
    /// Whether both are the same calls, the module's number aside.
    #[must_use]
    pub fn same_calls(&self, other: &Site) -> bool {
        (self.offset, self.operation, self.octave) == (other.offset, other.operation, other.octave)
    }

    /// Writes its line.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let Site { module, offset, operation, octave, bytes, usual, left } = self;
        write!(out, "site {module} {offset:#x} {} {octave} ", operation.name())?;
        write!(out, "{} {bytes} {} {} ", left.calls, usual.name(), left.outcome.name())?;
        write!(out, "{} {}", left.explored, left.reopened)?;
        for evidence in [&left.evidence, &left.screening, &left.confirming] {
            write_evidence(out, evidence)?;
        }
        out.write_char('\n')
    }
}

/// The end line of a section with that text so far.
///
/// # Errors
/// Those of the writer.
pub fn write_end(out: &mut dyn Write, body: &[u8]) -> fmt::Result {
    writeln!(out, "end fnv1a64:{:016x}", fnv1a64(body))
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
#[must_use]
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
