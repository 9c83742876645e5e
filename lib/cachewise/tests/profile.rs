//! The profile's text: round trips, every kind of damage, files.
#![cfg(feature = "std")]

use cachewise::Reuse;
use cachewise::cpu::{Caches, Cpu, Signature, Text};
use cachewise::profile::{
    Decision, FIRST_SIZE, LIBC, MAX_BYTES, MAX_SIZE, OPERATIONS, Profile, ProfileText, Record,
    fnv1a64, hints, user_path,
};
use cachewise_kernels::{Features, Operation, TABLE};
use proptest::prelude::*;

fn sealed(body: &str) -> Vec<u8> {
    let lines = body.lines().count();
    format!("{body}end {lines} fnv1a64:{:016x}\n", fnv1a64(body.as_bytes())).into_bytes()
}

const HEAD: &str = "cachewise-profile 2\ncpu AuthenticAMD 25 1 1 AMD EPYC\n\
                    caches 32768 524288 33554432\n";

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

/// Line and field of the refusal.
fn refused(text: &[u8]) -> (Option<u32>, &'static str) {
    let error = ProfileText::parse(text).expect_err("a mistake");
    (error.line(), error.field())
}

#[test]
fn each_mistake_is_named_by_line_and_field() {
    let cases = [
        ("decide copy unknown 256 12q copy.avx\n", 4, "to"),
        ("decide copy unknown 256 255 copy.avx\n", 4, "to"),
        ("decide copy unknown +256 max copy.avx\n", 4, "from"),
        ("decide swap unknown 256 max copy.avx\n", 4, "operation"),
        ("decide copy later 256 max copy.avx\n", 4, "reuse"),
        ("decide equal soon 256 max equal.sse2\n", 4, "reuse"),
        ("decide copy soon 256 max\n", 4, "kernel"),
        ("decide copy soon 256 max copy.avx twice\n", 4, "end of the line"),
        ("decide copy soon 256 max libc copy.bytes 7\n", 4, "end of the line"),
        ("decide copy soon 512 max c\n", 4, "from"),
        ("decide copy soon 256 999 c\ndecide copy soon 999 max c\n", 5, "from"),
        ("decide copy soon 256 max c\ndecide copy soon 256 max c\n", 5, "from"),
        ("decide copy soon 256 999 c\n", 5, "to"),
        ("frobnicate 1\n", 4, "key"),
        ("cpu AuthenticAMD 25 1 1\n", 4, "cpu"),
        ("cpu Authentic\u{e4}AMD 25 1 1\n", 4, "vendor"),
        ("caches 1 2 3 guessed\n", 4, "fourth field"),
        ("record tune.jsonl fnv1a64:12\n", 4, "checksum"),
        ("record  fnv1a64:0123456789abcdef\n", 4, "record"),
        ("note \u{7}\n", 4, "text"),
        ("entry \u{7}\n", 4, "text"),
    ];
    for (more, line, field) in cases {
        assert_eq!(refused(&sealed(&format!("{HEAD}{more}"))), (Some(line), field), "{more}");
    }
    let text = String::from_utf8(sealed(HEAD)).expect("text");
    for (text, line, field) in [
        (String::new(), Some(1), "first line"),
        ("#!/bin/sh\n".into(), Some(1), "first line"),
        ("cachewise-profile 1\nanything".into(), Some(1), "first line"),
        ("cachewise-profile 4\nanything".into(), Some(1), "version"),
        (HEAD.into(), Some(3), "end"),
        (String::from_utf8(sealed("cachewise-profile 2\n")).expect("text"), Some(2), "cpu"),
        (text.replace("25", "26"), Some(4), "checksum"),
        (text.replace("end 3", "end 4"), Some(4), "number of lines"),
        (format!("{text}more\n"), Some(5), "line"),
        ("x".repeat(MAX_BYTES + 1), None, "size of the file"),
    ] {
        assert_eq!(refused(text.as_bytes()), (line, field), "{}", &text[..text.len().min(99)]);
    }
}

#[test]
fn a_profile_must_suit_the_cpu() {
    let (here, all) = (Signature::new("AuthenticAMD", 25, 1, 0), Features::detect());
    let other = Signature::new("AuthenticAMD", 25, 17, 1);
    let deployed = |deploy: bool, needs: Features| {
        let is_one = |k: &&cachewise_kernels::Kernel| {
            k.deploy == deploy && k.requires.contains(needs) && OPERATIONS.contains(&k.operation())
        };
        let kernel = TABLE.iter().find(is_one)?;
        Some(format!("{} unknown 256 max {}", kernel.operation(), kernel.name))
    };
    let beyond = deployed(true, Features::AVX).expect("a kernel with AVX");
    // Without the feature `lab` there is none.
    let (historic, refused) = deployed(false, Features::NONE)
        .map_or((String::new(), None), |kernel| (kernel, Some("kernel")));
    // Stepping and what is beyond this CPU alone are no mistakes.
    for (signature, available, decide, field) in [
        (here, all, String::new(), None),
        (other, all, String::new(), Some("cpu")),
        (here, all, "copy soon 256 max copy.warp".into(), Some("kernel")),
        (here, all, "copy soon 256 max move.bytes".into(), Some("kernel")),
        (here, all, "copy soon 256 max libc".into(), None),
        (here, all, "copy soon 256 max libc copy.bytes".into(), None),
        (here, all, "copy soon 256 max libc copy.warp".into(), Some("kernel")),
        (here, all, "copy soon 256 max copy.sse2.or-libc".into(), None),
        (here, all, "copy soon 256 max copy.bytes.or-libc".into(), Some("kernel")),
        (here, all, "zero soon 256 max zero.sse2.or-libc".into(), Some("kernel")),
        (here, all, historic, refused),
        (here, all.without(Features::AVX), beyond, None),
    ] {
        let line = if decide.is_empty() { decide } else { format!("decide {decide}\n") };
        let text = sealed(&format!("{HEAD}{line}"));
        let profile = ProfileText::parse(&text).expect("well formed");
        let found = profile.check(&signature, available).map_err(|error| error.field()).err();
        assert_eq!(found, field, "{line}");
    }
}

/// Profiles that earlier versions wrote.
#[test]
fn lines_of_rooms_that_left_are_read_and_ignored() {
    let decide = "decide copy unknown 256 max libc copy.bytes\n";
    let old = "entry copy avx2\nentry copy avx1024\nparallel copy spawned 2 never\nprogram sh copy 0 max never\n";
    let read = |lines: &str| Profile::parse(&sealed(&format!("{HEAD}{lines}"))).expect("read");
    assert_eq!(read(&format!("{decide}{old}")), read(decide));
    for file in std::fs::read_dir("../../record").expect("records").flatten() {
        if file.path().extension() == Some("profile".as_ref()) {
            let profile = Profile::read(&file.path()).expect("a kept profile");
            assert!(!profile.decisions.is_empty());
        }
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
