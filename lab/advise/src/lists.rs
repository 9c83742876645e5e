//! Variables that hold lists: what the caller has set is extended, never replaced.

/// Separators of the variables that are lists; of a list of settings a later one of the same name counts.
const LISTS: [(&str, &[char]); 10] = [
    ("GLIBC_TUNABLES", &[':']),
    ("LD_PRELOAD", &[':', ' ']),
    ("MALLOC_CONF", &[',']),
    ("_RJEM_MALLOC_CONF", &[',']),
    ("LD_AUDIT", &[':']),
    ("JAVA_TOOL_OPTIONS", &[' ']),
    ("JDK_JAVA_OPTIONS", &[' ']),
    ("_JAVA_OPTIONS", &[' ']),
    ("JAVA_OPTS", &[' ']),
    ("NODE_OPTIONS", &[' ']),
];

/// The separator of a variable that is a list.
pub fn separator(variable: &str) -> Option<char> {
    LISTS.iter().find(|(name, _)| *name == variable).map(|(_, separators)| separators[0])
}

/// The name of a setting in a list: `a` of `a=1` and of `a:1`.
fn key(setting: &str) -> &str {
    setting.split(['=', ':']).next().unwrap_or(setting)
}

/// Returns whether a variable's value has what was to be set: every part, since a program's wrapper may have put others
/// before or behind it.
#[must_use]
pub fn has(name: &str, value: &str, wanted: &str) -> bool {
    let list = LISTS.iter().find(|(list, _)| *list == name);
    let separators = list.map_or(&[':', ' '][..], |(_, separators)| separators);
    let parts = |text| str::split(text, separators).map(str::trim).filter(|part| !part.is_empty());
    parts(wanted).all(|part| parts(value).any(|one| one == part))
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
    // Libraries are looked through from the first on; of settings and options the last of a name counts. Of options a
    // name may stand for many (`-XX:`): only those that are the same are left out.
    let is_path = name.starts_with("LD_");
    let have_names = !is_path && separators[0] != ' ';
    let stays = |part: &String| {
        own.iter().all(|one| if have_names { key(one) != key(part) } else { one != part })
    };
    let theirs: Vec<String> = theirs.into_iter().filter(stays).collect();
    let all = if is_path { [own, theirs].concat() } else { [theirs, own].concat() };
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
        for (variable, before, setting, all) in [
            ("GLIBC_TUNABLES", "a.b=7:x=0::a.b=8", "a.b=1", "x=0:a.b=1"),
            ("GLIBC_TUNABLES", "x=0", "", "x=0"),
            ("_RJEM_MALLOC_CONF", "narenas:1", "retain:false", "narenas:1,retain:false"),
            ("LD_PRELOAD", "/a.so /b.so:/c.so", "/b.so", "/b.so:/a.so:/c.so"),
            ("LD_AUDIT", "/a.so", "/b.so", "/b.so:/a.so"),
            // Java's options of one name are many.
            (
                "JAVA_TOOL_OPTIONS",
                "-XX:+UseG1GC -Xmx1g",
                "-XX:+UseTransparentHugePages",
                "-XX:+UseG1GC -Xmx1g -XX:+UseTransparentHugePages",
            ),
            ("NODE_OPTIONS", "--a=1", "--b=2", "--a=1 --b=2"),
            ("MALLOC_ARENA_MAX", "2", "1", "1"),
        ] {
            assert_eq!(extended(variable, Some(before), setting), all, "{variable}");
            assert!(has(variable, all, setting), "{variable}");
            assert!(setting.is_empty() || !has(variable, "a.b=12", setting), "{variable}");
        }
    }
}
