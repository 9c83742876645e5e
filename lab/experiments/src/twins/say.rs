//! What the rows of `twins` amount to. Pure.

use crate::words::*;

/// A change of the loop, and what a document claims of it.
struct Claim {
    /// Index among [`TWINS`].
    change: usize,
    what: &'static str,
    /// Time with the change over that without, as claimed: least and most.
    claimed: (f64, f64),
    said: &'static str,
    /// Whether only operands in memory are meant.
    in_memory: bool,
}

const CLAIMS: [Claim; 4] = [
    Claim {
        change: 1,
        what: "a first instruction at byte 61 of a line",
        claimed: (1.0, 1.02),
        said: "000.6: aligning gains 0-2 %",
        in_memory: false,
    },
    Claim {
        change: 2,
        what: "prefetchnta 320 bytes ahead",
        claimed: (1.0 / 1.1, 1.0 / 1.05),
        said: "000.6: prefetching gains 5-10 %",
        in_memory: true,
    },
    OTHER_WRITES,
    Claim { change: 4, what: "a store a line to other lines", ..OTHER_WRITES },
];

const OTHER_WRITES: Claim = Claim {
    change: 3,
    what: "a store a line to one other word",
    claimed: (1.1, f64::INFINITY),
    said: "002.7: other writes \"destroy performance\"",
    in_memory: true,
};

/// An interval that reaches further than this beyond a claim confirms nothing.
const LOOSE: f64 = 1.1;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let claims = CLAIMS.iter().filter(|_| !rows.is_empty());
    claims.map(|claim| sentence(claim, rows)).collect()
}

fn sentence(claim: &Claim, rows: &[Row]) -> String {
    let suffix = TWINS[claim.change];
    let meant = rows.iter().filter(|row| {
        row.candidate.ends_with(suffix)
            && (!claim.in_memory || row.cell.destination == Some(Level::Dram.into()))
    });
    let (mut holds, mut open) = (0, 0);
    let mut parts = Vec::new();
    for (row, pair) in meant.filter_map(|row| Some((row, row.ratio?))) {
        let (least, most) = claim.claimed;
        let agrees = pair.high >= least && pair.low <= most;
        // What cannot be told from no change confirms a claim that allows for none, if its interval is
        // not so wide that it would hold nearly anything.
        let near = pair.low >= least / LOOSE && pair.high <= most * LOOSE;
        let none = (least..=most).contains(&1.0) && near;
        let told = says(pair).is_different() || none;
        holds += usize::from(agrees && told);
        // An interval that excludes the claim refutes it, whether or not it holds 1.
        open += usize::from(agrees && !told);
        let loop_ = row.candidate.trim_end_matches(suffix);
        parts.push(format!("{loop_}, {} {:.2}", where_is(&row.cell), pair.median));
    }
    let all = parts.len();
    let rest = if open == 0 { String::new() } else { format!(", cannot tell in {open}") };
    let answer = match (holds, open) {
        _ if all == 0 => return format!("{}: not measured ({})", claim.what, claim.said),
        (holds, _) if holds == all => "still true".to_owned(),
        (_, open) if open == all => "cannot tell here".to_owned(),
        (0, _) => format!("no longer true here, in none of {all} cells{rest}"),
        _ => format!("true in {holds} of {all} cells{rest}"),
    };
    format!(
        "{}: {answer} ({}); time over the same loop: {}",
        claim.what,
        claim.said,
        parts.join("; ")
    )
}
