//! Every link of the repository's Markdown: that files and headings which are linked to are there.
//! Addresses outside are not asked; they are listed as not checked.

use crate::command::{root, tracked};
use anyhow::{Result, ensure};
use fs_err as fs;
use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Checks what is local, and lists what is not.
pub fn run() -> Result<()> {
    let mut texts = BTreeMap::new();
    for file in tracked(".md")? {
        let text = fs::read_to_string(root().join(&file))?;
        texts.insert(file, text);
    }
    let found = check(&texts, &|path| root().join(path).exists());
    println!("{} links in {} files lead to what is there", found.local, texts.len());
    println!("not checked, outside the repository: {}", found.outside.len());
    found.outside.iter().for_each(|address| println!("  {address}"));
    ensure!(found.broken.is_empty(), "broken links:\n  {}", found.broken.join("\n  "));
    Ok(())
}

#[derive(Default)]
struct LinkCheck {
    local: usize,
    broken: Vec<String>,
    outside: BTreeSet<String>,
}

fn check(texts: &BTreeMap<PathBuf, String>, exists: &dyn Fn(&Path) -> bool) -> LinkCheck {
    let mut found = LinkCheck::default();
    for (file, text) in texts {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                found.outside.insert(target);
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = file.parent().unwrap_or(Path::new(""));
            let to = if path.is_empty() { Some(file.clone()) } else { within(folder, path) };
            let text = to.as_ref().and_then(|to| texts.get(to));
            let headless = |text| !heading.is_empty() && !anchors(text).contains(heading);
            let why = match &to {
                None => "leaves the repository",
                Some(to) if !exists(to) && text.is_none() => "no such file",
                Some(_) if text.is_some_and(|text| headless(text)) => "no such heading",
                Some(_) => {
                    found.local += 1;
                    continue;
                }
            };
            found.broken.push(format!("{}:{line}: {target}: {why}", file.display()));
        }
    }
    found
}

/// A path relative to a folder, none where it leads out of the repository.
fn within(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut to = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => to.pop().then_some(())?,
            Component::Normal(name) => to.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(to)
}

/// Targets of a text's links, each with its line: inline ones, pictures and reference definitions.
fn targets(text: &str) -> Vec<(usize, String)> {
    let parser = Parser::new(text);
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let definitions = parser.reference_definitions().iter();
    let definitions = definitions.map(|(_, to)| (line(to.span.start), to.dest.to_string()));
    let mut found: Vec<(usize, String)> = definitions.collect();
    for (event, at) in parser.into_offset_iter() {
        if let Event::Start(
            Tag::Link { link_type: LinkType::Inline, dest_url, .. }
            | Tag::Image { link_type: LinkType::Inline, dest_url, .. },
        ) = event
        {
            found.push((line(at.start), dest_url.into_string()));
        }
    }
    found.sort_by_key(|(line, _)| *line);
    found
}

/// The names that headings get: lower case, blanks as hyphens, nothing else but letters, digits, `-` and
/// `_`; the second of one name ends in `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut title = String::new();
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => title.clear(),
            Event::Text(part) | Event::Code(part) => title.push_str(&part),
            Event::End(TagEnd::Heading(_)) => {
                let mut name = title.to_lowercase().replace(' ', "-");
                name.retain(|c| c.is_alphanumeric() || "-_".contains(c));
                let times = seen.entry(name.clone()).or_default();
                names.insert(if *times == 0 { name } else { format!("{name}-{times}") });
                *times += 1;
            }
            _ => {}
        }
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
        let readme = "# One\nsee [a](docs/a.md), [b](docs/a.md#two-words) and [c](docs/b.md)\n";
        let a = "## Two `words`!\n[up](../README.md#one) [out](../../x) [no](#three)\n";
        let c = "`[x](y)` <https://a.b>\n```\n[x](y)\n```\n[r]: z.md\n[w](https://c.d)\n";
        let files = [("README.md", readme), ("docs/a.md", a), ("docs/c.md", c)];
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
