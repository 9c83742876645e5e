//! Programs whose best way is known (`tests/c/known.c`), learned: their output is the same, what
//! they try stays within its bound, and their site is found by name. Whether the answer is right
//! depends on a quiet machine and is no test's: `cargo run -p xtask -- learn-known`.

use crate::support::{compile, plain, preloaded_two_ways, run, text};
use cachewise_learn::section::Section;
use cachewise_learn::trial::Budget;
use object::{Object as _, ObjectSymbol as _};
use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 10] = [
    "read-at-once",
    "read-late",
    "read-in-part",
    "never-read",
    "bystander",
    "written-after",
    "two-phases",
    "two-threads",
    "mixed-sizes",
    "period-of-four",
];
const CALLS: u64 = 60;
const KILOBYTES: u64 = 6 << 10;
/// Calls of the longest block, which is begun where the bound is not yet reached.
const BLOCK: u64 = 40;

fn output(command: &mut Command, program: &str) -> String {
    let arguments = [program.to_owned(), CALLS.to_string(), KILOBYTES.to_string()];
    text(&run(command.args(arguments)).stdout)
}

/// The function that an offset in a file lies in.
fn function(file: &Path, offset: u64) -> String {
    let bytes = std::fs::read(file).expect("the program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let found = file.symbols().find(|symbol| {
        symbol.is_definition()
            && (symbol.address() + 1..=symbol.address() + symbol.size()).contains(&offset)
    });
    found.and_then(|symbol| symbol.name().ok().map(str::to_owned)).expect("a function")
}

#[test]
fn programs_with_known_answers_stay_right_and_within_bounds() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = compile(directory.path(), "known", &["-O1", "-fno-builtin", "-pthread"]);
    for program in PROGRAMS {
        let expected = output(&mut plain(&file), program);
        assert_eq!(
            output(&mut preloaded_two_ways(&file), program),
            expected,
            "{program}, not learned"
        );
        for (learn, budget) in [("trial", Budget::TRIAL_RUN), ("1", Budget::IN_SERVICE)] {
            let kept = directory.path().join(format!("{program}-{learn}"));
            let mut command = preloaded_two_ways(&file);
            command.env("CACHEWISE_LEARN", learn).env("CACHEWISE_PROGRAM", &kept);
            assert_eq!(output(&mut command, program), expected, "{program}, {learn}");
            let bytes = std::fs::read(&kept).expect("a section was saved");
            let section = Section::parse(&bytes).expect("a section");
            let sites: Vec<_> = section.sites().collect();
            let octaves: Vec<_> = sites.iter().map(|site| site.octave).collect();
            let wanted: &[u32] = if program == "mixed-sizes" { &[21, 22] } else { &[22] };
            let mut found = octaves.clone();
            found.sort_unstable();
            assert_eq!(found, wanted, "{program}, {learn}");
            let calls: u64 = sites.iter().map(|site| site.left.calls).sum();
            let threads = if program == "two-threads" { 2 } else { 1 };
            // Two threads that meet at the site count one of their calls.
            assert!(calls <= threads * CALLS && calls * 10 >= threads * CALLS * 8, "{calls}");
            for site in &sites {
                assert_eq!(function(&file, site.offset), "copied_here", "{program}");
                let left = &site.left;
                assert!(left.explored <= left.calls.min(u64::from(budget.calls) + BLOCK));
                if learn == "1" {
                    // A call that is tried without anything known is taken to cost a quarter of an
                    // interval at least, and all of them a fiftieth of the calls' time at most.
                    let most = (budget.share * left.calls as f64 / 0.25) as u64 + BLOCK;
                    let known = left.confirming.pairs() > 0;
                    assert!(known || left.explored <= most, "{program}: {}", left.explored);
                }
            }
        }
    }
}
