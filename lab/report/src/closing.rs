//! The three lines that every measuring verb ends with: whether there is a gain here, whether the run
//! can be trusted, and what to do next.

use crate::cost::{self, WORTHWHILE};
use crate::units::{bytes, gain};
use cachewise_measure::record::groups;
use cachewise_measure::record::names::{LIBC, LIBRARY, SHARED};
use cachewise_measure::{DriftVerdict, ProofVerdict, Row, Verdict, Warning};
use std::fmt;

/// Is there a gain on this machine?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosingAnswer {
    Yes,
    /// No gain worth having, which was shown.
    No,
    CannotTell,
}

impl ClosingAnswer {
    pub const fn name(self) -> &'static str {
        match self {
            ClosingAnswer::Yes => "yes",
            ClosingAnswer::No => "no",
            ClosingAnswer::CannotTell => "cannot tell",
        }
    }
}

/// The beginning of the line that says what to do next.
pub const NEXT: &str = "what next:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Answer to "is there a gain here".
    pub answer: ClosingAnswer,
    /// Reason, in a few words.
    pub because: String,
    pub trust: Trust,
    /// Next step: a command, or why nothing.
    pub next: String,
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "gain here:  {}: {}", self.answer.name(), self.because)?;
        writeln!(f, "trust:      {}", self.trust)?;
        writeln!(f, "{NEXT}  {}", self.next)
    }
}

/// Doubts about a run, worst first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust(Vec<String>);

impl Trust {
    /// By what disturbed the run, and by what its rows say of themselves.
    pub fn of(rows: &[Row], warnings: &[Warning], interrupted: bool) -> Trust {
        let mut doubts = Vec::new();
        if interrupted {
            doubts.push("it was stopped before its end".to_owned());
        }
        let mut count = |doubt: &dyn Fn(&&Row) -> bool, what: &str| {
            let found = rows.iter().filter(doubt).count();
            if found > 0 {
                doubts.push(format!("{found} of {} rows {what}", rows.len()));
            }
        };
        count(&|row| !row.is_measurable(), "could not be measured");
        count(
            &|row| row.proofs.iter().any(|proof| proof.verdict == ProofVerdict::Failed),
            "had data elsewhere than in the cache level they name",
        );
        count(
            &|row| matches!(row.drift, Some(DriftVerdict::Drifting { .. })),
            "drifted: ratios hold, times do not",
        );
        let mut trust = Trust(doubts);
        for warning in warnings {
            trust.doubt(format!("{} ({})", warning.cause, warning.figure));
        }
        trust
    }

    /// One more thing that speaks against the run.
    pub fn doubt(&mut self, why: impl Into<String>) {
        self.0.push(why.into());
    }

    /// The worst of what speaks against it; `None` where nothing does.
    pub fn worst(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("good: nothing disturbed the run"),
            [only] => write!(f, "limited: {only}"),
            [first, rest @ ..] => write!(f, "limited: {first}; and {} more", rest.len()),
        }
    }
}

