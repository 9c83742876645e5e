//! No circle of files among the verbs: who reads one reads what it uses, and is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The files of `verbs/` that each of them names.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verbs");
    let files: BTreeMap<String, String> = fs::read_dir(folder)
        .expect("the verbs")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("text"))
        })
        .filter(|(name, _)| name != "mod")
        .collect();
    let named = |text: &str, other: &str| {
        ["super::", "crate::verbs::", "verbs::"].iter().any(|before| {
            text.match_indices(&format!("{before}{other}")).any(|(at, found)| {
                !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        }) || text.split("super::{").skip(1).any(|list| {
            let names = list.split('}').next().unwrap_or_default().split(',');
            names.map(|name| name.trim().split("::").next()).any(|name| name == Some(other))
        })
    };
    files
        .iter()
        .map(|(name, text)| {
            let others = files.keys().filter(|other| *other != name && named(text, other));
            (name.clone(), others.cloned().collect())
        })
        .collect()
}

#[test]
fn the_verbs_use_each_other_in_no_circle() {
    let mut left = uses();
    assert!(left["learn"].contains("exec") && left["outcome"].contains("redraw"), "{left:?}");
    // Whoever uses nobody who is left can be read first.
    while !left.is_empty() {
        let free = left.iter().find(|(_, used)| used.iter().all(|one| !left.contains_key(one)));
        let free = free.map(|(name, _)| name.clone());
        assert!(free.is_some(), "a circle among {left:?}");
        free.and_then(|name| left.remove(&name));
    }
}
