//! Hints of the profile for single programs: `exec` follows it, `explain --program` shows it.

use crate::exec::asked_beside;
use crate::support::{Folder, has, ok, profile, refused, said};

/// Copies of 1 MiB and more go another way in `sh`.
fn hinted(folder: &Folder) -> String {
    let lines = "decide copy unknown 256 max copy.gpr64\ndecide copy never 256 max copy.rep.movsb\n\
                 program sh copy 1048576 max never\nprogram other zero 256 4095 soon";
    let text = profile(lines);
    folder.write("hinted.profile", crate::support::resealed(&text))
}

#[test]
fn exec_follows_the_profiles_hints_for_the_program() {
    let folder = Folder::new();
    let hinted = hinted(&folder);
    let plain = folder.write("plain.profile", profile(crate::support::DECIDED));
    let print = ["--", "sh", "-c", "echo name $CACHEWISE_PROGRAM"];
    let told = |options: &str| {
        let mut command = asked_beside(&format!("exec {options}"));
        said(command.args(print).env("XDG_CONFIG_HOME", folder.path("none"))).with(0)
    };
    assert_eq!(told(&format!("--profile {hinted}")).out, "name sh\n");
    assert_eq!(told(&format!("--profile {hinted} --name other")).out, "name other\n");
    assert_eq!(told(&format!("--profile {plain}")).out, "name\n");
    let unknown = format!("exec --profile {hinted} --name third -- true");
    refused(&unknown, 1, &["no hints for \"third\"", "programs in it: sh, other"]);
}

#[test]
fn explain_shows_the_decision_under_a_programs_hint() {
    let folder = Folder::new();
    let hinted = hinted(&folder);
    let explained = |size: &str, program: &str| {
        ok(&format!("explain --op copy --size {size} --profile {hinted} --program {program}"))
    };
    has(&explained("2M", "sh"), &["copy of 2 MiB with reuse never: copy.rep.movsb"]);
    has(&explained("64K", "sh"), &["copy of 64 KiB with reuse unknown: copy.gpr64"]);
    has(&explained("2M", "other"), &["with reuse unknown: copy.gpr64"]);
    let unknown = format!("explain --op copy --size 2M --profile {hinted} --program third");
    refused(&unknown, 1, &["no hints for \"third\""]);
}
