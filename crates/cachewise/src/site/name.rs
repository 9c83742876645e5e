//! A site's name.

/// The longest name, in bytes.
pub const MAX_NAME: usize = 64;

/// A site's name, and the number it is found by.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    pub(super) bytes: &'a [u8],
    #[cfg(all(feature = "os", target_os = "linux"))]
    pub(super) number: u64,
}

impl<'a> Name<'a> {
    /// FNV-1a, 64 bits, of the name: <http://www.isthe.com/chongo/tech/comp/fnv/>.
    pub const fn number(bytes: &[u8]) -> u64 {
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut at = 0;
        while at < bytes.len() {
            sum = (sum ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        sum
    }

    /// A name; nobody looks whether it is a good one.
    pub const fn new(bytes: &'a [u8]) -> Name<'a> {
        Name::with_number(bytes, Name::number(bytes))
    }

    /// A name whose number is known.
    pub const fn with_number(bytes: &'a [u8], number: u64) -> Name<'a> {
        let _ = number;
        Name {
            bytes,
            #[cfg(all(feature = "os", target_os = "linux"))]
            number,
        }
    }
}
