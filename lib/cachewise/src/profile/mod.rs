//! The profile: one machine's decisions as plain text, and its parser.
//!
//! The format is described in `docs/schema/profile.md`. The parser allocates nothing and copies
//! nothing, so that a preloaded library can read a profile before `malloc` works; [`Profile`] is
//! the owned form, for those who write profiles.

mod error;
mod format;
mod lines;
#[cfg(feature = "std")]
mod owned;

pub use crate::rows::{FIRST_SIZE, OPERATIONS, hints};
pub use error::{Found, ProfileError};
pub use format::{MAX_BYTES, VERSION};
pub use lines::{Choice, DecisionLine, LIBC, MACHINE_DIRECTORY, MAX_SIZE, libc_from};
#[cfg(feature = "std")]
pub use owned::{Decision, Profile, ReadError, Record, machine_path, user_path};

use crate::cpu::{Caches, Signature, Text};
use crate::cursor::Cursor;
use crate::reuse::Reuse;
use crate::rows::{ROWS, row};
use cachewise_kernels::{Features, Operation};
use core::fmt::{self, Write};

/// A profile's text, checked for form, damage and completeness; nothing is copied out of it.
///
/// ```
/// use cachewise::profile::{ProfileError, ProfileText};
///
/// let damaged = b"cachewise-profile 2\ncpu AuthenticAMD 25 one 1 EPYC\n";
/// let error = ProfileText::parse(damaged).unwrap_err();
/// assert_eq!(error.to_string(), r#"line 2, model: found "one", accepted a whole number"#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProfileText<'a> {
    body: &'a [u8],
    signature: (u32, Signature),
    cpu_name: &'a str,
    caches: Caches,
    record: Option<(&'a str, u64)>,
    written: &'a str,
}

impl<'a> ProfileText<'a> {
    /// Reads a profile. Whether it suits this CPU is [`check`](ProfileText::check)'s business.
    ///
    /// # Errors
    /// The first thing found wrong, with its line.
    pub fn parse(bytes: &'a [u8]) -> Result<ProfileText<'a>, ProfileError> {
        Parser::new(bytes)?.parse()
    }

    /// The CPU it was tuned on.
    #[must_use]
    pub fn signature(&self) -> Signature {
        self.signature.1
    }

    /// That CPU's brand string.
    #[must_use]
    pub fn cpu_name(&self) -> &'a str {
        self.cpu_name
    }

    /// The cache sizes the tuner saw.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// The record it came from, and that record's FNV-1a checksum.
    #[must_use]
    pub fn record(&self) -> Option<(&'a str, u64)> {
        self.record
    }

    /// When and by what it was written; empty where it does not say.
    #[must_use]
    pub fn written(&self) -> &'a str {
        self.written
    }

    /// The free text of the `note` lines, in order.
    pub fn notes(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        Lines { rest: self.body, number: 0 }.filter_map(|(_, line)| match split_key(line) {
            (b"note", rest) => core::str::from_utf8(rest).ok(),
            _ => None,
        })
    }

    /// The decisions, in the file's order: ascending and contiguous per operation and hint, from
    /// [`FIRST_SIZE`] to [`MAX_SIZE`].
    pub fn decisions(&self) -> impl Iterator<Item = DecisionLine<'a>> + use<'a> {
        Lines { rest: self.body, number: 0 }.filter_map(|(number, line)| match split_key(line) {
            (b"decide", rest) => decision(number, rest).ok(),
            _ => None,
        })
    }

    /// Checks that a CPU with this signature and these features can follow it.
    ///
    /// # Errors
    /// Another CPU model, or a kernel that is unknown, of another operation, or not deployable. What is
    /// beyond this CPU alone, or its hypervisor, is no error: what else the profile says is followed.
    pub fn check(&self, signature: &Signature, available: Features) -> Result<(), ProfileError> {
        let (line, tuned_on) = &self.signature;
        if !tuned_on.same_model(signature) {
            return Err(ProfileError::ForeignCpu {
                line: *line,
                found: text_of(tuned_on),
                accepted: text_of(signature),
            });
        }
        self.lines(available)
            .find(|line| !matches!(line, Ok(()) | Err(ProfileError::CannotRun { .. })))
            .unwrap_or(Ok(()))
    }

    /// [`check`](ProfileText::check), with what is beyond this CPU as an error.
    pub(crate) fn check_whole(
        &self,
        signature: &Signature,
        available: Features,
    ) -> Result<(), ProfileError> {
        self.check(signature, available)?;
        self.lines(available).find(Result::is_err).unwrap_or(Ok(()))
    }

    /// Checks that each line that names a kernel can be followed.
    fn lines(&self, available: Features) -> impl Iterator<Item = Result<(), ProfileError>> {
        self.decisions().map(move |decision| decision.choice(available).map(|_| ()))
    }
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>. Each step is a bijection of the
/// state, so a single changed byte always changes the sum.
///
/// ```
/// assert_eq!(cachewise::profile::fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
/// ```
#[must_use]
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes the name of a profile's file for a CPU, `AuthenticAMD-25-1-1.profile`.
///
/// # Errors
/// Those of the writer.
pub fn write_file_name(out: &mut dyn Write, signature: &Signature) -> fmt::Result {
    let Signature { vendor, family, model, stepping } = signature;
    write!(out, "{vendor}-{family}-{model}-{stepping}.profile")
}

