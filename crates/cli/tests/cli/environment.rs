//! `docs/environment.md` names every variable that the sources name, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that begin as ours do and are guards of C headers.
const GUARDS: &str = "_H";

fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("CACHEWISE_") {
        let end = text[at..].find(|c| !is_part(c)).map_or(text.len(), |length| at + length);
        let name = text[at..end].trim_end_matches('_');
        if name != "CACHEWISE" && !name.ends_with(GUARDS) {
            found.insert(name.to_owned());
        }
    }
    found
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                sources(&path, into);
            }
        } else if path
            .extension()
            .is_some_and(|kind| ["rs", "c", "h", "sh", "py"].iter().any(|k| kind == *k))
            && path.file_name() != Path::new(file!()).file_name()
        {
            into.push(path);
        }
    }
}

#[test]
fn the_page_and_the_sources_name_the_same_variables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "packaging", "python"] {
        sources(&root.join(folder), &mut files);
    }
    let mut used = BTreeSet::new();
    for file in &files {
        used.extend(names(&String::from_utf8_lossy(&fs::read(file).expect("readable"))));
    }
    let told = names(&fs::read_to_string(root.join("docs/environment.md")).expect("the page"));
    assert!(used.len() >= 8, "{used:?}");
    let missing: Vec<_> = used.difference(&told).collect();
    let gone: Vec<_> = told.difference(&used).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not on the page: {missing:?}; nowhere else: {gone:?}"
    );
}

#[test]
fn names_are_whole_words_and_no_guards() {
    let text = "CACHEWISE_A=1 \"CACHEWISE_B_C\" CACHEWISE_* CACHEWISE_POOL_H CACHEWISE_D_";
    let found: Vec<_> = names(text).into_iter().collect();
    assert_eq!(found, ["CACHEWISE_A", "CACHEWISE_B_C", "CACHEWISE_D"]);
}
