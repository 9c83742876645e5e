//! Honest timing: machine, clock, residency, paired sampling, statistics, records
