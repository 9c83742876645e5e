//! Which kernels the library has written out for itself, for sizes where a look-up and an indirect
//! jump cost a tenth of the operation (`entry.rs` of crate `cachewise`).

use super::vector::Ymm;
use crate::isa::Features;
use crate::table::Operation;

/// What the CPU must offer for the library's own code.
pub const REQUIRES: Features = Ymm::COMPARE_REQUIRES;

/// The kernel whose work the library's own code does.
#[must_use]
pub const fn continues(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy | Operation::CopyPages => "copy.avx",
        Operation::Move => "move.avx",
        Operation::Fill => "fill.avx",
        Operation::Zero | Operation::ZeroPages => "zero.avx",
        Operation::Compare => "compare.avx2",
        Operation::Equal => "equal.avx2",
    }
}
