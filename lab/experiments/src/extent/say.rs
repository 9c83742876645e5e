//! What the rows of `extent` amount to. Pure.

use crate::words::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let (mut headline, mut sentences) = (Vec::new(), Vec::new());
    for ((operation, size), of_it) in groups(rows, operation_and_size) {
        let is_whole = |row: &&Row| axis(row, CHUNK) == size as f64;
        let Some(best) = fastest(of_it.iter().copied().filter(is_whole)) else { continue };
        for (candidate, ways) in by_candidate(&of_it) {
            let (whole, pieces): (Vec<&Row>, Vec<&Row>) = ways.iter().copied().partition(is_whole);
            let (Some(one), 1..) = (whole.first(), pieces.len()) else { continue };
            let part = |row: &&Row| {
                let pieces = bytes(axis(row, CHUNK) as u64);
                let order = if axis(row, SHUFFLED) == 1.0 { " shuffled" } else { "" };
                format!(
                    "{pieces}{order} {}",
                    told(
                        versus(row, one),
                        ["takes {} less", "takes {} longer", "no measurable difference"]
                    )
                )
            };
            let sentence = format!(
                "{operation} with {candidate}: one call of {} {:.3} GB/s; by {}",
                bytes(size),
                one.gbps(),
                joined(pieces.iter().map(part), ", by ")
            );
            if candidate == best.candidate {
                let pages = ways.iter().filter(|row| axis(row, CHUNK) == PAGE_SIZE as f64);
                let slower = pages.map(|row| says(versus(row, one)) == Verdict::Slower);
                let answer = match slower.reduce(|one, other| one || other) {
                    None => {
                        "cannot tell whether one contiguous call pays, single pages were not measured"
                    }
                    Some(true) => "one contiguous call pays",
                    Some(false) => "one contiguous call brings no measurable benefit",
                };
                headline.push(format!("{operation}: {answer} (fastest: {sentence})"));
            }
            sentences.push(sentence);
        }
    }
    [headline, sentences].concat()
}
