//! What the rows of `page-compare` amount to. Pure.

use crate::words::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let states = groups(rows, |row: &Row| row.cell.state.to_string());
    let said = states.into_iter().flat_map(|(state, of_it)| {
        of_state(&of_it).into_iter().map(move |text| format!("{state}: {text}"))
    });
    said.collect()
}

fn of_state(of_all: &[&Row]) -> Vec<String> {
    let ending = |suffix: &str| of_all.iter().copied().find(|row| row.candidate.ends_with(suffix));
    let untold =
        |why| format!("comparing between saving and restoring registers: cannot tell, {why}");
    let Some(integers) = named(of_all, "compare.gpr64") else {
        return vec![untold("no integer kernel was measured")];
    };
    let mut said = Vec::new();
    if let (Some(behind), Some(always)) = (ending(", saved behind 64 B"), ending(", saved")) {
        let (gain, pre) = (versus(behind, integers), versus(always, behind));
        said.push(format!(
            "004.5, 64 bytes by integers, then saving, vectors and restoring: {}; {}",
            beside(behind, integers, " alone"),
            claim(Verdict::Faster, gain),
        ));
        said.push(format!(
            "004.5, saving for every pair over saving behind 64 bytes: {}; {}",
            times(pre),
            claim(Verdict::Slower, pre),
        ));
    } else {
        said.push(untold("registers were not saved here"));
    }
    if let (Some(library), Some(libc)) = (named(of_all, LIBRARY), named(of_all, LIBC)) {
        let beside = beside(library, libc, "");
        said.push(format!("in a program, which owns its registers: this library {beside}"));
    }
    let figure = |name: &str| integers.figure(name).map(|part| part * 100.0);
    if let [Some(a), Some(b), Some(c)] = WITHIN.map(figure) {
        said.push(format!(
            "of the pairs that differ, {a:.0}, {b:.0}, {c:.0} % do so within 16, 32, 64 bytes; {:.0} % of \
             all are equal",
            figure(EQUAL).unwrap_or(0.0)
        ));
    }
    said
}

/// `80.0 ns a pair, 12 % less time than compare.gpr64 alone (90.0 ns)`, and so on.
fn beside(ours: &Row, theirs: &Row, alone: &str) -> String {
    let pair = versus(ours, theirs);
    let none = "no measurably different time from";
    let than = told(pair, ["{} less time than", "{} more time than", none]);
    let (ns, name, other) = (ours.median_ns(), &theirs.candidate, theirs.median_ns());
    format!("{ns:.1} ns a pair, {than} {name}{alone} ({other:.1} ns)")
}
