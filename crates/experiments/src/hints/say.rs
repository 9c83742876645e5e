//! What the rows of `hints` amount to: whether the hints keep their promise. Pure.

use crate::words::*;

/// Whether one sample is less than the other of the same round: two standard deviations of a coin's tosses,
/// the sign test. What a bystander loses may be next to nothing, and below, so that a ratio would mean
/// little. Rounds in which the two are equal say nothing.
fn promise(less: &[f64], more: &[f64]) -> Verdict {
    let below = less.iter().zip(more).filter(|(less, more)| less < more).count() as f64;
    let above = less.iter().zip(more).filter(|(less, more)| less > more).count() as f64;
    let (half, spread) = ((below + above) / 2.0, (below + above).sqrt());
    if below - half > spread {
        Verdict::Faster
    } else if half - below > spread {
        Verdict::Slower
    } else {
        Verdict::CannotTell
    }
}

/// One sentence per operation and size.
pub fn verdicts(rows: &[Row], decisions: &[Decision]) -> Vec<String> {
    let cells = groups(rows, |row: &Row| (row.cell.operation.clone(), row.cell.size));
    let sentence = |((operation, size), of_it): &((String, u64), Vec<&Row>)| {
        let kernel = |reuse: &str| {
            let of_it = decisions.iter().find(|decision| {
                decision.operation == *operation
                    && decision.reuse == reuse
                    && decision.from <= *size
                    && decision.to.is_none_or(|to| *size <= to)
            });
            of_it.map_or("", |decision| decision.kernel.as_str())
        };
        let what = format!("{operation} of {}", bytes(*size));
        verdict(&what, of_it, kernel("soon"), kernel("never"))
    };
    cells.iter().filter_map(sentence).collect()
}

/// None where a state was not measured.
fn verdict(what: &str, rows: &[&Row], soon_kernel: &str, never_kernel: &str) -> Option<String> {
    let row = |state: &str, hint: &str| {
        let wanted = format!("cachewise {hint}");
        rows.iter().find(|row| row.cell.state == state && row.candidate == wanted)
    };
    let (read_soon, read_never) = (row("read", "soon")?, row("read", "never")?);
    let (lost_soon, lost_never) = (row("beside", "soon")?, row("beside", "never")?);
    if soon_kernel == never_kernel && !soon_kernel.is_empty() {
        return Some(format!(
            "{what}: soon and never are the same kernel here ({soon_kernel}): there is nothing to compare."
        ));
    }
    // What a bystander loses is a difference, and where noise is larger it comes out below nothing.
    let micros = |samples: &[f64]| match stats::median(samples) {
        time if time.is_nan() => "a time that was not measured".to_owned(),
        time if time <= 0.0 => "nothing that can be measured".to_owned(),
        time => format!("{:.1} us", time / 1000.0),
    };
    let reader = words(
        promise(&read_soon.reader_ns, &read_never.reader_ns),
        [
            "soon leaves the destination cached",
            "soon does NOT leave the destination cached",
            "cannot tell whether soon leaves the destination cached",
        ],
    );
    let bystander = words(
        promise(&lost_never.bystander_ns, &lost_soon.bystander_ns),
        [
            "never leaves the bystander cached",
            "never does NOT leave the bystander cached",
            "cannot tell whether never leaves the bystander cached",
        ],
    );
    let by = |kernel: &str| if kernel.is_empty() { String::new() } else { format!(" ({kernel})") };
    let [soon, never] = [read_soon, read_never].map(|row| micros(&row.reader_ns));
    let [by_soon, by_never] = [soon_kernel, never_kernel].map(by);
    let [lost_soon, lost_never] = [lost_soon, lost_never].map(|row| micros(&row.bystander_ns));
    Some(format!(
        "{what}: {reader}: its reader takes {soon} after soon{by_soon} and {never} after \
         never{by_never}; {bystander}: the bystander loses {lost_never} after never and {lost_soon} \
         after soon."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{cell, row};

    #[test]
    fn rounds_that_disagree_tell_nothing_and_neither_does_one_hint() {
        let mixed: Vec<f64> = (0..16).map(|round| f64::from(round % 2) * 2.0).collect();
        assert_eq!(promise(&[1.0; 16], &mixed), Verdict::CannotTell);
        let alone = row(&cell("copy", 1 << 20, "read"), "cachewise soon", 1.0);
        assert!(verdicts(&[alone], &[]).is_empty());
    }
}
