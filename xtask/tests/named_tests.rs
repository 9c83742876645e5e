//! Tests that the decisions name are there.

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of this project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|end| endings.iter().any(|ending| end == *ending)) {
            found.push(path);
        }
    }
}

/// Four words and more, in small letters: nothing else between backticks looks so.
fn is_a_test(name: &str) -> bool {
    let plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    name.chars().all(plain) && name.matches('_').count() >= 3 && !name.starts_with('_')
}

#[test]
fn every_test_that_a_decision_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let (mut sources, mut pages) = (Vec::new(), Vec::new());
    files(&root.join("crates"), &["rs"], &mut sources);
    files(&root.join("docs/decisions"), &["md"], &mut pages);
    let code: String =
        sources.iter().map(|path| fs::read_to_string(path).expect("UTF-8")).collect();
    let mut named = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("UTF-8");
        for name in text.split('`').skip(1).step_by(2).filter(|name| is_a_test(name)) {
            named += 1;
            assert!(code.contains(&format!("fn {name}(")), "{}: no test {name}", page.display());
        }
    }
    assert!(named >= 25, "{named} tests are named");
}
