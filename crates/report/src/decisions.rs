//! What a tuning decided, as its record has it: a table.

use crate::Table;
use crate::cost::sane;
use crate::units::{bytes, gain};
use cachewise_measure::Decision;

/// The decisions, and the speed against the reference that was shown for each.
#[must_use]
pub fn table(decisions: &[Decision], reference: &str) -> Table {
    let mut table = Table::new(
        format!("Decisions, and their speed against {reference}"),
        &["operation", "reuse", ">from", ">to", "kernel", ">speed", "why"],
    );
    let mut before = ("", "");
    for decision in decisions {
        let here = (decision.operation.as_str(), decision.reuse.as_str());
        let operation = if here.0 == before.0 { "" } else { here.0 };
        let reuse = if here == before { "" } else { here.1 };
        before = here;
        let speed = decision.ratio.and_then(sane).map_or("-".to_owned(), |ratio| {
            let bare = |ratio: f64| gain(ratio).trim_end_matches(" %").to_owned();
            format!("{} ({} .. {})", gain(ratio.median), bare(ratio.high), bare(ratio.low))
        });
        table.push(vec![
            operation.to_owned(),
            reuse.to_owned(),
            bytes(decision.from),
            decision.to.map_or("and up".to_owned(), |to| bytes(to + 1)),
            decision.kernel.clone(),
            speed,
            decision.why.clone().unwrap_or_default(),
        ]);
    }
    if decisions.iter().all(|decision| decision.why.is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table.remarks.push(
        "speed: +100 % is twice as fast; in brackets the 95 % interval; each range ends below `to`"
            .to_owned(),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::PairedRatio;

    #[test]
    fn ranges_read_as_a_person_would_say_them() {
        let ratio = |low, median, high| Some(PairedRatio { median, low, high, rounds: 15 });
        let decision = |reuse: &str, from, to, ratio| Decision {
            operation: "copy".into(),
            reuse: reuse.into(),
            from,
            to,
            kernel: "copy.avx".into(),
            ratio,
            why: None,
        };
        let decisions = [
            decision("unknown", 256, Some(4095), ratio(0.4, 0.5, 0.8)),
            // An interval that ends before it begins is none.
            decision("unknown", 4096, None, ratio(1.4, 0.5, -0.8)),
            decision("soon", 256, None, None),
        ];
        insta::assert_snapshot!(table(&decisions, "libc").terminal(None), @r"
        Decisions, and their speed against libc
        operation  reuse     from      to  kernel                   speed
        copy       unknown  256 B   4 KiB  copy.avx  +100 % (+25 .. +150)
                            4 KiB  and up  copy.avx                     -
                   soon     256 B  and up  copy.avx                     -
          speed: +100 % is twice as fast; in brackets the 95 % interval; each range ends below `to`
        ");
    }
}
