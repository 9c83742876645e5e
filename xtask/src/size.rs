//! `xtask size`: lines of Rust, lines of its tests and words of Markdown, beside those of the last release, which
//! `.ci/last-release` has (commit, lines, lines of tests, words): a release updates it with what this prints.

use crate::command::{root, tracked};
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::path::Path;

/// Prints the three sizes and what they were.
pub fn run() -> Result<()> {
    let mut now = [0; 3];
    for name in tracked(".rs")? {
        let text = fs::read_to_string(root().join(&name))?;
        now[0] += text.lines().count();
        now[1] += if is_of_tests(&name) { text.lines().count() } else { inner_tests(&text) };
    }
    for name in tracked(".md")? {
        now[2] += fs::read_to_string(root().join(name))?.split_whitespace().count();
    }
    let last = fs::read_to_string(root().join(".ci/last-release"))?;
    let (commit, figures) = last.trim().split_once(' ').context("a commit and figures")?;
    let then: Vec<usize> = figures.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    ensure!(then.len() == now.len(), ".ci/last-release: expected three figures, found {figures}");
    for ((what, now), then) in
        ["lines of Rust", "of them tests", "words of Markdown"].iter().zip(now).zip(then)
    {
        let change = (now as f64 / then as f64 - 1.0) * 100.0;
        println!("size: {now} {what}, {then} at {commit}: {change:+.1} %");
    }
    Ok(())
}

/// Returns whether all of a file is tests.
fn is_of_tests(name: &Path) -> bool {
    let stem = name.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    name.components().any(|part| part.as_os_str() == "tests")
        || stem == "tests"
        || stem.ends_with("_tests")
}

/// Lines of modules under `#[cfg(test)]`, from the attribute to the brace at its margin.
fn inner_tests(text: &str) -> usize {
    let (mut found, mut end) = (0, None::<String>);
    for line in text.lines() {
        let item = line.trim_start();
        if end.is_none() && item.starts_with("#[cfg(test)]") {
            end = Some(format!("{}}}", &line[..line.len() - item.len()]));
        }
        found += usize::from(end.is_some());
        // A module in a file of its own ends with its name.
        let is_elsewhere = item.starts_with("mod ") && item.ends_with(';');
        if is_elsewhere || end.as_deref() == Some(line) {
            end = None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_the_product() {
        let text = "fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(inner_tests(text), 5);
        assert_eq!(inner_tests("#[cfg(test)]\nmod tests;\nfn c() {\n}\n"), 2);
        let names = ["lib/a/tests/x.rs", "lib/a/src/tests.rs", "lib/a/src/b_tests.rs"];
        assert!(names.iter().all(|name| is_of_tests(Path::new(name))));
        assert!(!is_of_tests(Path::new("lib/a/src/test.rs")));
    }
}
