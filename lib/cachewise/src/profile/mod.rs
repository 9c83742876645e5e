//! The profile: one machine's decisions as plain text, and its parser.
//!
//! The format is described in `docs/schema/profile.md`. The parser allocates nothing and copies
//! nothing, so that a preloaded library can read a profile before `malloc` works; it reads files and the profiles that
//! come with the library alike. [`Profile`] is the owned form, for those who write profiles.

mod error;
mod lines;
#[cfg(feature = "std")]
mod owned;

pub use crate::rows::{FIRST_SIZE, OPERATIONS, hints};
pub use error::ProfileError;
pub use lines::{Choice, DecisionLine, LIBC, MAX_SIZE, OR_LIBC, libc_from};
#[cfg(feature = "std")]
pub use owned::{Decision, Profile, ReadError, Record, machine_path, user_path};

use crate::cpu::{Caches, Signature};
use crate::reuse::Reuse;
use crate::rows::{ROWS, row};
use cachewise_kernels::{Features, Operation};
use core::fmt::{self, Write};
use core::str;

/// The format version that is written.
pub const VERSION: u32 = 3;

/// The earliest format version that is read.
pub const EARLIEST: u32 = 2;

/// The largest profile that is read.
pub const MAX_BYTES: usize = 64 * 1024;

/// Folder of the profile that all users of a machine share, which only root writes.
pub const MACHINE_DIRECTORY: &str = "/etc/cachewise";

