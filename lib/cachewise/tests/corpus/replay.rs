//! A profile of any bytes: refused, or read, written and read again as the same. The fuzz target
//! and `cargo test` both run this.

use cachewise::profile::{Profile, fnv1a64};

/// Inputs as they are, and with the end that belongs to them, so that what comes before is looked at.
pub fn replay(bytes: &[u8]) {
    check(bytes);
    let mut body: Vec<u8> = match bytes.windows(5).rposition(|five| five == b"\nend ") {
        Some(end) => bytes[..=end].to_vec(),
        None => bytes.to_vec(),
    };
    if body.last() != Some(&b'\n') {
        body.push(b'\n');
    }
    let lines = body.iter().filter(|byte| **byte == b'\n').count();
    let end = format!("end {lines} fnv1a64:{:016x}\n", fnv1a64(&body));
    body.extend(end.bytes());
    check(&body);
}

fn check(bytes: &[u8]) {
    match Profile::parse(bytes) {
        Ok(profile) => {
            let text = profile.to_text();
            let again = Profile::parse(text.as_bytes()).expect("what was written");
            assert_eq!(again.to_text(), text);
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
