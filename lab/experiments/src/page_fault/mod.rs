//! `page-fault`.

mod measure;
mod table;

use crate::prelude::*;

/// States of memory made resident ahead: a mapping that is new, and one whose pages were given back.
const PREFAULTED: [&str; 2] = ["fresh", "recycled"];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-fault",
    formerly: &["prefault"],
    about: "zeroed pages: by page fault, populated, by calloc, from the page pool; ahead, by threads",
    seeds: &["003.1-15", "003.17-18"],
    operations: &[Operation::Zero],
    takes: &["--size"],
    classic: "256 MiB once and ten times over, one thread and two",
    tables: table::tables,
    figures: measure::figures,
    today: &[KERNEL_FAULT],
    serves: Serves::Pool,
    run: Some(measure::run),
    ..PLAIN
};
