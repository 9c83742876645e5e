//! The experiments, and the tuner that turns their records into a profile
