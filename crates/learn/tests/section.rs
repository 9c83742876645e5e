//! Sections survive writing and reading, and damage is told.

use cachewise_learn::Way;
use cachewise_learn::evidence::{Evidence, Pair};
use cachewise_learn::section::{MAX_BYTES, Section, SectionError, Site, write_end};
use cachewise_learn::sites::Operation;
use cachewise_learn::trial::{Left, Outcome, Why};

fn evidence(pairs: u32) -> Evidence {
    let mut evidence = Evidence::NONE;
    for pair in 0..pairs {
        evidence.add(&Pair {
            temporal: 1_000_000.0 + f64::from(pair * 7 % 5) * 1e4,
            non_temporal: 900_000.0 + f64::from(pair) * 10.0,
            other_work: 0.0,
            bytes: 2e6,
            length: pair as usize % 3,
        });
    }
    evidence
}

fn site(outcome: Outcome) -> Site {
    Site {
        module: 0,
        offset: 0x1234,
        operation: Operation::Copy,
        octave: 21,
        bytes: 12345,
        usual: Way::Temporal,
        left: Left {
            outcome,
            calls: 99,
            explored: 12,
            reopened: 1,
            evidence: evidence(20),
            screening: evidence(13),
            confirming: evidence(1),
        },
    }
}

fn written(sites: &[Site]) -> String {
    let mut text =
        String::from("cachewise-program 2\nprogram redis-server\nmodule 0 ab12 /usr/bin/a b\n");
    for site in sites {
        site.write(&mut text).expect("written");
    }
    ended(text)
}

fn ended(mut text: String) -> String {
    let body = text.clone();
    write_end(&mut text, body.as_bytes()).expect("written");
    text
}

#[test]
fn what_is_written_is_read_again() {
    let sites =
        [site(Outcome::Decided(Way::NonTemporal)), site(Outcome::CannotTell(Why::NoDifference))];
    let text = written(&sites);
    let section = Section::parse(text.as_bytes()).expect("a section");
    assert_eq!(section.text("program"), "redis-server");
    let module = section.modules().next().expect("a module");
    assert_eq!((module.number, module.id, module.path), (0, "ab12", "/usr/bin/a b"));
    for (read, site) in section.sites().zip(&sites) {
        assert!(read.same_calls(site));
        assert_eq!(read.left.outcome, site.left.outcome);
        assert_eq!(read.left.calls, 99);
        let (read, was) = (&read.left.evidence, &site.left.evidence);
        assert_eq!(read.pairs(), was.pairs());
        assert!((read.effect() - was.effect()).abs() < 1e-6);
        assert!((read.costs[0].error() / was.costs[0].error() - 1.0).abs() < 1e-3);
        assert!((read.for_way(Way::NonTemporal) - was.for_way(Way::NonTemporal)).abs() < 0.01);
    }
    assert_eq!(section.sites().count(), 2);
}

/// A right checksum is enough for who starts with every process: the numbers are not read one by one.
#[test]
fn who_follows_reads_the_outcomes_of_a_section_whose_checksum_is_right() {
    let mut sites =
        [site(Outcome::Decided(Way::NonTemporal)), site(Outcome::CannotTell(Why::NoDifference))];
    sites[1].offset += 1;
    let text = written(&sites);
    let section = Section::sealed(text.as_bytes()).expect("a section");
    assert_eq!((section.count(), section.outcomes().count()), (2, 2));
    for (read, site) in section.outcomes().zip(&sites) {
        assert!(read.same_calls(site) && read.left.outcome == site.left.outcome);
        assert_eq!((read.left.evidence.pairs(), read.bytes), (0, site.bytes));
    }
    assert!(!sites[0].same_calls(&sites[1]));
    let other = |change: fn(&mut Site)| {
        let mut other = site(Outcome::CannotTell(Why::TooFew));
        change(&mut other);
        other.same_calls(&sites[0])
    };
    assert!(other(|site| site.module = 7) && !other(|site| site.octave += 1));
    assert!(!other(|site| site.operation = Operation::Zero));

    let (body, _) = text.rsplit_once("end ").expect("an end");
    let strange = ended(format!("{body}colour red\n"));
    assert!(
        Section::parse(strange.as_bytes()).is_err() && Section::sealed(strange.as_bytes()).is_ok()
    );
    let later = ended(body.replace("cachewise-program 2", "cachewise-program 3"));
    let refused = Section::sealed(later.as_bytes()).map(|_| ());
    assert_eq!(refused, Err(SectionError::OtherVersion(3)));
    let damaged = strange.replace("12345", "12346");
    assert!(Section::sealed(damaged.as_bytes()).is_err());
    assert_eq!(
        Section::sealed("x".repeat(MAX_BYTES + 1).as_bytes()).map(|_| ()),
        Err(SectionError::TooLarge)
    );
}

#[test]
fn damage_is_told() {
    let text = written(&[site(Outcome::CannotTell(Why::TooFew))]);
    let error = |text: &str| Section::parse(text.as_bytes()).expect_err("refused");
    assert_eq!(error(""), SectionError::NotASection);
    assert_eq!(error("cachewise-program 9\n"), SectionError::OtherVersion(9));
    assert!(error("cachewise-program 1\n").to_string().ends_with("learned anew"));
    assert!(error("cachewise-program 9\n").to_string().ends_with("accepted 2"));
    // Two million bytes are minutes under Miri.
    if !cfg!(miri) {
        assert_eq!(error(&"x".repeat(MAX_BYTES)), SectionError::NotASection);
    }
    assert_eq!(error(&"x".repeat(MAX_BYTES + 1)), SectionError::TooLarge);
    assert_eq!(error(&text[..text.len() - 40]), SectionError::Truncated);
    assert_eq!(error(&text.replace("12345", "12346")), SectionError::Damaged);
    assert_eq!(
        error(&text.replace(" copy ", " compare ")).to_string(),
        "line 4, operation: accepted copy, move, fill or zero"
    );
    assert_eq!(
        error(&text.replace("module 0", "colour 0")).to_string(),
        "line 3, key: accepted program, cpu, written, module, site or end"
    );
    // No byte of it can be changed without somebody noticing; under Miri, which takes long, some of them.
    for at in (0..text.len()).step_by(if cfg!(miri) { 101 } else { 1 }) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(Section::parse(&bytes).is_err(), "byte {at}");
    }
}
