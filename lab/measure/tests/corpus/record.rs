//! A record of any bytes: read, or refused in one line. The fuzz target and `cargo test` both run this.

use cachewise_measure::record::read_text;

pub fn replay(bytes: &[u8]) {
    if let Err(error) = read_text("record", &String::from_utf8_lossy(bytes)) {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}
