//! `buffer-reuse`: a destination that the program used a moment ago, a ring's slot or a pool's buffer, against one that lies
//! in the LLC or in memory. Where the best routine differs, a hint about the past would gain what lies between.

use crate::prelude::*;
use cachewise_kernels::find;

/// The sizes at which libraries change from one loop to another.
const SIZES: [usize; 5] = [2 << 10, 3 << 10, 4 << 10, 8 << 10, 16 << 10];

const QUICK_SIZES: [usize; 2] = [3 << 10, 16 << 10];

/// Loops that a library may choose from at such sizes.
const LOOPS: &str = "copy.rep.movsb copy.sse2 copy.avx copy.avx512 copy.neon";

pub(super) fn figures() -> Vec<Figure> {
    vec![Figure::curve("Time over libc's, by destination", "size", "ratio").by(&["state"])]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let loops = || LOOPS.split(' ').filter_map(find).collect();
    let kernels = asked_or(setting, &[Operation::Copy], loops)?;
    let mut routines = vec![libc_reference(Operation::Copy), library(Operation::Copy)];
    routines.extend(kernels.into_iter().map(Routine::from));
    let own: &[usize] = if setting.options.quick { &QUICK_SIZES } else { &SIZES };
    let destinations = [
        ("just used", Placement::reused(0)),
        ("in the LLC", Placement::at(Level::Llc, 0)),
        ("in memory", Placement::at(Level::Dram, 0)),
    ];
    let sizes = setting.sizes_or(own.iter().copied());
    let cells = sizes.into_iter().flat_map(|size| destinations.map(|(name, to)| (size, name, to)));
    setting.through(cells.collect(), alike, |setting, (size, name, destination)| {
        let cell = Cell { destination, ..Cell::reused(name) };
        let task = setting.task(Operation::Copy, size, cell);
        setting.record(&task, &routines, &[])?;
        Ok(format!("{} {name}", bytes(size)))
    })
}
