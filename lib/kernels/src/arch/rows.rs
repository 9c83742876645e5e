//! Rows as a file writes them down.

use crate::isa::Features;
use crate::kernel::{Function, Kernel, Prefetch, RegisterClass, StoreKind};

/// A file's rows: the name, a row with the columns that it shares, the routine, columns of its own, and a description.
macro_rules! kernels {
    ($($name:literal like $row:expr, $operation:ident($function:expr)
        $({ $($column:ident: $value:expr),+ })?, $about:expr;)*) => {
        &[$(crate::kernel::Kernel {
            name: $name,
            about: $about,
            function: crate::kernel::Function::$operation($function),
            $($($column: $value,)+)?
            ..$row
        }),*]
    };
}

/// A routine for rows that have none yet.
unsafe extern "C" fn nothing(dst: *mut u8, _src: *const u8, _n: usize) -> *mut u8 {
    dst
}

/// The columns that a technique's rows share.
pub(super) const fn row(class: RegisterClass, requires: Features, grouping: u8) -> Kernel {
    Kernel {
        name: "",
        requires,
        store: StoreKind::Temporal,
        prefetch: Prefetch::None,
        grouping,
        registers: class,
        deploy: true,
        aliases: &[],
        about: "",
        function: Function::Copy(nothing),
    }
}

/// All rows of the parts.
pub(crate) const fn join<const N: usize>(parts: &[&[Kernel]]) -> [Kernel; N] {
    let mut rows = [row(RegisterClass::Gpr, Features::NONE, 1); N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            rows[at] = parts[part][row];
            at += 1;
            row += 1;
        }
        part += 1;
    }
    rows
}

/// The number of rows in all parts.
pub(crate) const fn count(parts: &[&[Kernel]]) -> usize {
    let (mut part, mut total) = (0, 0);
    while part < parts.len() {
        total += parts[part].len();
        part += 1;
    }
    total
}