/// A profile's text, checked for form, damage and completeness; nothing is copied out of it.
///
/// ```
/// use cachewise::profile::{ProfileError, ProfileText};
///
/// let damaged = b"cachewise-profile 2\ncpu AuthenticAMD 25 one 1 EPYC\n";
/// let error = ProfileText::parse(damaged).unwrap_err();
/// assert_eq!(error.to_string(), r#"line 2, model: expected a whole number, found "one""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProfileText<'a> {
    body: &'a [u8],
    /// Line, signature and brand string.
    cpu: (u32, Signature, &'a str),
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
        if bytes.len() > MAX_BYTES {
            let (expected, found) =
                (format_args!("at most {MAX_BYTES} bytes"), format_args!("more"));
            return Err(ProfileError::new(None, "size of the file", expected, found));
        }
        let mut lines = Lines { rest: bytes, number: 0 };
        version(lines.next().map_or(bytes, |(_, text)| text))?;
        let (mut cpu, mut caches, mut record, mut written) = (None, None, None, None);
        // By row, the size that the next range starts at; `None` behind `max`.
        let mut next = [Some(FIRST_SIZE); ROWS];
        let (body, mut end) = loop {
            let body = bytes.len() - lines.rest.len();
            let number = lines.number;
            let Some((line, text)) = lines.next() else {
                let found = format_args!("the end of the file");
                return Err(ProfileError::new(
                    Some(number),
                    "end",
                    format_args!("an end line"),
                    found,
                ));
            };
            let (key, rest) = split_key(text);
            let mut fields = Fields { line, rest: Some(rest) };
            match key {
                b"cpu" => {
                    let (signature, name) = fields.cpu()?;
                    fields.once(&mut cpu, (line, signature, name), "cpu")?;
                }
                b"caches" => {
                    let found = fields.caches()?;
                    fields.once(&mut caches, found, "caches")?;
                }
                b"record" => {
                    let found = fields.record()?;
                    fields.once(&mut record, found, "record")?;
                }
                b"written" => {
                    let found = fields.text("written")?;
                    fields.once(&mut written, found, "written")?;
                }
                b"decide" => {
                    let DecisionLine { operation, reuse, from, to, .. } = fields.decision()?;
                    if let Some(next) = next.get_mut(row(operation, reuse)) {
                        if *next != Some(from) {
                            return Err(fields.out_of_order(from, *next));
                        }
                        *next = to.checked_add(1);
                    }
                }
                // Profiles of 0.1 and 0.2 name entry stubs, threads and programs: nothing follows these lines any more.
                b"note" | b"entry" | b"parallel" | b"program" => drop(fields.text("text")?),
                b"end" => break (bytes.get(..body).unwrap_or(&[]), fields),
                _ => {
                    let expected = "cpu, caches, record, written, decide, note or end";
                    return Err(fields.error("key", expected, key));
                }
            }
        };
        end.ends(body, lines.rest)?;
        let cpu = cpu.ok_or(end.number_of("cpu", format_args!("one"), format_args!("none")))?;
        let caches =
            caches.ok_or(end.number_of("caches", format_args!("one"), format_args!("none")))?;
        for operation in OPERATIONS {
            for &reuse in hints(operation) {
                if let Some(Some(next)) =
                    next.get(row(operation, reuse)).filter(|next| **next != Some(FIRST_SIZE))
                {
                    let found = format_args!("no decision for {operation} {reuse} from {next} on");
                    return Err(end.number_of("to", format_args!("max"), found));
                }
            }
        }
        Ok(ProfileText { body, cpu, caches, record, written: written.unwrap_or("") })
    }

    /// The decisions of a text whose form is known to be right.
    pub(crate) fn trusted(body: &'a [u8], signature: Signature, caches: Caches) -> ProfileText<'a> {
        ProfileText { body, cpu: (0, signature, ""), caches, record: None, written: "" }
    }

    /// The CPU it was tuned on.
    #[must_use]
    pub fn signature(&self) -> Signature {
        self.cpu.1
    }

    /// That CPU's brand string.
    #[must_use]
    pub fn cpu_name(&self) -> &'a str {
        self.cpu.2
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

    /// Rest of each line behind its first word, of the lines that begin with that word.
    fn lines(&self, key: &'static [u8]) -> impl Iterator<Item = Fields<'a>> + use<'a> {
        Lines { rest: self.body, number: 0 }.filter_map(move |(line, text)| {
            let (found, rest) = split_key(text);
            (found == key).then_some(Fields { line, rest: Some(rest) })
        })
    }

    /// The free text of the `note` lines, in order.
    pub fn notes(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.lines(b"note").filter_map(|mut fields| fields.text("text").ok())
    }

    /// The decisions, in the file's order: ascending and contiguous per operation and hint, from
    /// [`FIRST_SIZE`] to [`MAX_SIZE`].
    pub fn decisions(&self) -> impl Iterator<Item = DecisionLine<'a>> + use<'a> {
        self.lines(b"decide").filter_map(|mut fields| fields.decision().ok())
    }

    /// Checks that a CPU with this signature and these features can follow it.
    ///
    /// # Errors
    /// Another CPU model, or a kernel that is unknown, of another operation, or not deployable. What is
    /// beyond this CPU alone, or its hypervisor, is no error: what else the profile says is followed.
    pub fn check(&self, signature: &Signature, available: Features) -> Result<(), ProfileError> {
        match self.check_whole(signature, available) {
            Err(error) if error.is_beyond_this_cpu() => {
                let mut errors = self.refusals(available);
                errors.find(|error| !error.is_beyond_this_cpu()).map_or(Ok(()), Err)
            }
            other => other,
        }
    }

    /// [`check`](ProfileText::check), with what is beyond this CPU as an error.
    pub(crate) fn check_whole(
        &self,
        signature: &Signature,
        available: Features,
    ) -> Result<(), ProfileError> {
        let (line, tuned_on, _) = &self.cpu;
        if !tuned_on.same_model(signature) {
            let (expected, found) =
                (format_args!("\"{signature}\" (this CPU)"), format_args!("\"{tuned_on}\""));
            return Err(ProfileError::new(Some(*line), "cpu", expected, found));
        }
        self.refusals(available).next().map_or(Ok(()), Err)
    }

    /// Why lines that name a kernel cannot be followed.
    fn refusals(&self, available: Features) -> impl Iterator<Item = ProfileError> {
        self.decisions().filter_map(move |decision| decision.choice(available).err())
    }
}

