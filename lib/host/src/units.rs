//! Sizes, rates and times in text, and sizes read from it.

/// Bytes with a binary prefix, rounded to two decimals: `256 B`, `4 KiB`, `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut value = n as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {}", UNITS[unit])
}

/// Bytes as [`bytes`] writes them, and a plain number of bytes where two decimals are not exact: `2111 B`, where [`bytes`] rounds to `2.06 KiB`.
pub fn exact_bytes(n: u64) -> String {
    let text = bytes(n);
    if parse_bytes(&text) == Ok(n as usize) { text } else { format!("{n} B") }
}

/// A number of things: `1 thread`, `2 launches`, `3 processes`.
pub fn counted(number: usize, what: &str) -> String {
    let sibilant = ["s", "x", "ch", "sh"].iter().any(|end| what.ends_with(end));
    let ending = if sibilant { "es" } else { "s" };
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}{ending}") }
}

/// The inverse of [`bytes`], also without space, `i` or `B`: `32M`, `4KiB`, `1500`. Prefixes are
/// binary.
///
/// # Errors
/// Says what was found and what is accepted where `text` is no whole number of bytes up to 4 PiB.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let refuse = || {
        format!("expected a number of bytes with an optional K, M, G or T: 32M, found \"{text}\"")
    };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b')
    {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(refuse()),
    };
    let value: f64 = number.parse().map_err(|_| refuse())?;
    let bytes = value * (1u64 << shift) as f64;
    if bytes.fract() != 0.0 || bytes > (1u64 << 52) as f64 {
        return Err(refuse());
    }
    Ok(bytes as usize)
}

/// Bytes per second in GB/s (10^9), three significant digits.
pub fn gigabytes_per_second(bytes_per_call: u64, nanoseconds: f64) -> String {
    if nanoseconds <= 0.0 {
        return "-".to_owned();
    }
    significant(bytes_per_call as f64 / nanoseconds)
}

/// A time with a unit that keeps it readable: `17 ns`, `1.3 us`, `24 ms`, `3.1 s`.
pub fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds.abs() {
        n if n < 1e3 => (nanoseconds, "ns"),
        n if n < 1e6 => (nanoseconds / 1e3, "us"),
        n if n < 1e9 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// Three significant digits, never in exponent form.
pub fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A gain in per cent from a time ratio (candidate over reference): 0.5 is `+100 %`.
pub fn gain(ratio: f64) -> String {
    // Adding 0 makes a negative zero a positive one.
    format!("{:+.0} %", ((1.0 / ratio - 1.0) * 100.0).round() + 0.0)
}
