//! A processor by its numbers and names.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// `AuthenticAMD`, `GenuineIntel`, an Arm implementer code, `IBM`; `unknown` otherwise.
    pub vendor: String,
    pub model_name: String,
    /// Family (x86), architecture (Arm), version (POWER); 0 where the notion does not apply.
    pub family: u32,
    /// Model (x86), part number (Arm) or kind of module (POWER).
    pub model: u32,
    /// Stepping (x86) or revision.
    pub stepping: u32,
    /// Features that kernels may require, as [`Features`](cachewise_kernels::Features) prints it.
    pub features: String,
    /// Microcode revision, where the kernel shows it.
    pub microcode: Option<String>,
}
