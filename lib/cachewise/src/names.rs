//! Names looked up when this is compiled, so that no process compares them at its start. Iterators
//! and comparisons of slices are not for constants yet, hence the loops.

/// Splits a text at the first such byte.
pub(crate) const fn split(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    while at < text.len() {
        if text[at] == byte {
            let (before, behind) = text.split_at(at);
            return Some((before, behind.split_at(1).1));
        }
        at += 1;
    }
    None
}

/// Returns whether they are equal, for what is asked when this is compiled.
pub(crate) const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