/// Returns whether anything is faster in these rows than what is done `today`, and what that rests on. Where the
/// library itself was measured, the answer is about the library alone: as a shared library, if it was called as one.
pub fn gain_of(rows: &[Row], today: &[&str]) -> (ClosingAnswer, String) {
    let own = if rows.iter().any(|row| row.candidate == SHARED) { SHARED } else { LIBRARY };
    let is_library = |row: &Row| row.candidate.starts_with(own);
    let about_library = rows.iter().any(is_library);
    // Experiments also compare a routine with itself in another situation: no gain is in that.
    let asked = |row: &&Row| today.contains(&row.reference.as_str());
    let compared = |row: &&Row| {
        row.candidate != row.reference && asked(row) && (!about_library || is_library(row))
    };
    // With each hint the library is another way.
    let cells = groups(rows.iter().filter(compared), |row| {
        (&row.cell, &row.experiment, about_library.then_some(&row.candidate))
    });
    let Some((_, first)) = cells.first() else {
        let others = rows.iter().any(|row| row.candidate != row.reference);
        let why = match others {
            true => "routines were compared with each other, and the first lines say how",
            false => "nothing was compared",
        };
        return (ClosingAnswer::CannotTell, why.to_owned());
    };
    let (reference, all) = (first[0].reference.as_str(), cells.len());
    let who = match reference {
        _ if about_library => "the library",
        LIBC => "some kernel",
        _ => "another way",
    };
    let has = |members: &[&Row], wanted: Verdict| {
        members.iter().any(|row| cost::verdict(row) == Some(wanted))
    };
    let known = |row: &&Row| cost::verdict(row).is_some() || row.dropped;
    // Shown to be slower: everything that was tried there is.
    let slower = |members: &[&Row]| {
        let none = [Verdict::Faster, Verdict::Same, Verdict::Unknown]
            .iter()
            .all(|word| !has(members, *word));
        none && members.iter().all(known)
    };
    let is_told = |row: &&Row| {
        cost::verdict(row).and(cost::ratio(row)).is_some_and(|ratio| ratio.has_interval())
    };
    let told = cells.iter().filter(|(_, members)| members.iter().any(is_told)).count();
    let faster = cells.iter().filter(|(_, members)| has(members, Verdict::Faster)).count();
    let slower = cells.iter().filter(|(_, members)| slower(members)).count();
    let best = cells
        .iter()
        .flat_map(|(_, members)| members)
        .filter(|row| cost::verdict(row) == Some(Verdict::Faster))
        .filter_map(|row| Some((row, cost::ratio(row)?.median)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let counts = format!("faster than {reference} in {faster} of {all} cells, slower in {slower}");
    match best {
        Some((_, ratio)) if ratio > 1.0 - WORTHWHILE => {
            let margin = WORTHWHILE * 100.0;
            (ClosingAnswer::No, format!("{who} is {counts}, nowhere by more than {margin:.0} %"))
        }
        Some((Row { cell, candidate, total_ratio, .. }, ratio)) => {
            let (most, operation, size) = (gain(ratio), &cell.operation, bytes(cell.size));
            let beside = match total_ratio {
                Some(_) => ", what comes after it included",
                None => "",
            };
            let most = format!("at most {most} ({operation} of {size}{beside}, {candidate})");
            (ClosingAnswer::Yes, format!("{who} is {counts}; {most}"))
        }
        None if 2 * slower >= all => (ClosingAnswer::No, format!("{who} is {counts}")),
        None if told == 0 => {
            (ClosingAnswer::CannotTell, format!("none of {all} cells has a verdict"))
        }
        None if slower == 0 => (
            ClosingAnswer::CannotTell,
            format!("no difference to {reference} is larger than the noise in any of {told} cells"),
        ),
        None => (
            ClosingAnswer::CannotTell,
            format!("{who} is shown to be {counts}; cannot tell in the others"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::row;
    use cachewise_measure::PairedRatio;
    use cachewise_measure::record::names::KERNEL_FAULT;

    fn compared(size: u64, name: &str, [low, median, high]: [f64; 3]) -> Row {
        let ratio = Some(PairedRatio { median, low, high, rounds: 15 });
        Row { ratio, total_ratio: None, ..row("copy", size, "warm", name) }
    }

    #[test]
    fn the_lines_answer_the_three_questions() {
        let (wins, loses, equal) = ([0.45, 0.5, 0.55], [1.1, 1.2, 1.3], [0.95, 1.0, 1.05]);
        let rows = [compared(4096, "a", wins), compared(8192, "a", loses)];
        let (answer, because) = gain_of(&rows, &[LIBC]);
        assert_eq!(answer, ClosingAnswer::Yes);
        let closing = Closing {
            answer,
            because,
            trust: Trust::of(&rows, &[], true),
            next: "`cachewise tune`".to_owned(),
        };
        assert_eq!(
            closing.to_string(),
            "gain here:  yes: some kernel is faster than libc in 1 of 2 cells, slower in 1; at most \
             +100 % (copy of 4 KiB, a)\ntrust:      limited: it was stopped before its end\n\
             what next:  `cachewise tune`\n"
        );
        // About the library where it was measured, whatever its competitors do.
        let rows = [compared(4096, "cachewise", loses), compared(4096, "memx", wins)];
        assert_eq!(gain_of(&rows, &[LIBC]).0, ClosingAnswer::No);
        // And as a shared library where it was called as one, however fast it is linked in.
        let rows = [compared(4096, LIBRARY, wins), compared(4096, SHARED, loses)];
        assert_eq!(gain_of(&rows, &[LIBC]).0, ClosingAnswer::No);
        assert_eq!(gain_of(&[compared(4096, "a", equal)], &[LIBC]).0, ClosingAnswer::CannotTell);
        let mixed = [4096, 8192, 16384].map(|size| compared(size, "a", equal));
        let (_, because) = gain_of(&[&mixed[..], &[compared(32768, "a", loses)]].concat(), &[LIBC]);
        assert!(!because.contains("no difference") && because.contains("slower in 1"), "{because}");
        assert_eq!(gain_of(&[], &[LIBC]).0, ClosingAnswer::CannotTell);
        let mut few = compared(4096, "a", wins);
        few.ratio = few.ratio.map(|ratio| PairedRatio { rounds: 5, ..ratio });
        let (_, because) = gain_of(&[few, compared(8192, "a", equal)], &[LIBC]);
        assert!(because.ends_with("in any of 1 cells"), "{because}");
        // A gain that no headline names is none here.
        let (answer, because) = gain_of(&[compared(4096, "a", [0.975, 0.98, 0.985])], &[LIBC]);
        assert_eq!(answer, ClosingAnswer::No);
        assert!(because.ends_with("in 1 of 1 cells, slower in 0, nowhere by more than 3 %"));
    }

    #[test]
    fn a_routine_that_is_faster_than_itself_elsewhere_is_no_gain() {
        let row = Row { reference: "a, offset 2048".to_owned(), ..compared(4096, "a", [0.1; 3]) };
        let (answer, because) = gain_of(std::slice::from_ref(&row), &[LIBC]);
        assert_eq!(answer, ClosingAnswer::CannotTell);
        assert!(because.starts_with("routines were compared with each other"), "{because}");
        // Beside libc's rows it does not count.
        let (_, because) = gain_of(&[row, compared(4096, "a", [0.8, 0.9, 0.95])], &[LIBC]);
        assert!(
            because.starts_with("some kernel is faster than libc in 1 of 1 cells"),
            "{because}"
        );
        let fault = Row { reference: KERNEL_FAULT.to_owned(), ..compared(4096, "pool", [0.1; 3]) };
        let (answer, because) = gain_of(&[fault], &[KERNEL_FAULT]);
        assert_eq!(answer, ClosingAnswer::Yes);
        assert!(because.starts_with("another way is faster than kernel 4k"), "{because}");
    }

    #[test]
    fn no_gain_stands_on_what_cannot_be() {
        let mut row = compared(4096, "a", [0.45, 0.5, 0.55]);
        row.bystander_ns = vec![-1e9; row.operation_ns.len()];
        assert_eq!(gain_of(std::slice::from_ref(&row), &[LIBC]).0, ClosingAnswer::CannotTell);
        let trust = Trust::of(&[row], &[], false);
        assert_eq!(trust.to_string(), "limited: 1 of 1 rows could not be measured");
        assert!(trust.worst().is_some() && Trust::default().worst().is_none());
    }
}
