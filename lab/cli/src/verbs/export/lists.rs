//! Variables of the environment that are lists: a setting extends what is there.

/// Separators of a variable's entries, and of an entry's name and value; `None` for a variable that is one value. The
/// dynamic linker takes spaces too.
fn parts(variable: &str) -> Option<(&'static [char], Option<char>)> {
    Some(match variable {
        "GLIBC_TUNABLES" => (&[':'], Some('=')),
        "MALLOC_CONF" => (&[','], Some(':')),
        "LD_PRELOAD" => (&[':', ' '], None),
        _ => return None,
    })
}

/// The value of a variable that has `setting` in force and keeps the other entries of `before`. What is preloaded
/// comes first; of the other lists the last entry of a name counts.
pub fn extended(variable: &str, before: &str, setting: &str) -> String {
    let Some((separators, assigns)) = parts(variable) else { return setting.to_owned() };
    let entries = |list: &'static [char], text: &str| -> Vec<String> {
        text.split(list).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    let name = |entry: &str| -> String {
        let found = assigns.and_then(|assigns| entry.split_once(assigns));
        found.map_or(entry, |(name, _)| name).to_owned()
    };
    let ours = entries(separators, setting);
    let is_ours = |entry: &String| ours.iter().any(|own| name(own) == name(entry));
    let mut others = entries(separators, before);
    others.retain(|entry| !is_ours(entry));
    let all = if assigns.is_none() { [ours, others] } else { [others, ours] };
    all.concat().join(&separators[0].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_extended_and_a_value_replaced() {
        for (variable, before, setting, all) in [
            ("GLIBC_TUNABLES", "", "a.b=1", "a.b=1"),
            (
                "GLIBC_TUNABLES",
                "glibc.pthread.rseq=0",
                "a.b=1:c=2",
                "glibc.pthread.rseq=0:a.b=1:c=2",
            ),
            ("GLIBC_TUNABLES", "a.b=7:x=0::a.b=8", "a.b=1", "x=0:a.b=1"),
            ("GLIBC_TUNABLES", "x=0", "", "x=0"),
            ("MALLOC_CONF", "narenas:1,retain:true", "retain:false", "narenas:1,retain:false"),
            ("LD_PRELOAD", "/a.so /b.so:/c.so", "/b.so", "/b.so:/a.so:/c.so"),
            ("MIMALLOC_PURGE_DELAY", "10", "-1", "-1"),
        ] {
            assert_eq!(extended(variable, before, setting), all, "{variable}");
        }
    }
}
