//! The guides of `docs/guide`: what they name in double quotes is printed by an experiment that
//! they name, and their commands show what the text says.

use crate::support::{has, names, ok, root, said};
use cachewise_measure::record::names as recorded;
use cachewise_report::closing::{Closing, ClosingAnswer, Trust};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The text of a file of the repository.
fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect(file)
}

struct Guide {
    name: String,
    text: String,
    /// Outside of code blocks and inline code.
    prose: String,
    /// The code blocks' lines.
    code: Vec<String>,
}

fn guides() -> Vec<Guide> {
    let names = names(&root().join("docs/guide"));
    assert!(names.len() >= 6, "{}", names.len());
    names.into_iter().map(guide).collect()
}

fn guide(name: String) -> Guide {
    let text = read(&format!("docs/guide/{name}"));
    let (mut prose, mut code, mut inside) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push(line.split("  #").next().unwrap_or(line).trim().to_owned());
        } else {
            prose.extend(line.split('`').step_by(2).flat_map(|outside| [outside, " "]));
        }
    }
    Guide { name, text, prose, code }
}

/// The names of all experiments.
fn experiments() -> Vec<String> {
    let listed = ok("list experiments");
    listed.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// Output of the command for the newest record of an experiment, white space folded.
fn printed(experiment: &str, records: &[String]) -> String {
    let ours = |name: &&String| {
        // The year, the month and the day; the experiment; the machine.
        let name = name.splitn(4, '-').nth(3).unwrap_or_default();
        name.strip_prefix(experiment).is_some_and(|rest| rest == "-zen5-guest.jsonl.gz")
    };
    let together = || format!("2026-11-22-experiments-zen5-guest.jsonl.gz#{experiment}");
    let newest = records.iter().filter(ours).max().cloned().unwrap_or_else(together);
    let told = ok(&format!("report {} --plot", root().join("record").join(newest).display()));
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The closing lines of every measurement, which are in no record, as they are printed with each answer.
fn closings() -> String {
    let answers = [ClosingAnswer::Yes, ClosingAnswer::No, ClosingAnswer::CannotTell];
    let printed = answers.map(|answer| {
        let (because, next) = (String::new(), String::new());
        Closing { answer, because, trust: Trust::default(), next }.to_string()
    });
    printed.join("\n")
}

#[test]
fn what_a_guide_quotes_is_printed_by_an_experiment_that_it_names() {
    let (known, records) = (experiments(), names(&root().join("record")));
    let closings = closings();
    let mut outputs: BTreeMap<&str, String> = BTreeMap::new();
    let mut seen = 0;
    for Guide { name, text, prose, code } in guides() {
        let runs = |line: &String, experiment: &str| {
            let rest = line.strip_prefix("cachewise run ").and_then(|l| l.strip_prefix(experiment));
            rest.is_some_and(|rest| !rest.starts_with('-'))
        };
        let is_named = |experiment: &&String| {
            text.contains(&format!("`{experiment}`"))
                || code.iter().any(|line| runs(line, experiment))
        };
        let named: Vec<&String> = known.iter().filter(is_named).collect();
        for known in &named {
            outputs.entry(known).or_insert_with(|| printed(known, &records));
        }
        for quoted in prose.split('"').skip(1).step_by(2) {
            let is_there = named.iter().any(|known| outputs[known.as_str()].contains(quoted));
            assert!(
                is_there || closings.contains(quoted),
                "{name}: \"{quoted}\" is printed by none of {named:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen}");
}

/// Commands that a guide shows with their output, by how each begins: an experiment in its newest record, what takes
/// moments for real (`HERE`).
const SHOWN: &[(&str, &[&str])] = &[
    (
        "run page-fault",
        &[
            "kernel 4k",
            "kernel THP",
            "MAP_POPULATE",
            "calloc",
            "pool prezeroed",
            "all lines are touched",
        ],
    ),
    ("run zero-matrix", &["zero, 4 KiB, L1", "zero, 64 KiB, L2", "LLC", "DRAM", "zero.rep.stosb"]),
    ("run values", &["zeros over zeros", "ones over ones", "002.12"]),
    ("run extent", &["one call", "by 4 KiB"]),
    ("run page-clear", &["zeroing", "000.12"]),
    ("run page-copy", &["fork", "zeroed/copied", "buffer"]),
    ("run reuse-map --quick", &["25.0 %", "at once", "after 1 MiB"]),
    ("run vector-state", &["xsavec", "dirty", "clean", "002.17"]),
    ("run compare-latency", &["by the offset of the first difference", "compared as ksmd does"]),
    ("run compare-matrix", &["compare, 4 KiB, L1 to L1", "compare.avx2"]),
    ("run cached-target", &["001.2", "target not read"]),
    ("run receive", &["reader", "bystander", "tcp loopback"]),
    ("run whole-cost", &["operation", "reader", "bystander", "sum"]),
];

/// As [`SHOWN`], of commands that are run: with the guide's own arguments, and these.
const HERE: &[(&str, &str, &[&str])] = &[
    ("explain --op copy --size 8M", "", &["reuse never: ", " (from ", "decided by: "]),
    ("explain --op copy --size 16K", "", &["reuse never: ", " (from "]),
    (
        "run reuse-map --op copy --size 8K,16K,8M",
        "--size 8K --quick --rounds 15",
        &["cachewise soon", "cachewise never", "gain here:"],
    ),
    ("run peers --op compare", "--quick --rounds 15", &["my-sizes, over 16 KiB", "gain here:"]),
];

/// Commands that need root or minutes, change the machine, run a server, or have a test of their own.
const ELSEWHERE: [&str; 7] = ["tune", "doctor", "export", "scrubd", "lease", "exec", "compare"];

/// The Makefile of the guide, on a routine that was made to copy twice. The verdict is a measurement's, and not asserted.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn the_guides_makefile_compares_two_builds_of_a_library() {
    let folder = crate::support::Folder::new();
    let guide = read("docs/guide/two-builds.md");
    let (_, makefile) = guide.split_once("```make\n").expect("a Makefile");
    let (makefile, _) = makefile.split_once("```").expect("its end");
    let shorter = makefile.replace("--launches 12", "--launches 8 --all").replace("4K,64K", "4K");
    assert!(shorter.contains("--launches 8 --all") && shorter.contains("--size 4K "), "{shorter}");
    folder.write("Makefile", shorter);
    for (build, copies) in [("old", 1), ("new", 2)] {
        fs::create_dir(folder.path(build)).expect("made");
        let copy = "memcpy(to, from, n); __asm__ volatile(\"\" ::: \"memory\"); ".repeat(copies);
        let text = format!(
            "#include <string.h>\nvoid *my_copy(void *to, const void *from, size_t n) {{ {copy} return to; }}\n"
        );
        folder.write(&format!("{build}/mine.c"), text);
    }
    let command = std::path::Path::new(env!("CARGO_BIN_EXE_cachewise"));
    let beside = command.parent().expect("a folder").display();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    let mut make = Command::new("make");
    make.args(["-C", &folder.path(""), "compare"]).env("PATH", path).env("HOME", folder.path(""));
    let told = said(&mut make);
    // Status of make: 0, or one by which `compare` reports.
    let verdict = ["Error 3", "Error 4"].iter().any(|error| told.err.contains(error));
    assert!(told.status == Some(0) || verdict, "{told:?}");
    has(&told.out, &["copy, 4 KiB, warm", "mine", "gain here:"]);
    // Warnings that all launches share are printed once.
    let plain = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "");
    let warnings: Vec<String> =
        told.err.lines().filter(|line| line.starts_with("warning: ")).map(plain).collect();
    let once: std::collections::BTreeSet<&String> = warnings.iter().collect();
    assert_eq!(once.len(), warnings.len(), "{told:?}");
}

#[test]
fn each_command_of_a_guide_shows_what_its_text_says() {
    let records = names(&root().join("record"));
    let folder = crate::support::Folder::new();
    let sizes = "8:0.4,16:0.3,40:0.2,300:0.1\n0:1\n1:0.5,8:0.5\n";
    let distribution = folder.write("my-sizes.csv", sizes);
    let mut seen = 0;
    for Guide { name, code, .. } in guides() {
        for line in code {
            let line = line.trim_start_matches("sudo ").trim_start_matches("CACHEWISE_STATS=1 ");
            let Some(rest) = line.strip_prefix("cachewise ") else { continue };
            // Arguments behind it are the program's.
            let own = rest.split(" -- ").next().unwrap_or(rest);
            let words: Vec<&str> = own.split_whitespace().map(|w| w.trim_matches('\'')).collect();
            ok(&format!("{} --help", words.join(" ")));
            seen += 1;
            if ELSEWHERE.contains(&words[0]) {
                continue;
            }
            let here = HERE.iter().find(|(command, ..)| own.starts_with(command));
            if let Some((_, more, parts)) = here {
                // A flag that is given again takes the place of the guide's.
                let kept = if more.contains("--size") { "run reuse-map --op copy" } else { own };
                let told =
                    ok(format!("{kept} {more}").replace("my-sizes.csv", &distribution).trim());
                has(&told, parts);
                continue;
            }
            let shown = SHOWN.iter().find(|(command, _)| own.starts_with(command));
            let (command, parts) =
                shown.unwrap_or_else(|| panic!("{name}: nobody has said what `{own}` shows"));
            let experiment = command.split_whitespace().nth(1).expect("an experiment");
            has(&printed(experiment, &records), parts);
        }
    }
    assert!(seen > 15, "{seen}");
}

/// Checks the database guide's sentence about single pages under this machine's decisions.
#[test]
fn no_hint_takes_a_page_around_the_cache() {
    for hint in ["unknown", "soon", "never"] {
        for size in ["8K", "16K"] {
            let told = ok(&format!("explain --op copy --size {size} --reuse {hint}"));
            let first = told.lines().next().expect("a line");
            assert!(first.contains(" (from ") && !first.contains(".nt"), "{first}");
        }
    }
}

/// The recipes name programs, packages and flags that there are.
#[test]
fn the_recipes_use_flags_that_the_command_has() {
    let units = ["cachewise-tune.service", "cachewise-scrubd.service", "cachewise-scrubd.socket"];
    let units = units.map(|name| (name, read(&format!("packaging/{name}"))));
    for (_, unit) in units.iter().filter(|(name, _)| name.ends_with("service")) {
        let start =
            unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/cachewise "));
        let start = start.expect("what it starts").replace("${CACHEWISE_SCRUBD_SIZE}", "4G");
        ok(&format!("{start} --help"));
    }
    let recipe = read("packaging/Containerfile");
    let manifests = ["lab/cli/Cargo.toml", "xtask/Cargo.toml"].map(read).concat();
    for package in recipe.split("-p ").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
        let name = format!("name = \"{package}\"");
        assert!(manifests.contains(&name), "{package} is no package");
    }
    let verify = Command::new("systemd-analyze").arg("--version").output();
    if !verify.is_ok_and(|output| output.status.success()) {
        eprintln!("systemd-analyze: SKIPPED, not installed");
        return;
    }
    // The same units with a program that is there.
    let folder = crate::support::Folder::new();
    let units = units.map(|(name, unit)| {
        folder.write(name, unit.replace("/usr/local/bin/cachewise", "/bin/true"))
    });
    said(Command::new("systemd-analyze").arg("verify").args(units)).with(0);
}

/// A name that no kernel answers to sends a reader looking for it.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_that_documents_name_exist() {
    let others = ["README.md", "METHODOLOGY.md", "lib/capi/include/cachewise.h"];
    let mut files = others.map(str::to_owned).to_vec();
    for folder in ["docs", "docs/guide", "docs/decisions"] {
        let pages = names(&root().join(folder)).into_iter().filter(|name| name.ends_with(".md"));
        files.extend(pages.map(|name| format!("{folder}/{name}")));
    }
    let mut seen = 0;
    for file in files {
        let part = |c: char| c.is_ascii_alphanumeric() || "._-*/".contains(c);
        for word in read(&file).split(|c| !part(c)).map(|word| word.trim_matches(['.', '-'])) {
            let operation = word.split_once('.').map_or("", |(operation, _)| operation);
            let operations = ["copy", "move", "zero", "fill", "compare", "equal"];
            let other = word.contains(['*', '/', '_']) || word.ends_with(".s");
            if operations.contains(&operation) && !other {
                assert!(cachewise_kernels::find(word).is_some(), "{file}: no kernel is {word}");
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "{seen} names");
}

/// The scripts for Linux, which build and boot for minutes, say first what they take.
#[test]
fn the_scripts_for_linux_say_what_they_take() {
    for script in ["fetch", "apply", "build", "selftests", "boot", "bare-metal"] {
        let usage = said(&mut Command::new(root().join("linux").join(script))).with(2).err;
        assert!(usage.starts_with(&format!("usage: linux/{script} DIRECTORY")), "{usage}");
    }
}

/// The README begins with an answer as it was printed: its record says the same.
#[test]
fn the_readmes_answer_is_its_records() {
    let readme = read("README.md");
    let name = "record/2026-11-28-advise-columns-zen1-guest.jsonl.gz";
    assert!(readme.contains(&format!("({name})")), "the record is named");
    let record = cachewise_measure::record::read(&root().join(name)).expect("a record");
    let said = &record.end.as_ref().expect("an end").verdicts;
    let line = |beginning: &str| said.iter().find_map(|text| text.strip_prefix(beginning));
    let fresh: Vec<_> =
        record.rows.iter().filter(|row| row.cell.state == recorded::ADVISED_FRESH).collect();
    assert_eq!((fresh.len(), &*fresh[0].candidate), (2, recorded::PLAIN));
    let figures = |name, unit: f64| {
        let figure = |row: &&cachewise_measure::Row| (row.figure(name).expect("it") / unit).floor();
        fresh.iter().map(figure).collect::<Vec<f64>>()
    };
    let (peaks, faults) = (figures(recorded::PEAK, 1048576.0), figures(recorded::PAGE_FAULTS, 1.0));
    for line in [
        format!("gain here:  {}", said[0]),
        format!("trust:      {}", line("Trust: ").expect("it")),
        format!("what next:  {}", line("Command: ").expect("it")),
        format!("it costs: memory of the largest process {} MiB, plain {} MiB", peaks[1], peaks[0]),
        format!("page faults: {} where the plain program has {}", faults[1], faults[0]),
    ] {
        assert!(readme.contains(&format!("\n{line}\n")), "{line}");
    }
}
