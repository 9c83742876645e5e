//! Verbs and options that left, each with what to use now: whoever types one is told in a line.

/// The words that were typed, and what takes their place.
const REMOVED: &[(&str, &str)] = &[
    (
        "exec --pool",
        "glibc is as fast with GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824; \
         `cachewise advise -- PROGRAM` says what a program gains",
    ),
    (
        "exec --name",
        "hints for one program gained nothing; `cachewise advise -- PROGRAM` says what does",
    ),
    (
        "list entries",
        "`cachewise explain --op OPERATION --size SIZE` names the entry stub: CPUID decides",
    ),
    ("explain --program", "`cachewise explain --reuse soon` or `--reuse never`"),
];

/// What takes the place of a verb, or of one of its options, where there was such a one.
pub fn instead_of(verb: &str, option: Option<&str>) -> Option<String> {
    let found = REMOVED.iter().find(|(words, _)| match words.split_once(' ') {
        None => option.is_none() && *words == verb,
        Some((of, left)) => {
            let typed = option.and_then(|option| option.split('=').next());
            of == verb && typed == Some(left)
        }
    });
    found.map(|(words, now)| format!("{words} is no more; use now: {now}"))
}

/// The same of a command line that was refused.
pub fn instead_of_line(words: impl IntoIterator<Item = String>) -> Option<String> {
    let mut words = words.into_iter();
    let verb = words.next()?;
    let typed = words.take_while(|word| word != "--").map(Some);
    std::iter::once(None).chain(typed).find_map(|word| instead_of(&verb, word.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_removed_word_is_answered_and_no_other() {
        for (line, is_answered) in [
            ("exec --pool 1G -- true", true),
            ("exec --pool=1G true", true),
            ("explain --op copy --program x", true),
            ("explain --op copy --programs x", false),
            ("list entries --op copy", true),
            ("exec -- prog --pool", false),
            ("run --pool", false),
            ("", false),
        ] {
            let words = line.split(' ').map(str::to_owned);
            assert_eq!(instead_of_line(words).is_some(), is_answered, "{line}");
        }
        let unlike = |other: &&(&str, &str)| other.0.contains("  ") || other.1.is_empty();
        assert_eq!(REMOVED.iter().find(unlike), None);
    }
}
