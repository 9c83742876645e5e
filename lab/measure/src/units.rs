//! How sizes, rates and times are written, and how sizes are read.

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

/// The same, and a plain number of bytes where two decimals are not exact: `2111 B`, where [`bytes`] rounds to `2.06 KiB`.
pub fn exact_bytes(n: u64) -> String {
    let text = bytes(n);
    if parse_bytes(&text) == Ok(n as usize) { text } else { format!("{n} B") }
}

/// A number of things: `1 thread`, `2 launches`.
pub fn counted(number: usize, what: &str) -> String {
    let ending = if what.ends_with("ch") { "es" } else { "s" };
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}{ending}") }
}

/// The inverse of [`bytes`], also without space, `i` or `B`: `32M`, `4KiB`, `1500`. Prefixes are
/// binary.
///
/// # Errors
/// A sentence that says what was found and what is accepted.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let refuse = || {
        format!("found \"{text}\", accepted a number of bytes with an optional K, M, G or T: 32M")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back() {
        for n in [0, 1, 255, 4096, 1 << 20, 3 << 19, 1 << 40] {
            assert_eq!(parse_bytes(&bytes(n)), Ok(n as usize), "{}", bytes(n));
        }
        assert_eq!(parse_bytes("32M"), Ok(32 << 20));
        assert_eq!(parse_bytes("1.5k"), Ok(1536));
        assert_eq!(parse_bytes("1024G"), Ok(1 << 40));
        assert_eq!(parse_bytes("4 KiB"), Ok(4096));
        for (n, text) in [(2111, "2111 B"), (2112, "2112 B"), (4095, "4095 B"), (4096, "4 KiB")] {
            assert_eq!(exact_bytes(n), text);
        }
    }

    #[test]
    fn nonsense_sizes_are_refused_by_name() {
        for text in ["", "12q", "-4", "1.0001", "M", "1e9", "999999999T", "0x10"] {
            let error = parse_bytes(text).expect_err(text);
            assert!(error.starts_with(&format!("found \"{text}\"")), "{error}");
        }
    }

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(time(17.0), "17.0 ns");
        assert_eq!(time(1_300.0), "1.30 us");
        assert_eq!(time(24_000_000.0), "24.0 ms");
        assert_eq!(gigabytes_per_second(4096, 32.0), "128");
        assert_eq!(gigabytes_per_second(4096, 0.0), "-");
        assert_eq!(gain(0.5), "+100 %");
        assert_eq!(gain(1.25), "-20 %");
        assert_eq!(gain(1.0004), "+0 %");
    }
}
