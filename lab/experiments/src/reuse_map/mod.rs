//! `reuse-map`.

mod hints;
mod measure;
mod table;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "reuse-map",
    formerly: &["hints"],
    about: "non-temporal against temporal stores, by size and by how much is read how late; what hints do",
    seeds: &["000.14", "001.6"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred",
    tables: table::tables,
    figures: || [measure::figures(), hints::figures()].concat(),
    run: Some(|setting| {
        measure::run(setting)?;
        let options = setting.options;
        // Whole libraries, whose buffers are warm.
        let is_map = options.classic || options.kernels.is_some() || !options.placements.is_empty();
        if is_map { Ok(()) } else { hints::run(setting) }
    }),
    ..PLAIN
};
