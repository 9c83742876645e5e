//! Experiments whose kernels are those of x86-64.

use super::*;

#[test]
fn pages_are_cleared_counted_and_judged() {
    let outcome = run("page-clear", &quick("mmx_AP.", &[32 << 10, 320 << 10]));
    let names: Vec<&str> = outcome.rows.iter().map(|row| row.candidate.as_str()).collect();
    assert_eq!(names[..3], ["libc", "zero.mmx", "zero.mmx.nt"]);
    for row in &outcome.rows {
        let pages = (row.cell.size / 4096) as f64;
        assert_eq!(row.extra["zeroed_per_loop"], pages);
        assert_eq!(row.extra["loops"], 1.6e6 / pages, "the seed's runs zero 1.6 million pages");
        assert_eq!(row.reader_ns.len(), row.operation_ns.len());
    }
    let said = outcome.verdicts.join("\n");
    for claim in
        ["000.12: \"NT zero_page() is a clear loss for small buffer\"", "320 KiB, which fit"]
    {
        assert!(outcome.is_withheld() || said.contains(claim), "{said}");
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn the_seeds_own_parameters_are_its_loops() {
    let options =
        Options { kernels: Some("zero\\.rep\\.stosb".into()), classic: true, ..Options::default() };
    let outcome = run("page-clear", &options);
    let calls: Vec<(u64, u32)> =
        outcome.rows.iter().map(|row| (row.cell.size, row.calls)).collect();
    assert_eq!(calls[0], (32 << 10, 200_000));
    assert_eq!(calls[2], (320 << 10, 20_000));
    assert!(outcome.verdicts.is_empty(), "no claim is about one routine: {:?}", outcome.verdicts);
}

#[test]
fn pages_are_copied_as_a_fork_does() {
    let outcome = run("page-copy", &quick("mmx_AP.|copy\\.gpr64", &[4 << 10, 32 << 10]));
    for is_cold in [false, true] {
        let of_first = outcome.rows.iter().filter(|row| {
            row.cell.size == 4 << 10 && (row.cell.state == "cold destination") == is_cold
        });
        let names: Vec<&str> = of_first.map(|row| row.candidate.as_str()).collect();
        assert_eq!(names, ["libc", "mmx_APn", "mmx_APN", "mmx_APn/APN", "copy.gpr64"]);
    }
    for row in &outcome.rows {
        assert_eq!(row.extra["zeroed_per_loop"], 3.0, "000.10");
        assert_eq!(row.extra["copied_per_loop"], (row.cell.size / 4096 + 8) as f64, "000.9");
    }
    assert!(outcome.notes.iter().any(|note| note.contains("skipped fork")), "no program was given");
    assert!(outcome.verdicts[0].starts_with("000."), "{:?}", outcome.verdicts);
}

#[test]
fn huge_pages_are_copied_whole() {
    let outcome = run("page-copy", &quick("(zero|copy)\\.avx(\\.nt)?", &[8 << 10]));
    let huge = outcome.rows.iter().find(|row| row.candidate == "2M avx");
    // A CPU without AVX has no such row; neither has it the others.
    if let Some(row) = huge {
        assert_eq!(row.extra["copied_per_loop"], 8.0 + 512.0);
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn the_map_answers_the_question() {
    let mut options = quick("(copy|zero)\\.sse2(\\.nt)?", &[4096]);
    options.placements = vec![(Level::L2, Level::L2)];
    let outcome = run("reuse-map", &options);
    for row in &outcome.rows {
        assert!(row.reference == "copy.sse2" || row.reference == "zero.sse2", "{}", row.reference);
        assert!(row.cell.reader.is_some_and(|touched| touched >= 1.0 / 64.0));
        assert_eq!(row.cell.destination, Some(cachewise_measure::Level::L2.into()));
    }
    // Its pair of kernels is not that of the claim.
    assert!(outcome.is_withheld() || outcome.verdicts.is_empty(), "{:?}", outcome.verdicts);
}

#[test]
fn a_cached_target_has_four_states() {
    let outcome = run("cached-target", &quick("copy[KLNO]|copy\\.sse2", &[4096]));
    let verdicts = outcome.verdicts.join("\n");
    // Rows that were not measurable answer nothing; that there are such is said.
    let excused = outcome.is_withheld() || verdicts.contains("Not measurable here:");
    for answer in ["001.2:", "001.10:", "001.5:"] {
        assert!(excused || verdicts.contains(answer), "{answer} in {verdicts}");
    }
    for told in outcome.verdicts.iter().filter(|told| told.contains("just read")) {
        assert!(told.contains(" 4 KiB") && !told.contains(" 8 KiB"), "{told}");
    }
    let states: std::collections::BTreeSet<_> =
        outcome.rows.iter().map(|row| row.cell.state.as_str()).collect();
    assert_eq!(states.len(), 4, "{states:?}");
}

#[test]
fn policies_receive_and_send() {
    let outcome = run("receive", &quick("copy\\.sse2(\\.nt)?", &[16 << 10]));
    for row in &outcome.rows {
        for figure in ["gbit_per_s", "cpu_share_copy_10g", "cpu_share_10g"] {
            let is_some = row.extra[figure] > 0.0 || !row.is_measurable();
            assert!(is_some, "{figure} of {}", row.candidate);
        }
    }
    let policies = cachewise_experiments::names::POLICIES;
    for state in ["receive", "send"] {
        for policy in policies {
            let named = |row: &&Row| row.candidate == policy && row.cell.state == state;
            assert!(outcome.rows.iter().any(|row| named(&row)), "{state} {policy}");
        }
    }
    let tcp = outcome.rows.iter().any(|row| row.candidate == "tcp loopback");
    let excused = outcome.notes.iter().any(|note| note.contains("tcp loopback"));
    assert!(tcp || excused, "{:?}", outcome.notes);
    let told = outcome.verdicts.iter().any(|said| said.starts_with("001.8:"));
    assert!(told || outcome.is_withheld(), "{:?}", outcome.verdicts);
}

/// Experiments, options under which they are short (kernels, sizes, residencies), and candidates that must be
/// among the rows.
const SHORTS: &str = r"
read-batch; copy\.sse2(\.g[128])?|copy\.sse2\.movdqa(\.g8)?|copy\.sse2\.nt\.block(512|1k); 2048 4096; L1; libc/copy.sse2.g*/copy.sse2.movdqa.g*/copy.sse2.nt.block*
aliasing; copy\.rep\.movsb|zero\.rep\.stosb; 4096; L1; libc/copy.rep.movsb/zero.rep.stosb
values; copy\.sse\.nt|fill\.sse\.nt|zero\.clzero; 1024; L1 DRAM; libc/copy.sse.nt/fill.sse.nt
twins; ; 4096; L1 L2; movdqa/movq/movq, misaligned/movntdq, prefetchnta/movntq, stray lines
sticky; copy\.rep\.movsb|fill\.rep\.stosb|zero\.sse2; 8192; ; libc/copy.rep.movsb/fill.rep.stosb/zero.sse2
vector-state; (copy|zero|compare)\.(gpr64|sse2); 64 1024; ; xsave + xrstor/copy.gpr64/copy.sse2, bare/compare.gpr64
compare-latency; compare\.(gpr64|sse2(\.pre64)?); 64; ; libc/compare.gpr64/compare.sse2/compare.sse2.pre64
extent; zero\.rep\.stosb|copy\.rep\.movsb; 65536; ; libc/zero.rep.stosb/copy.rep.movsb
";

fn shorts() -> impl Iterator<Item = (&'static str, Options, Vec<&'static str>)> {
    SHORTS.trim().lines().map(|line| {
        let &[name, kernels, sizes, levels, candidates] = &line.split("; ").collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let sizes: Vec<usize> = sizes.split_terminator(' ').map(|n| n.parse().expect(n)).collect();
        let level = |name: &str| name.parse::<Level>().expect("a level");
        let placements = levels.split_terminator(' ').map(|name| (level(name), level(name)));
        let options = Options { placements: placements.collect(), ..quick(kernels, &sizes) };
        (name, options, candidates.split('/').collect())
    })
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn rows_figures_and_tables_agree() {
    for (name, options, candidates) in shorts() {
        let outcome = run(name, &options);
        for candidate in &candidates {
            let there = outcome.rows.iter().any(|row| row.candidate == *candidate);
            assert!(there, "{name}: no {candidate}");
        }
        let tables = said::of(name, &BTreeMap::new(), &outcome.rows).tables;
        assert!(!tables.is_empty(), "{name}");
    }
}

#[test]
fn told_to_stop_they_keep_finished_rows() {
    let others = [
        ("page-clear", quick("zero\\.sse2", &[4096, 8192])),
        ("page-copy", quick("copy\\.sse2", &[4096, 8192])),
        ("reuse-map", quick("copy\\.sse2(\\.nt)?", &[4096])),
        ("cached-target", quick("copy\\.sse2(\\.nt)?", &[4096])),
        ("receive", quick("copy\\.sse2(\\.nt)?", &[4096])),
    ];
    let shorts = shorts().map(|(name, options, _)| (name, options));
    for (name, options) in shorts.chain(others) {
        let outcome = run_with(name, &options, &mut patient(1));
        let interrupted = matches!(outcome.finish, Err(LabError::Interrupted));
        assert!(interrupted, "{name}: {:?}", outcome.finish);
        assert!(!outcome.rows.is_empty(), "{name} keeps the cell that was finished");
        assert!(outcome.rows.iter().all(|row| row.operation_ns.len() >= 4), "{name}");
    }
}

#[test]
fn options_without_meaning_are_refused_in_a_line() {
    let placed = Options { placements: vec![(Level::L2, Level::Dram)], ..Options::default() };
    let classic = Options { classic: true, ..Options::default() };
    let buffers = "page-clear page-copy cached-target receive sticky vector-state compare-latency \
        extent";
    for (names, options, begins, says) in [
        (buffers, placed, "--residency: not for ", "; it takes --"),
        ("aliasing values twins sticky vector-state extent", classic, "--classic", ""),
        (
            "page-clear page-copy",
            quick("", &[5000]),
            "--size: expected whole pages of 4096 bytes, ",
            "found 5000",
        ),
        ("cached-target", quick("copy\\.sse2", &[]), "", "stores non-temporally or prefetches"),
        (
            "receive",
            quick("copy\\.sse2", &[]),
            "--kernels: expected one of each, ",
            "found 1 with temporal stores and 0 ",
        ),
        ("reuse-map", quick("copy\\.sse2", &[]), "", "none of the kernels chosen"),
        ("page-clear", quick("zero.nonesuch", &[]), "", "nearest"),
        ("extent", quick("", &[5000]), "", "an extent of 5000 bytes; accepted"),
        ("read-batch", quick("copy\\.avx\\.nt\\.pf512", &[]), "", "nothing to measure"),
    ] {
        for name in names.split_whitespace() {
            let text = refused(name, &options);
            assert!(text.starts_with(begins) && text.contains(says), "{name}: {text}");
        }
    }
}

#[test]
fn pages_are_compared_where_registers_are_saved_first() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "16:0.5,4096:0.5\n").expect("room");
    let distribution = Some(file.path().to_owned());
    let ran = run("compare-latency", &Options { distribution, ..quick("", &[]) });
    for candidate in ["libc", "cachewise", "compare.gpr64"] {
        let pages = |row: &&Row| row.cell.state.as_str().starts_with("pairs in ");
        assert!(ran.rows.iter().filter(pages).any(|row| row.candidate == candidate), "{candidate}");
    }
    assert!(ran.verdicts.iter().all(|said| said.starts_with("004.")), "{:?}", ran.verdicts);
}
