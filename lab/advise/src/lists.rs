//! Variables that hold lists: what the caller has set is extended, never replaced.

/// Separators of the variables that are lists; of a list of settings a later one of the same name counts.
const LISTS: [(&str, &[char]); 5] = [
    ("GLIBC_TUNABLES", &[':']),
    ("LD_PRELOAD", &[':', ' ']),
    ("MALLOC_CONF", &[',']),
    ("_RJEM_MALLOC_CONF", &[',']),
    ("JAVA_TOOL_OPTIONS", &[' ']),
];

/// The separator of a variable that is a list.
pub fn separator(variable: &str) -> Option<char> {
    LISTS.iter().find(|(name, _)| *name == variable).map(|(_, separators)| separators[0])
}

/// The name of a setting in a list: `a` of `a=1` and of `a:1`.
fn key(setting: &str) -> &str {
    setting.split(['=', ':']).next().unwrap_or(setting)
}

/// The value that a variable has where the caller's value is extended by `ours`. Libraries of ours stand before the
/// caller's; settings of ours replace the caller's of the same name.
#[must_use]
pub fn extended(name: &str, caller: Option<&str>, ours: &str) -> String {
    let Some((_, separators)) = LISTS.iter().find(|(list, _)| *list == name) else {
        return ours.to_owned();
    };
    let parts = |text: &str| -> Vec<String> {
        let parts = text.split(*separators).map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (theirs, own) = (parts(caller.unwrap_or_default()), parts(ours));
    let is_preload = name == "LD_PRELOAD";
    let stays = |part: &String| {
        own.iter().all(|one| if is_preload { one != part } else { key(one) != key(part) })
    };
    let theirs: Vec<String> = theirs.into_iter().filter(stays).collect();
    let all = if is_preload { [own, theirs].concat() } else { [theirs, own].concat() };
    all.join(&separators[0].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_list_is_extended_and_never_replaced() {
        let tunables = |caller, ours| extended("GLIBC_TUNABLES", caller, ours);
        assert_eq!(tunables(None, "b=2"), "b=2");
        assert_eq!(tunables(Some(""), "b=2"), "b=2");
        assert_eq!(tunables(Some("a=1:c=3"), "b=2"), "a=1:c=3:b=2");
        assert_eq!(tunables(Some("a=1:b=9:"), "b=2:d=4"), "a=1:b=2:d=4");
        let conf = |caller| extended("MALLOC_CONF", Some(caller), "thp:always,dirty_decay_ms:-1");
        assert_eq!(conf("narenas:2,thp:never"), "narenas:2,thp:always,dirty_decay_ms:-1");
        let preload = |caller| extended("LD_PRELOAD", Some(caller), "/l/jemalloc.so");
        assert_eq!(preload("/a.so /b.so"), "/l/jemalloc.so:/a.so:/b.so");
        assert_eq!(preload("/l/jemalloc.so"), "/l/jemalloc.so");
        assert_eq!(extended("MIMALLOC_PURGE_DELAY", Some("10"), "-1"), "-1");
    }
}
