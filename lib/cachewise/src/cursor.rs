//! Text written into a buffer that somebody else owns.

use core::fmt;

/// Writes until the buffer is full; what does not fit is left out and reported as an error.
#[derive(Debug)]
pub struct Cursor<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    /// Begins at the start of the buffer.
    pub fn new(buffer: &'a mut [u8]) -> Cursor<'a> {
        Cursor { buffer, length: 0 }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// Not all of them fit.
    pub fn push(&mut self, bytes: &[u8]) -> fmt::Result {
        let free = self.buffer.get_mut(self.length..).unwrap_or(&mut []);
        let fits = bytes.len().min(free.len());
        for (place, byte) in free.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.length += fits;
        if fits == bytes.len() { Ok(()) } else { Err(fmt::Error) }
    }

    /// The bytes written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or(&[])
    }
}

impl fmt::Write for Cursor<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}
