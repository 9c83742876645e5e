//! `tcp-copies`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-copies",
    about: "TCP over loopback: read, MSG_ZEROCOPY, TCP_ZEROCOPY_RECEIVE and io_uring",
    seeds: &["001.7"],
    operations: &[Operation::Copy],
    classic: "messages of 4k and 256k",
    figures: measure::figures,
    run: measure::run,
};
