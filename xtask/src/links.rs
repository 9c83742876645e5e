//! Every link of the repository's Markdown: that files and headings which are linked to are there.
//! Addresses outside are not asked; they are listed as not checked.

use crate::command;
use anyhow::{Context as _, Result, bail};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Checks what is local, and lists what is not.
pub fn run() -> Result<()> {
    let root = command::root();
    let mut texts = BTreeMap::new();
    let files = tracked(root)?;
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")) {
        let text = std::fs::read_to_string(root.join(file));
        texts.insert(file.clone(), text.with_context(|| file.display().to_string())?);
    }
    let exists = |path: &Path| root.join(path).exists();
    let found = check(&texts, &exists);
    println!("{} links in {} files lead to what is there", found.local, texts.len());
    println!("not checked, outside the repository: {}", found.outside.len());
    found.outside.iter().for_each(|address| println!("  {address}"));
    if !found.broken.is_empty() {
        bail!("broken links:\n  {}", found.broken.join("\n  "));
    }
    Ok(())
}

/// What Git tracks, or would if it were added.
fn tracked(root: &Path) -> Result<Vec<PathBuf>> {
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = command::output(Command::new("git").args(listed).current_dir(root))?;
    let names = String::from_utf8(output.stdout)?;
    let files = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(files.filter(|file| root.join(file).is_file()).collect())
}

#[derive(Default)]
struct Found {
    local: usize,
    broken: Vec<String>,
    outside: BTreeSet<String>,
}

fn check(texts: &BTreeMap<PathBuf, String>, exists: &dyn Fn(&Path) -> bool) -> Found {
    let mut found = Found::default();
    for (file, text) in texts {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                found.outside.insert(target);
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = file.parent().unwrap_or(Path::new(""));
            let to = if path.is_empty() { Some(file.clone()) } else { within(folder, path) };
            let why = match to {
                None => Some("leaves the repository"),
                Some(to) if !exists(&to) && !texts.contains_key(&to) => Some("no such file"),
                Some(to) if !heading.is_empty() => match texts.get(&to) {
                    Some(text) if !anchors(text).contains(heading) => Some("no such heading"),
                    _ => None,
                },
                _ => None,
            };
            match why {
                None => found.local += 1,
                Some(why) => {
                    found.broken.push(format!("{}:{line}: {target}: {why}", file.display()));
                }
            }
        }
    }
    found
}

/// A path relative to a folder, none where it leads out of the repository.
fn within(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut to = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                if !to.pop() {
                    return None;
                }
            }
            Component::Normal(name) => to.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(to)
}

/// What the links of a text lead to, each with its line: inline ones and reference definitions, none of
/// which stands in code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let code = Regex::new(r"`[^`]*`").expect("a pattern");
    let inline = Regex::new(r#"\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)"#).expect("a pattern");
    let reference = Regex::new(r"^\s{0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$").expect("a pattern");
    let mut found = Vec::new();
    for (nth, line) in prose(text) {
        let line = code.replace_all(line, "``");
        let links = inline.captures_iter(&line).chain(reference.captures_iter(&line));
        found.extend(links.map(|link| (nth, link[1].to_owned())));
    }
    found
}

/// The lines outside fenced code, counted from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        if !fence && !fenced {
            lines.push((nth + 1, line));
        }
        fenced ^= fence;
    }
    lines
}

/// The names that headings get: lower case, blanks as hyphens, nothing else but letters, digits, `-` and
/// `_`; the second of one name ends in `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let shown = Regex::new(r"\[([^\]]*)\]\([^)]*\)").expect("a pattern");
    let mut names = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let title = shown.replace_all(title.trim(), "$1").to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let times = seen.entry(name.clone()).or_default();
        names.insert(if *times == 0 { name } else { format!("{name}-{times}") });
        *times += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_local_link_leads_somewhere() {
        run().expect("the list says which do not");
    }

    #[test]
    fn what_is_not_there_is_told_with_its_line() {
        let files = [
            (
                "README.md",
                "# One\nsee [a](docs/a.md), [b](docs/a.md#two-words) and [c](docs/b.md)\n",
            ),
            ("docs/a.md", "## Two `words`!\n[up](../README.md#one) [out](../../x) [no](#three)\n"),
            (
                "docs/c.md",
                "`[x](y)` <https://a.b>\n```\n[x](y)\n```\n[r]: z.md\n[w](https://c.d)\n",
            ),
        ];
        let texts: BTreeMap<PathBuf, String> =
            files.iter().map(|(name, text)| (name.into(), (*text).to_owned())).collect();
        let found = check(&texts, &|_| false);
        assert_eq!(found.local, 3);
        assert_eq!(
            found.broken,
            [
                "README.md:2: docs/b.md: no such file",
                "docs/a.md:2: ../../x: leaves the repository",
                "docs/a.md:2: #three: no such heading",
                "docs/c.md:5: z.md: no such file",
            ]
        );
        assert_eq!(found.outside.iter().collect::<Vec<_>>(), ["https://c.d"]);
    }

    #[test]
    fn headings_of_one_name_are_numbered() {
        let names = anchors("# A b\n## A b\n```\n# no\n```\n#hash\n### 003: `x_y`, z\n");
        assert_eq!(names.iter().collect::<Vec<_>>(), ["003-x_y-z", "a-b", "a-b-1"]);
    }
}
