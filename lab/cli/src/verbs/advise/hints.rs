//! Hints for one program: profiles that give them, tried from files of their own, and the profile in force, in
//! which the recommended ones are kept.

use crate::output;
use anyhow::Context as _;
use cachewise::Reuse;
use cachewise::profile::{Decision, HINTED, MAX_SIZE, Profile, ProgramHint};
use std::path::Path;

/// Hints for all that a program's calls move, and for all from the size of the last-level cache on: those that change what
/// the profile does, with a name for each.
pub fn all(profile: &Profile, program: &str) -> Vec<(String, Vec<ProgramHint>)> {
    let llc = profile.caches.llc;
    let tried = [
        ("data used soon", Reuse::Soon, 0),
        ("data never used again", Reuse::Never, 0),
        ("large data never used again", Reuse::Never, llc),
    ];
    let hints = tried.into_iter().map(|(name, reuse, from)| {
        let operations =
            HINTED.into_iter().filter(|operation| changes(profile, *operation, reuse, from));
        let hint = |operation| ProgramHint {
            program: program.to_owned(),
            operation,
            from,
            to: MAX_SIZE,
            reuse,
        };
        (name.to_owned(), operations.map(hint).collect::<Vec<_>>())
    });
    let mut found: Vec<(String, Vec<ProgramHint>)> =
        hints.filter(|(_, hints)| !hints.is_empty()).collect();
    // Two profiles that treat small data alike are one.
    let alike =
        |reuse| HINTED.iter().all(|operation| !changes_below(profile, *operation, reuse, llc));
    if alike(Reuse::Never) {
        found.retain(|(name, _)| name != "data never used again");
    }
    found
}

/// Lines of a profile for a hint, from a size on.
fn lines(
    profile: &Profile,
    operation: cachewise_kernels::Operation,
    reuse: Reuse,
    from: u64,
) -> Vec<(u64, u64, &str)> {
    let of =
        profile.decisions.iter().filter(|line| line.operation == operation && line.reuse == reuse);
    let above = of.filter(|line| line.to >= from);
    above
        .map(|Decision { from: first, to, kernel, .. }| (*first.max(&from), *to, kernel.as_str()))
        .collect()
}

fn changes(
    profile: &Profile,
    operation: cachewise_kernels::Operation,
    reuse: Reuse,
    from: u64,
) -> bool {
    let own = lines(profile, operation, reuse, from);
    !own.is_empty() && own != lines(profile, operation, Reuse::Unknown, from)
}

fn changes_below(
    profile: &Profile,
    operation: cachewise_kernels::Operation,
    reuse: Reuse,
    to: u64,
) -> bool {
    let below = |reuse| {
        let all = lines(profile, operation, reuse, 0).into_iter().filter(|(from, ..)| *from < to);
        all.map(|(from, last, kernel)| (from, last.min(to - 1), kernel)).collect::<Vec<_>>()
    };
    let own = below(reuse);
    !own.is_empty() && own != below(Reuse::Unknown)
}

/// The profile with these hints in place of the program's.
fn with(profile: &Profile, hints: &[ProgramHint]) -> Profile {
    let mut profile = profile.clone();
    profile.programs.retain(|old| hints.iter().all(|hint| hint.program != old.program));
    profile.programs.extend(hints.iter().cloned());
    profile
}

/// Writes a profile with these hints.
pub fn write(profile: &Profile, hints: &[ProgramHint], file: &Path) -> anyhow::Result<()> {
    std::fs::write(file, with(profile, hints).to_text()).with_context(|| file.display().to_string())
}

/// Puts them into the profile that is in force, which `exec` follows.
pub fn keep(file: &Path, hints: &[ProgramHint]) -> anyhow::Result<()> {
    let profile = with(&Profile::read(file)?, hints);
    output::write_file(file, profile.to_text().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_kernels::Operation;

    fn profile(lines: &str) -> Profile {
        let body = format!(
            "cachewise-profile 2\ncpu AuthenticAMD 25 1 1 x\ncaches 32768 524288 33554432\nrecord - fnv1a64:0000000000000000\n\
             written x\n{lines}"
        );
        let count = body.lines().count();
        let sum = cachewise::profile::fnv1a64(body.as_bytes());
        Profile::parse(format!("{body}end {count} fnv1a64:{sum:016x}\n").as_bytes())
            .expect("a profile")
    }

    #[test]
    fn hints_that_change_nothing_are_not_tried_and_those_kept_are_the_programs_alone() {
        let same = "decide copy unknown 256 max copy.avx\ndecide copy soon 256 max copy.avx\n";
        assert!(all(&profile(same), "p").is_empty());
        let never = "decide copy unknown 256 max copy.avx\n\
                     decide copy never 256 33554431 copy.avx\ndecide copy never 33554432 max copy.avx.nt\n";
        let parsed = profile(never);
        let found = all(&parsed, "p");
        assert_eq!(found.len(), 1, "{found:?}");
        let (name, hints) = &found[0];
        assert_eq!((name.as_str(), hints.len()), ("large data never used again", 1));
        assert_eq!((hints[0].operation, hints[0].from), (Operation::Copy, 33_554_432));
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("x.profile");
        std::fs::write(&file, parsed.to_text()).expect("written");
        let other = ProgramHint { program: "q".to_owned(), ..hints[0].clone() };
        for kept in [vec![other], hints.clone(), hints.clone()] {
            keep(&file, &kept).expect("kept");
        }
        let read = Profile::read(&file).expect("a profile");
        let programs: Vec<&str> = read.programs.iter().map(|hint| hint.program.as_str()).collect();
        assert_eq!(programs, ["q", "p"]);
        assert_eq!(read.decisions, parsed.decisions);
    }
}
