//! Text in a buffer that was there before: nothing here allocates.

use core::fmt;

/// Text in a buffer; what does not fit is dropped.
pub(crate) struct Text<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Text<'a> {
        Text { buffer, length: 0 }
    }

    pub(crate) fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or(&[])
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let free = self.buffer.get_mut(self.length..).unwrap_or(&mut []);
        let taken = bytes.len().min(free.len());
        if let (Some(to), Some(from)) = (free.get_mut(..taken), bytes.get(..taken)) {
            to.copy_from_slice(from);
        }
        self.length += taken;
    }

    /// Ends with these bytes, in place of others where there is no room.
    pub(crate) fn end_with(&mut self, bytes: &[u8]) {
        self.length = self.length.min(self.buffer.len().saturating_sub(bytes.len()));
        if let Some(end) = self.buffer.get_mut(self.length..self.length + bytes.len()) {
            end.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
