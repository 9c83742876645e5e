//! Proofs of residency by probes.

use crate::latency::Latencies;
use crate::level::Level;
use serde::{Deserialize, Serialize};

/// Result of a proof that lines were where the experiment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProofVerdict {
    /// Probes took as long as that level takes.
    Proved,
    /// This machine's levels cannot be told apart by time, or there was nothing to compare with.
    Doubtful,
    /// Probes took as long as another level takes.
    Failed,
}

/// The outcome of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    pub level: Level,
    pub verdict: ProofVerdict,
    #[serde(with = "crate::rounded")]
    pub nanoseconds_per_line: f64,
    /// The range that counts as this level, in nanoseconds.
    #[serde(with = "crate::rounded")]
    pub expected: (f64, f64),
    /// One line for a reader.
    pub text: String,
}

impl Proof {
    /// Judges a probe's time per line. Pure.
    pub(crate) fn judge(level: Level, found: f64, latencies: &Latencies, has_l3: bool) -> Proof {
        let expected = latencies.expected(level, has_l3);
        let inside = (expected.0..=expected.1).contains(&found);
        let blurred = latencies.blurred_with(level, has_l3);
        let (verdict, says) = match (blurred, inside) {
            (Some(_), _) => (ProofVerdict::Doubtful, "doubtful"),
            (None, true) => (ProofVerdict::Proved, "proved"),
            (None, false) => (ProofVerdict::Failed, "not proved"),
        };
        let why = match blurred {
            Some(other) => format!("but {level} and {other} take the same time here"),
            None => format!("expected {:.1} to {:.1} ns", expected.0, expected.1),
        };
        let text = format!("{level} {says}: {found:.1} ns a line, {why}");
        Proof { level, verdict, nanoseconds_per_line: found, expected, text }
    }

    /// The proof that says least in favour of the claim: the worst verdict, the median time.
    /// `None` for no proofs.
    pub(crate) fn worst(proofs: &[Proof]) -> Option<Proof> {
        let worst = proofs.iter().max_by_key(|proof| proof.verdict)?;
        let held = proofs.iter().filter(|proof| proof.verdict == ProofVerdict::Proved).count();
        let mut summary = worst.clone();
        if proofs.len() > 1 {
            summary.text.push_str(&format!(" ({held} of {} probes proved)", proofs.len()));
        }
        if worst.verdict == ProofVerdict::Proved {
            let times: Vec<f64> = proofs.iter().map(|proof| proof.nanoseconds_per_line).collect();
            summary.nanoseconds_per_line = crate::stats::median(&times);
        }
        Some(summary)
    }
}