/// Checks the first line.
fn version(line: &[u8]) -> Result<(), ProfileError> {
    let text = str::from_utf8(line).ok().and_then(|text| text.strip_prefix("cachewise-profile "));
    match text.and_then(whole_number) {
        Some(version) if (u64::from(EARLIEST)..=u64::from(VERSION)).contains(&version) => Ok(()),
        Some(found) if found > u64::from(VERSION) => {
            let expected = format_args!("{VERSION} (a newer cachewise wrote it)");
            Err(ProfileError::new(Some(1), "version", expected, format_args!("{found}")))
        }
        _ => {
            let fields = Fields { line: 1, rest: None };
            Err(fields.error("first line", "\"cachewise-profile 3\"", line))
        }
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
/// An error of the writer.
pub fn write_file_name(out: &mut dyn Write, signature: &Signature) -> fmt::Result {
    let Signature { vendor, family, model, stepping } = signature;
    write!(out, "{vendor}-{family}-{model}-{stepping}.profile")
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

/// Digits only (`str::parse` would take a sign), one way to write each number.
fn whole_number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = canonical && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// `fnv1a64:` and sixteen lower-case hexadecimal digits.
fn checksum(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("fnv1a64:")?;
    let plain =
        digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// The form of a checksum.
const CHECKSUM: &str = "fnv1a64: and 16 hexadecimal digits";

/// The fields of one line behind its first word, separated by single spaces.
struct Fields<'a> {
    line: u32,
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn error(&self, field: &'static str, expected: &str, found: &[u8]) -> ProfileError {
        let found = crate::cpu::Text::<60>::from_bytes(found);
        self.number_of(field, format_args!("{expected}"), format_args!("\"{found}\""))
    }

    fn number_of(
        &self,
        field: &'static str,
        expected: fmt::Arguments<'_>,
        found: fmt::Arguments<'_>,
    ) -> ProfileError {
        ProfileError::new(Some(self.line), field, expected, found)
    }

    fn out_of_order(&self, from: u64, next: Option<u64>) -> ProfileError {
        match next {
            Some(next) => self.number_of("from", format_args!("{next}"), format_args!("{from}")),
            None => {
                self.number_of("from", format_args!("no range after max"), format_args!("{from}"))
            }
        }
    }

    /// Keeps the value of a line that may stand once.
    fn once<T>(
        &self,
        place: &mut Option<T>,
        value: T,
        key: &'static str,
    ) -> Result<(), ProfileError> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.number_of(key, format_args!("one"), format_args!("a second one"))),
        }
    }

    fn parse<T>(
        &mut self,
        field: &'static str,
        expected: &str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, ProfileError> {
        let (word, rest) = split_key(self.rest.unwrap_or(&[]));
        self.rest = Some(rest).filter(|rest| !rest.is_empty());
        let text = str::from_utf8(word).ok().filter(|text| !text.is_empty());
        text.and_then(parse).ok_or_else(|| self.error(field, expected, word))
    }

    fn number<T: TryFrom<u64>>(&mut self, field: &'static str) -> Result<T, ProfileError> {
        self.parse(field, "a whole number", |text| T::try_from(whole_number(text)?).ok())
    }

    fn kernel(&mut self) -> Result<&'a str, ProfileError> {
        self.parse("kernel", "a kernel's name", |text| {
            text.chars().all(|c| c.is_ascii_graphic()).then_some(text)
        })
    }

    /// The rest of the line: UTF-8 without control characters.
    fn text(&mut self, field: &'static str) -> Result<&'a str, ProfileError> {
        let rest = self.rest.take().unwrap_or(&[]);
        let text = str::from_utf8(rest).ok().filter(|text| !text.chars().any(char::is_control));
        text.ok_or_else(|| self.error(field, "UTF-8 text on one line", rest))
    }

    /// Refuses whatever is left of the line.
    fn end(&self) -> Result<(), ProfileError> {
        self.rest.map_or(Ok(()), |rest| Err(self.error("end of the line", "nothing more", rest)))
    }

    fn cpu(&mut self) -> Result<(Signature, &'a str), ProfileError> {
        let expected = "up to 12 letters, digits, dots or underscores";
        let vendor = self.parse("vendor", expected, |text| {
            (Signature::new(text, 0, 0, 0).vendor.as_str() == text).then_some(text)
        })?;
        let family = self.number("family")?;
        let model = self.number("model")?;
        let stepping = self.number("stepping")?;
        Ok((Signature::new(vendor, family, model, stepping), self.text("name")?))
    }

    fn caches(&mut self) -> Result<Caches, ProfileError> {
        let l1d = self.number("L1d")?;
        let l2 = self.number("L2")?;
        let llc = self.number("LLC")?;
        let clamped = self.rest.is_some();
        if clamped {
            let assumed = |text: &str| (text == "assumed").then_some(());
            self.parse("fourth field", "assumed, or nothing", assumed)?;
        }
        self.end()?;
        Ok(Caches { l1d, l2, llc, clamped })
    }

    fn record(&mut self) -> Result<(&'a str, u64), ProfileError> {
        let text = self.text("record")?;
        // The file's name may hold spaces, so the checksum is what follows the last one.
        let (name, sum) = text.rsplit_once(' ').unwrap_or((text, ""));
        let sum = checksum(sum).ok_or_else(|| self.error("checksum", CHECKSUM, sum.as_bytes()))?;
        if name.is_empty() {
            return Err(self.error("record", "a file's name", b""));
        }
        Ok((name, sum))
    }

    fn decision(&mut self) -> Result<DecisionLine<'a>, ProfileError> {
        let expected = "copy, move, fill, zero, compare or equal";
        let operation = self.parse("operation", expected, |text| {
            Operation::from_name(text).filter(|operation| OPERATIONS.contains(operation))
        })?;
        let one = hints(operation).len() == 1;
        let reuse =
            self.parse("reuse", if one { "unknown" } else { "unknown, soon or never" }, |text| {
                Reuse::from_name(text).filter(|reuse| hints(operation).contains(reuse))
            })?;
        let from = self.parse("from", "a whole number of bytes", whole_number)?;
        let to = self.parse("to", "a whole number of bytes or max, not below from", |text| {
            let to = if text == "max" { Some(MAX_SIZE) } else { whole_number(text) };
            to.filter(|to| *to >= from)
        })?;
        let kernel = self.kernel()?;
        let has_nearest = kernel == LIBC && self.rest.is_some();
        let nearest = if has_nearest { Some(self.kernel()?) } else { None };
        self.end()?;
        Ok(DecisionLine { line: self.line, operation, reuse, from, to, kernel, nearest })
    }

    /// Checks the `end` line: what it says of the `body`, and that it is the last.
    fn ends(&mut self, body: &[u8], behind: &[u8]) -> Result<(), ProfileError> {
        let count: u64 = self.number("number of lines")?;
        let found = self.parse("checksum", CHECKSUM, checksum)?;
        self.end()?;
        if !behind.is_empty() {
            let line = Fields { line: self.line + 1, rest: None };
            return Err(line.error("line", "nothing after the end line", behind));
        }
        let (lines, sum) = (self.line - 1, fnv1a64(body));
        if count != u64::from(lines) {
            let field = "number of lines";
            return Err(self.number_of(field, format_args!("{lines}"), format_args!("{count}")));
        }
        if found != sum {
            let expected = format_args!("fnv1a64:{sum:016x}");
            return Err(self.number_of("checksum", expected, format_args!("fnv1a64:{found:016x}")));
        }
        Ok(())
    }
}
