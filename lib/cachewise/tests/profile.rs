//! The profile's text: round trips, every kind of damage, files.
#![cfg(feature = "std")]

use cachewise::Reuse;
use cachewise::cpu::{Caches, Cpu, Signature, Text};
use cachewise::profile::{
    Decision, FIRST_SIZE, LIBC, MAX_BYTES, MAX_SIZE, OPERATIONS, Profile, ProfileError,
    ProfileText, Record, fnv1a64, hints, user_path,
};
use cachewise_kernels::{Features, Operation, TABLE};
use proptest::prelude::*;

fn sealed(body: &str) -> Vec<u8> {
    let lines = body.lines().count();
    format!("{body}end {lines} fnv1a64:{:016x}\n", fnv1a64(body.as_bytes())).into_bytes()
}

const HEAD: &str = "cachewise-profile 2\ncpu AuthenticAMD 25 1 1 AMD EPYC\n\
                    caches 32768 524288 33554432\n";

fn error_of(more: &str) -> String {
    ProfileText::parse(&sealed(&format!("{HEAD}{more}"))).expect_err(more).to_string()
}

prop_compose! {
    fn decisions_of(operation: Operation, reuse: Reuse)
        (crossovers in prop::collection::btree_set(FIRST_SIZE + 1..u64::MAX, 0..5),
         kernels in prop::collection::vec("[a-z0-9.]{1,20}", 6))
        -> Vec<Decision> {
        let starts = std::iter::once(FIRST_SIZE).chain(crossovers.iter().copied());
        let ends = crossovers.iter().map(|next| next - 1).chain([MAX_SIZE]);
        let ranges = starts.zip(ends).zip(kernels);
        ranges.map(|((from, to), kernel)| {
            let nearest = (kernel.len() > 15).then(|| kernel.clone());
            let kernel = if nearest.is_some() { LIBC.to_owned() } else { kernel };
            Decision { operation, reuse, from, to, kernel, nearest }
        }).collect()
    }
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let rows = OPERATIONS.into_iter().flat_map(|operation| {
        hints(operation)
            .iter()
            .map(move |reuse| prop_oneof![Just(vec![]), decisions_of(operation, *reuse)])
    });
    let text = "[^\\p{Cc}]{0,30}";
    let identity = ("[A-Za-z0-9._]{1,12}", any::<u32>(), any::<u32>(), any::<u32>(), text);
    let caches = (any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>());
    let record = prop::option::of(("[^\\p{Cc}]{1,30}", any::<u64>()));
    let free = (record, text, prop::collection::vec(text, 0..4));
    (identity, caches, free, rows.collect::<Vec<_>>()).prop_map(
        |((vendor, family, model, stepping, name), (l1d, l2, llc, clamped), free, rows)| Profile {
            cpu: Cpu {
                signature: Signature::new(&vendor, family, model, stepping),
                name: Text::new(&name),
            },
            caches: Caches { l1d, l2, llc, clamped },
            record: free.0.map(|(name, checksum)| Record { name, checksum }),
            written: free.1,
            decisions: rows.into_iter().flatten().collect(),
            notes: free.2,
            ..Profile::here()
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(profile in any_profile()) {
        prop_assert_eq!(Profile::parse(profile.to_text().as_bytes()), Ok(profile));
    }

    #[test]
    fn one_changed_byte_is_noticed(
        profile in any_profile(), at in any::<prop::sample::Index>(), change in 1u8..,
    ) {
        let mut text = profile.to_text().into_bytes();
        let at = at.index(text.len());
        text[at] ^= change;
        prop_assert!(Profile::parse(&text).is_err());
    }

    #[test]
    fn a_cut_off_file_is_noticed(profile in any_profile(), at in any::<prop::sample::Index>()) {
        let text = profile.to_text().into_bytes();
        prop_assert!(Profile::parse(&text[..at.index(text.len())]).is_err());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ProfileText::parse(&bytes).map_err(|error| error.to_string());
        let behind_header = [HEAD.as_bytes(), &bytes].concat();
        let _ = ProfileText::parse(&behind_header).map_err(|error| error.to_string());
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec(
        "cpu|caches|record|written|note|decide|end|copy|equal|soon|max|256|0|18446744073709551616|\
         fnv1a64:0000000000000000| |\n|-1|é", 0..60)) {
        let _ = ProfileText::parse(&sealed(&format!("{HEAD}{}\n", words.concat())));
    }
}

#[test]
fn each_mistake_is_named_with_line_field_finding_and_what_is_accepted() {
    let parse = |text: &str| ProfileText::parse(text.as_bytes()).expect_err(text).to_string();
    assert_eq!(parse(""), r#"line 1, first line: found "", accepted "cachewise-profile 2""#);
    assert_eq!(
        parse("#!/bin/sh\n"),
        r##"line 1, first line: found "#!/bin/sh", accepted "cachewise-profile 2""##
    );
    assert_eq!(
        parse("cachewise-profile 4\nanything"),
        "line 1, version: found 4, accepted 2 (a newer cachewise wrote it)"
    );
    assert!(parse("cachewise-profile 1\nanything").starts_with("line 1, first line: found"));
    assert_eq!(parse(HEAD), "line 3, end: found the end of the file, accepted an end line");
    let cases = [
        (
            "decide copy unknown 256 12q copy.avx\n",
            r#"line 4, to: found "12q", accepted a whole number of bytes or max, not below from"#,
        ),
        (
            "decide copy unknown +256 max copy.avx\n",
            r#"line 4, from: found "+256", accepted a whole number of bytes"#,
        ),
        (
            "decide swap unknown 256 max copy.avx\n",
            r#"line 4, operation: found "swap", accepted copy, move, fill, zero, compare or equal"#,
        ),
        (
            "decide copy later 256 max copy.avx\n",
            r#"line 4, reuse: found "later", accepted unknown, soon or never"#,
        ),
        (
            "decide equal soon 256 max equal.sse2\n",
            r#"line 4, reuse: found "soon", accepted unknown"#,
        ),
        ("decide copy soon 256 max\n", r#"line 4, kernel: found "", accepted a kernel's name"#),
        (
            "decide copy soon 256 max copy.avx twice\n",
            r#"line 4, end of the line: found "twice", accepted nothing more"#,
        ),
        ("decide copy soon 512 max c\n", "line 4, from: found 512 (gap), accepted 256"),
        (
            "decide copy soon 256 999 c\ndecide copy soon 999 max c\n",
            "line 5, from: found 999 (overlap), accepted 1000",
        ),
        (
            "decide copy soon 256 max c\ndecide copy soon 256 max c\n",
            "line 5, from: found 256 (overlap), accepted no range after max",
        ),
        (
            "decide copy soon 256 999 c\n",
            "line 5, to: found no decision for copy soon from 1000 on, accepted max",
        ),
        (
            "frobnicate 1\n",
            r#"line 4, key: found "frobnicate", accepted cpu, caches, record, written, decide, note or end"#,
        ),
        ("cpu AuthenticAMD 25 1 1\n", "line 4, cpu: found a second one, accepted one"),
        (
            "record tune.jsonl fnv1a64:12\n",
            r#"line 4, checksum: found "fnv1a64:12", accepted fnv1a64: and 16 hexadecimal digits"#,
        ),
        ("note \u{7}\n", r#"line 4, note: found "?", accepted UTF-8 text on one line"#),
    ];
    for (more, message) in cases {
        assert_eq!(error_of(more), message);
    }
    assert_eq!(
        parse(&String::from_utf8(sealed("cachewise-profile 2\n")).expect("text")),
        "line 2, cpu: found none, accepted one"
    );
    let text = String::from_utf8(sealed(HEAD)).expect("text");
    assert!(parse(&text.replace("25", "26")).starts_with("line 4, checksum: found fnv1a64:"));
    assert_eq!(
        parse(&text.replace("end 3", "end 4")),
        "line 4, number of lines: found 4, accepted 3"
    );
    assert_eq!(
        parse(&format!("{text}more\n")),
        r#"line 5, line: found "more?", accepted nothing after the end line"#
    );
    assert_eq!(
        ProfileText::parse(&vec![b'x'; MAX_BYTES + 1]).map(|_| ()),
        Err(ProfileError::TooLarge)
    );
}

#[test]
fn a_profile_must_suit_the_cpu() {
    let (here, all) = (Signature::new("AuthenticAMD", 25, 1, 0), Features::detect());
    let check = |signature: Signature, available: Features, decide: &str| {
        let text = sealed(&format!("{HEAD}{decide}"));
        let profile = ProfileText::parse(&text).expect("well formed");
        profile.check(&signature, available).map_err(|error| error.to_string())
    };
    assert_eq!(check(here, all, ""), Ok(()), "the stepping may differ");
    assert_eq!(
        check(Signature::new("AuthenticAMD", 25, 17, 1), all, ""),
        Err("line 2, cpu: found \"AuthenticAMD 25 1 1\", accepted \"AuthenticAMD 25 17 1\" \
             (this CPU)"
            .into())
    );
    assert_eq!(
        check(here, all, "decide copy soon 256 max copy.warp\n"),
        Err("line 4, kernel: found \"copy.warp\", accepted a name from `cachewise list kernels`"
            .into())
    );
    assert_eq!(
        check(here, all, "decide copy soon 256 max move.bytes\n"),
        Err("line 4, kernel: found \"move.bytes\", accepted a kernel whose operation is copy"
            .into())
    );
    let decide =
        |name: &str, operation: Operation| format!("decide {operation} unknown 256 max {name}\n");
    let byte_operation = |operation| OPERATIONS.contains(&operation);
    if let Some(kernel) = TABLE.iter().find(|k| !k.deploy && byte_operation(k.operation())) {
        let error = check(here, all, &decide(kernel.name, kernel.operation())).unwrap_err();
        assert!(error.ends_with("accepted a kernel that is not only there to be measured"));
    }
    let needy = TABLE
        .iter()
        .find(|k| k.deploy && byte_operation(k.operation()) && k.requires.contains(Features::AVX));
    if let Some(kernel) = needy {
        let without = all.without(Features::AVX);
        let beyond = decide(kernel.name, kernel.operation());
        assert_eq!(check(here, without, &beyond), Ok(()), "the rest of it is followed");
    }
}

#[test]
fn libc_is_a_decision() {
    let (here, all) = (Signature::new("AuthenticAMD", 25, 1, 0), Features::detect());
    let check = |decide: &str| {
        let text = sealed(&format!("{HEAD}decide copy unknown 256 max {decide}\n"));
        let profile = ProfileText::parse(&text).map_err(|error| error.to_string())?;
        profile.check(&here, all).map_err(|error| error.to_string())?;
        let line = profile.decisions().next().expect("a decision");
        Ok((line.kernel.to_owned(), line.nearest.map(str::to_owned)))
    };
    assert_eq!(check("libc"), Ok(("libc".to_owned(), None)));
    let beside = Some("copy.bytes".to_owned());
    assert_eq!(check("libc copy.bytes"), Ok(("libc".to_owned(), beside)));
    assert_eq!(check("copy.bytes"), Ok(("copy.bytes".to_owned(), None)));
    for (decide, error) in [
        (
            "libc copy.warp",
            "line 4, kernel: found \"copy.warp\", accepted a name from `cachewise list kernels`",
        ),
        (
            "libc move.bytes",
            "line 4, kernel: found \"move.bytes\", accepted a kernel whose operation is copy",
        ),
        (
            "copy.bytes copy.bytes",
            "line 4, end of the line: found \"copy.bytes\", accepted nothing more",
        ),
        ("libc copy.bytes 7", "line 4, end of the line: found \"7\", accepted nothing more"),
    ] {
        assert_eq!(check(decide), Err(error.to_owned()));
    }
}

#[test]
fn the_users_path_names_the_cpu() {
    let path = user_path().expect("HOME is set in tests");
    let Signature { vendor, family, model, stepping } = Signature::detect();
    let name = format!("cachewise/{vendor}-{family}-{model}-{stepping}.profile");
    assert!(path.is_absolute() && path.ends_with(name));
}

#[test]
fn the_example_in_the_documentation_is_a_profile() {
    let document = include_str!("../../../docs/schema/profile.md");
    let example = document.split("```\n").nth(1).expect("the first block");
    let profile = Profile::parse(example.as_bytes()).expect("well formed");
    assert_eq!(profile.decisions.len(), 4);
    let names = |name: &str| TABLE.iter().any(|kernel| kernel.name == name && kernel.deploy);
    if cfg!(target_arch = "x86_64") {
        let known = |name: &str| name == LIBC || names(name);
        assert!(profile.decisions.iter().all(|decision| known(&decision.kernel)));
    }
}