fn text_of(signature: &Signature) -> Found {
    let mut bytes = [0; 48];
    let mut cursor = Cursor::new(&mut bytes);
    // Twelve letters and three 32-bit numbers fit.
    let _ = write!(cursor, "{signature}");
    Found::from_bytes(cursor.written())
}

/// Complete lines, numbered from 1; what follows the last newline is not one.
struct Lines<'a> {
    rest: &'a [u8],
    number: u32,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<(u32, &'a [u8])> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..)?;
        self.number += 1;
        Some((self.number, line))
    }
}

/// The first word, and what follows the space after it.
fn split_key(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    (line.get(..end).unwrap_or(&[]), line.get(end + 1..).unwrap_or(&[]))
}

/// The fields of one line, separated by single spaces.
struct Fields<'a> {
    line: u32,
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn new(line: u32, rest: &'a [u8]) -> Fields<'a> {
        Fields { line, rest: Some(rest) }
    }

    fn error(&self, field: &'static str, found: &[u8], accepted: &'static str) -> ProfileError {
        ProfileError::Field { line: self.line, field, found: Text::from_bytes(found), accepted }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let Some(rest) = self.rest else { return &[] };
        let (word, rest) = split_key(rest);
        self.rest = if rest.is_empty() { None } else { Some(rest) };
        word
    }

    fn parse<T>(
        &mut self,
        field: &'static str,
        accepted: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, ProfileError> {
        let word = self.bytes();
        let text = core::str::from_utf8(word).ok().filter(|text| !text.is_empty());
        text.and_then(parse).ok_or_else(|| self.error(field, word, accepted))
    }

    fn number<T: TryFrom<u64>>(&mut self, field: &'static str) -> Result<T, ProfileError> {
        self.parse(field, "a whole number", |text| T::try_from(whole_number(text)?).ok())
    }

    fn end(&self) -> Result<(), ProfileError> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(self.error("end of the line", rest, "nothing more")),
        }
    }
}

/// Digits only (`str::parse` would take a sign), one way to write each number.
fn whole_number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    if canonical && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// `fnv1a64:` and sixteen lower-case hexadecimal digits.
fn checksum(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("fnv1a64:")?;
    let plain =
        digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// Reads the text behind the key: UTF-8 without control characters.
fn free_text<'a>(line: u32, field: &'static str, rest: &'a [u8]) -> Result<&'a str, ProfileError> {
    let text = core::str::from_utf8(rest).ok().filter(|text| !text.chars().any(char::is_control));
    text.ok_or_else(|| Fields::new(line, rest).error(field, rest, "UTF-8 text on one line"))
}

fn decision(line: u32, rest: &[u8]) -> Result<DecisionLine<'_>, ProfileError> {
    let mut fields = Fields::new(line, rest);
    let operation =
        fields.parse("operation", "copy, move, fill, zero, compare or equal", |text| {
            Operation::from_name(text).filter(|operation| OPERATIONS.contains(operation))
        })?;
    let accepted = if hints(operation).len() == 1 { "unknown" } else { "unknown, soon or never" };
    let reuse = fields.parse("reuse", accepted, |text| {
        Reuse::from_name(text).filter(|reuse| hints(operation).contains(reuse))
    })?;
    let (from, to) = sizes(&mut fields)?;
    let kernel = fields.parse("kernel", "a kernel's name", |text| {
        text.chars().all(|c| c.is_ascii_graphic()).then_some(text)
    })?;
    let nearest = match fields.rest {
        Some(_) if kernel == LIBC => {
            Some(fields.parse("nearest kernel", "a kernel's name", |text| {
                text.chars().all(|c| c.is_ascii_graphic()).then_some(text)
            })?)
        }
        _ => None,
    };
    fields.end()?;
    Ok(DecisionLine { line, operation, reuse, from, to, kernel, nearest })
}

