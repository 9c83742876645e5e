//! A program's section of any bytes: refused, or read, and its sites written and read again as the same.
//! The fuzz target and `cargo test` both run this.

use cachewise_learn::section::{Section, write_end};

/// As they are, and with the end that belongs to them, so that what comes before is looked at.
pub fn replay(bytes: &[u8]) {
    check(bytes);
    let _ = Section::sealed(bytes);
    let mut body: Vec<u8> = match bytes.windows(5).rposition(|five| five == b"\nend ") {
        Some(end) => bytes[..=end].to_vec(),
        None => bytes.to_vec(),
    };
    if body.last() != Some(&b'\n') {
        body.push(b'\n');
    }
    let mut end = String::new();
    write_end(&mut end, &body).expect("a string takes everything");
    body.extend(end.bytes());
    check(&body);
}

fn check(bytes: &[u8]) {
    let section = match Section::parse(bytes) {
        Ok(section) => section,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    assert!(section.sites().count() <= section.count());
    let _ = section.modules().count();
    for key in ["program", "cpu", "written"] {
        let _ = section.text(key);
    }
    for site in section.outcomes().chain(section.sites()) {
        let mut line = String::new();
        site.write(&mut line).expect("a string takes everything");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
    }
}
