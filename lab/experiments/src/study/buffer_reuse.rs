//! `buffer-reuse`: a destination that the program used a moment ago, a ring's slot or a pool's buffer, against one that lies
//! in the LLC or in memory. Where the best routine differs, a hint about the past would gain what lies between.

use super::{STUDY, Step, measured};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "buffer-reuse",
    about: "copies of 2 to 16 KiB into a buffer that was just used, as a ring's or a pool's, and into one in memory",
    seeds: &["001.10"],
    operations: &[Operation::Copy],
    takes: &["--kernels", "--size"],
    figures: || {
        vec![Figure::curve("Time over libc's, by destination", "size", "ratio").by(&["state"])]
    },
    run: Some(run),
    ..STUDY
};

/// The sizes at which libraries change from one loop to another; the short run has the second and the last.
const SIZES: [usize; 5] = [2 << 10, 3 << 10, 4 << 10, 8 << 10, 16 << 10];

/// Loops that a library may choose from at such sizes.
const LOOPS: &str = "copy.rep.movsb copy.sse2 copy.avx copy.avx512 copy.neon";

fn run(setting: &mut Setting) -> Result {
    let loops = || LOOPS.split(' ').filter_map(find).collect();
    let kernels = asked_or(setting, &[Operation::Copy], loops)?;
    let mut routines = vec![libc_reference(Operation::Copy), library(Operation::Copy)];
    routines.extend(kernels.into_iter().map(Routine::from));
    let own = if setting.options.quick { vec![SIZES[1], SIZES[4]] } else { SIZES.to_vec() };
    let destinations = [
        ("just used", Placement::reused(0)),
        ("in the LLC", Placement::at(Level::Llc, 0)),
        ("in memory", Placement::at(Level::Dram, 0)),
    ];
    let step = |size, (name, destination)| {
        let cell = Cell { destination, ..Cell::reused(name) };
        Step::new(setting.task(Operation::Copy, size, cell), Call::of_all(&routines, true))
    };
    let sizes = setting.sizes_or(own).into_iter();
    let steps = sizes.flat_map(|size| destinations.map(|to| step(size, to))).collect();
    measured(setting, steps)
}