/// The first and the last size of a range.
fn sizes(fields: &mut Fields<'_>) -> Result<(u64, u64), ProfileError> {
    let from = fields.parse("from", "a whole number of bytes", whole_number)?;
    let to = fields.parse("to", "a whole number of bytes or max, not below from", |text| {
        let to = if text == "max" { Some(MAX_SIZE) } else { whole_number(text) };
        to.filter(|to| *to >= from)
    })?;
    Ok((from, to))
}

struct Parser<'a> {
    bytes: &'a [u8],
    lines: Lines<'a>,
    cpu: Option<(u32, Signature, &'a str)>,
    caches: Option<Caches>,
    record: Option<(&'a str, u64)>,
    written: Option<&'a str>,
    /// Per row, the size that the next range must start at; `None` once `max` is reached, and
    /// `FIRST_SIZE` where no line has been seen.
    next: [Option<u64>; ROWS],
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8]) -> Result<Parser<'a>, ProfileError> {
        if bytes.len() > MAX_BYTES {
            return Err(ProfileError::TooLarge);
        }
        Ok(Parser {
            bytes,
            lines: Lines { rest: bytes, number: 0 },
            cpu: None,
            caches: None,
            record: None,
            written: None,
            next: [Some(FIRST_SIZE); ROWS],
        })
    }

    fn parse(mut self) -> Result<ProfileText<'a>, ProfileError> {
        self.header()?;
        loop {
            let body = self.bytes.len() - self.lines.rest.len();
            let Some((line, text)) = self.lines.next() else {
                return Err(ProfileError::Truncated { lines: self.lines.number });
            };
            let (key, rest) = split_key(text);
            match key {
                b"cpu" => self.cpu(line, rest)?,
                b"caches" => self.caches(line, rest)?,
                b"record" => self.record(line, rest)?,
                b"written" => {
                    let text = free_text(line, "written", rest)?;
                    once(&mut self.written, text, line, "written")?;
                }
                b"note" => {
                    free_text(line, "note", rest)?;
                }
                // Profiles of 0.1 and 0.2 name entry stubs, threads and programs: nothing follows these lines any more.
                b"entry" | b"parallel" | b"program" => {
                    free_text(line, "text", rest)?;
                }
                b"decide" => self.decide(line, rest)?,
                b"end" => {
                    let body = self.bytes.get(..body).unwrap_or(&[]);
                    return self.end(line, rest, body);
                }
                _ => {
                    let accepted = "cpu, caches, record, written, decide, note or end";
                    return Err(Fields::new(line, rest).error("key", key, accepted));
                }
            }
        }
    }

    fn header(&mut self) -> Result<(), ProfileError> {
        let first = self.lines.next();
        let (_, line) = first.unwrap_or((1, self.bytes));
        let version = match split_key(line) {
            (b"cachewise-profile", rest) => core::str::from_utf8(rest).ok().and_then(whole_number),
            _ => None,
        };
        match version {
            Some(version) if version > u64::from(VERSION) => {
                let found = u32::try_from(version).unwrap_or(u32::MAX);
                Err(ProfileError::NewerVersion { found })
            }
            Some(version) if version == u64::from(VERSION) => Ok(()),
            _ => Err(ProfileError::NotAProfile { found: Text::from_bytes(line) }),
        }
    }

    fn cpu(&mut self, line: u32, rest: &'a [u8]) -> Result<(), ProfileError> {
        let mut fields = Fields::new(line, rest);
        let accepted = "up to 12 letters, digits, dots or underscores";
        let vendor = fields.parse("vendor", accepted, |text| {
            (Signature::new(text, 0, 0, 0).vendor.as_str() == text).then_some(text)
        })?;
        let family = fields.number("family")?;
        let model = fields.number("model")?;
        let stepping = fields.number("stepping")?;
        let name = free_text(line, "name", fields.rest.unwrap_or(&[]))?;
        let signature = Signature::new(vendor, family, model, stepping);
        once(&mut self.cpu, (line, signature, name), line, "cpu")
    }

    fn caches(&mut self, line: u32, rest: &'a [u8]) -> Result<(), ProfileError> {
        let mut fields = Fields::new(line, rest);
        let l1d = fields.number("L1d")?;
        let l2 = fields.number("L2")?;
        let llc = fields.number("LLC")?;
        let clamped = fields.rest.is_some();
        if clamped {
            fields.parse("fourth field", "assumed, or nothing", |text| {
                (text == "assumed").then_some(())
            })?;
        }
        fields.end()?;
        once(&mut self.caches, Caches { l1d, l2, llc, clamped }, line, "caches")
    }

    fn record(&mut self, line: u32, rest: &'a [u8]) -> Result<(), ProfileError> {
        let text = free_text(line, "record", rest)?;
        // The file's name may hold spaces, so the checksum is what follows the last one.
        let (name, sum) = text.rsplit_once(' ').unwrap_or((text, ""));
        let Some(sum) = checksum(sum) else {
            let accepted = "fnv1a64: and 16 hexadecimal digits";
            return Err(Fields::new(line, rest).error("checksum", sum.as_bytes(), accepted));
        };
        if name.is_empty() {
            return Err(Fields::new(line, rest).error("record", b"", "a file's name"));
        }
        once(&mut self.record, (name, sum), line, "record")
    }

    fn decide(&mut self, line: u32, rest: &'a [u8]) -> Result<(), ProfileError> {
        let decision = decision(line, rest)?;
        let Some(next) = self.next.get_mut(row(decision.operation, decision.reuse)) else {
            return Ok(());
        };
        if *next != Some(decision.from) {
            return Err(ProfileError::Range { line, found: decision.from, accepted: *next });
        }
        *next = decision.to.checked_add(1);
        Ok(())
    }

    fn end(self, line: u32, rest: &[u8], body: &'a [u8]) -> Result<ProfileText<'a>, ProfileError> {
        let mut fields = Fields::new(line, rest);
        let count: u64 = fields.number("number of lines")?;
        let found = fields.parse("checksum", "fnv1a64: and 16 hexadecimal digits", checksum)?;
        fields.end()?;
        if !self.lines.rest.is_empty() {
            let accepted = "nothing after the end line";
            return Err(Fields::new(line + 1, b"").error("line", self.lines.rest, accepted));
        }
        if count != u64::from(line - 1) {
            return Err(ProfileError::LineCount { line, found: count, accepted: line - 1 });
        }
        let accepted = fnv1a64(body);
        if found != accepted {
            return Err(ProfileError::Checksum { line, found, accepted });
        }
        let missing = |key| ProfileError::Missing { line, key };
        let (cpu_line, signature, cpu_name) = self.cpu.ok_or(missing("cpu"))?;
        let caches = self.caches.ok_or(missing("caches"))?;
        for operation in OPERATIONS {
            for reuse in hints(operation) {
                match self.next.get(row(operation, *reuse)) {
                    Some(Some(next)) if *next != FIRST_SIZE => {
                        let (reuse, next) = (*reuse, *next);
                        return Err(ProfileError::Unfinished { line, operation, reuse, next });
                    }
                    _ => {}
                }
            }
        }
        Ok(ProfileText {
            body,
            signature: (cpu_line, signature),
            cpu_name,
            caches,
            record: self.record,
            written: self.written.unwrap_or(""),
        })
    }
}

fn once<T>(
    place: &mut Option<T>,
    value: T,
    line: u32,
    key: &'static str,
) -> Result<(), ProfileError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ProfileError::Duplicate { line, key }),
    }
}
