//! How the sources hang together: no circle of files in a crate, so that who reads one reads what it
//! uses, and is done; no clock outside `measure`; no record that nobody names; no long sentence.
//!
//! A file uses another where it names what the other defines, in a macro's text too. What a file only
//! passes on (`pub use`) is used by whoever names it there. A parent and its children are files like any
//! others; `mod child;` alone is no use. Tests inside of files are left out.

use crate::support::{names, root};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its names from the root of the crate on, or a path to something in one.
type Names = Vec<String>;

/// Paths that a file names, from the root of the crate on.
#[derive(Default)]
struct File {
    /// Paths used; the last name may be `*`, or end in `!`.
    used: BTreeSet<Names>,
    /// Paths passed on (`pub use`): by the name there, which may be `*`.
    passed_on: Vec<(String, Names)>,
    macros: BTreeSet<String>,
    /// Every word in it that is no import and no definition.
    words: BTreeSet<String>,
    /// Paths with the module that they stand in.
    paths: Vec<(Names, Names)>,
    aliases: BTreeMap<String, Names>,
}

/// A file and the modules of its crate, while it is read.
struct Reading<'a> {
    module: &'a Names,
    modules: &'a BTreeSet<Names>,
    file: File,
}

fn is(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == sign)
}

impl Reading<'_> {
    /// Reads the paths in a module's tokens. Items that an attribute keeps for tests are passed over.
    fn tokens(&mut self, here: &Names, tokens: TokenStream) {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        // Behind the item that goes on there.
        let end = |at: usize| {
            let is_end = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                other => is(Some(other), ';'),
            };
            all[at..].iter().position(is_end).map_or(all.len(), |more| at + more + 1)
        };
        let (mut at, mut before) = (0, String::new());
        while let Some(token) = all.get(at) {
            at += 1;
            let text = token.to_string();
            match (token, text.as_str()) {
                (TokenTree::Group(group), _) if before == "#" => {
                    let attribute = group.stream().to_string().replace(' ', "");
                    if attribute.starts_with("cfg(test") || attribute.starts_with("cfg(all(test") {
                        at = end(at);
                    }
                }
                // A visibility.
                (TokenTree::Group(group), _)
                    if before == "pub" && group.delimiter() == Delimiter::Parenthesis =>
                {
                    continue;
                }
                (TokenTree::Group(group), _) => self.tokens(here, group.stream()),
                (TokenTree::Ident(_), "use") => {
                    let mut found = Vec::new();
                    imports(&all[at..end(at)], &[], &mut found);
                    at = end(at);
                    for (path, name) in found {
                        let path = self.absolute(here, &path);
                        if before == "pub" {
                            self.file.passed_on.push((name, path.unwrap_or_default()));
                        } else if let Some(path) = path {
                            self.file.used.insert(path.clone());
                            self.file.aliases.insert(name, path);
                        }
                    }
                }
                // In a macro its name may be a variable.
                (TokenTree::Ident(_), "mod") => {
                    if let [.., name, TokenTree::Group(content)] = &all[at..end(at)] {
                        let inside = [&here[..], &[name.to_string()]].concat();
                        self.tokens(&inside, content.stream());
                    }
                    at = end(at);
                }
                (TokenTree::Ident(_), "macro_rules") => {
                    self.file.macros.extend(all.get(at + 1).map(ToString::to_string));
                    at += 2;
                }
                (TokenTree::Ident(_), _) => {
                    let mut path = vec![text.clone()];
                    while is(all.get(at), ':')
                        && is(all.get(at + 1), ':')
                        && let Some(TokenTree::Ident(next)) = all.get(at + 2)
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    if is(all.get(at), '!') && matches!(all.get(at + 1), Some(TokenTree::Group(_)))
                    {
                        path.last_mut().expect("a name").push('!');
                    }
                    let defines = ["fn", "struct", "enum", "const", "static", "type", "trait"];
                    if path.len() > 1 || !defines.contains(&before.as_str()) {
                        self.file.paths.push((here.clone(), path));
                    }
                }
                _ => {}
            }
            before = text;
        }
    }

    /// A path from the root of the crate on; `None` where it leads elsewhere.
    fn absolute(&self, here: &Names, path: &[String]) -> Option<Names> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([here, &path[1..]].concat()),
            "super" => Some([&here[..here.len().checked_sub(ups)?], &path[ups..]].concat()),
            child => {
                let child = [&self.module[..], &[child.to_owned()]].concat();
                self.modules.contains(&child).then(|| [&child, &path[1..]].concat())
            }
        }
    }

    fn finish(mut self) -> File {
        for (here, path) in std::mem::take(&mut self.file.paths) {
            self.file.words.insert(path[0].clone());
            if let Some(alias) = self.file.aliases.get(&path[0]).filter(|_| path.len() > 1) {
                self.file.used.insert([&alias[..], &path[1..]].concat());
            } else if let Some(name) = path[0].strip_suffix('!') {
                // An import of it has been counted.
                if !self.file.aliases.contains_key(name) {
                    self.file.used.insert(path);
                }
            } else if path.len() > 1 {
                self.file.used.extend(self.absolute(&here, &path));
            }
        }
        let File { passed_on, words, .. } = &self.file;
        let uses_too =
            passed_on.iter().filter(|(name, path)| words.contains(name) && !path.is_empty());
        let uses_too: Vec<Names> = uses_too.map(|(_, path)| path.clone()).collect();
        self.file.used.extend(uses_too);
        self.file
    }
}

/// The paths of a `use`, with the name that each has here.
fn imports(tree: &[TokenTree], from: &[String], into: &mut Vec<(Names, String)>) {
    for one in tree.split(|token| is(Some(token), ',')).filter(|one| !one.is_empty()) {
        let (mut path, mut inside, mut renamed) = (from.to_vec(), None, None);
        let mut tokens = one.iter();
        while let Some(token) = tokens.next() {
            match (token, token.to_string().as_str()) {
                (TokenTree::Group(group), _) => inside = Some(group.stream()),
                (_, "as") => renamed = tokens.next().map(ToString::to_string),
                (_, ":" | ";" | "$") => {}
                // The module itself.
                (_, "self") if !path.is_empty() => {}
                (_, word) => path.push(word.to_owned()),
            }
        }
        match inside {
            Some(inside) => imports(&Vec::from_iter(inside), &path, into),
            None => into.push((path.clone(), renamed.or(path.pop()).unwrap_or_default())),
        }
    }
}

/// The files in which what a path names is defined; where that is all of a file, only what `words` are of it.
fn defining(
    path: &[String],
    words: &BTreeSet<String>,
    files: &BTreeMap<Names, File>,
    most: usize,
) -> BTreeSet<Names> {
    let mut found = BTreeSet::new();
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]));
    let Some(length) = length else { return found };
    let (module, rest) = path.split_at(length);
    let mut is_passed = false;
    for (name, to) in &files[module].passed_on {
        let is_it = rest.first() == Some(name);
        // It may be among all that is passed on from there, or all may be asked for.
        let all_is_asked = rest.first().is_some_and(|first| first == "*");
        if (is_it || name == "*" || all_is_asked && words.contains(name)) && most > 0 {
            is_passed |= is_it;
            let behind = if is_it && name != "*" { &rest[1..] } else { &[] };
            let to = to.strip_suffix(&["*".to_owned()][..]).unwrap_or(to);
            if !to.is_empty() {
                found.extend(defining(&[to, behind].concat(), words, files, most - 1));
            }
        }
    }
    if !is_passed {
        found.insert(module.to_vec());
    }
    found
}

/// The files of a crate, each with those that it uses.
fn uses(texts: &BTreeMap<Names, String>) -> BTreeMap<Names, BTreeSet<Names>> {
    let modules: BTreeSet<Names> = texts.keys().cloned().collect();
    let read = |(module, text): (&Names, &String)| {
        let tokens = text.parse().unwrap_or_else(|error| panic!("{}: {error}", module.join("/")));
        let mut reading = Reading { module, modules: &modules, file: File::default() };
        reading.tokens(module, tokens);
        (module.clone(), reading.finish())
    };
    let files: BTreeMap<Names, File> = texts.iter().map(read).collect();
    // A macro is that of the nearest file that defines one of the name.
    let nearest = |module: &Names, name: &str| {
        let common = |other: &&Names| module.iter().zip(*other).take_while(|(a, b)| a == b).count();
        let definers = files.iter().filter(|(_, file)| file.macros.contains(name));
        definers.map(|(other, _)| other).max_by_key(common).cloned()
    };
    let used = |(module, file): (&Names, &File)| {
        let mut found = BTreeSet::new();
        for path in &file.used {
            match path.last().and_then(|last| last.strip_suffix('!')) {
                Some(name) if file.macros.contains(name) => {}
                Some(name) => found.extend(nearest(module, name)),
                None => found.extend(defining(path, &file.words, &files, 8)),
            }
        }
        found.remove(module);
        (module.clone(), found)
    };
    files.iter().map(used).collect()
}

/// Files that use each other in a circle.
fn circle(mut left: BTreeMap<Names, BTreeSet<Names>>) -> Vec<String> {
    loop {
        let is_left = |one: &&Names| left.contains_key(*one);
        let used: BTreeSet<Names> = left.values().flatten().filter(is_left).cloned().collect();
        let all = left.len();
        // A file that uses none of the rest is in no circle, and neither is one that none of them uses.
        left.retain(|module, uses| used.contains(module) && !uses.is_disjoint(&used));
        if left.len() == all {
            return left.keys().map(|module| module.join("/")).collect();
        }
    }
}

/// Files and folders of one folder, each with those that it uses: a file below stands for the folder that it is in.
/// The folder's own file is left out; it stands above all of these.
fn within(
    folder: &[String],
    uses: &BTreeMap<Names, BTreeSet<Names>>,
) -> BTreeMap<Names, BTreeSet<Names>> {
    let child = |module: &Names| {
        let is_of_tests =
            module.last().is_some_and(|name| name == "tests" || name.ends_with("_tests"));
        let is_inside = module.starts_with(folder) && module.len() > folder.len() && !is_of_tests;
        is_inside.then(|| module[..=folder.len()].to_vec())
    };
    let mut found: BTreeMap<Names, BTreeSet<Names>> = BTreeMap::new();
    for (user, used) in uses {
        let Some(user) = child(user) else { continue };
        let others = used.iter().filter_map(child).filter(|used| *used != user);
        found.entry(user.clone()).or_default().extend(others);
    }
    found
}

/// The circles of a crate: of files, and in each folder those of its files and folders.
fn circles(uses: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<Vec<String>> {
    let above =
        |module: &Names| (0..module.len()).map(|n| module[..n].to_vec()).collect::<Vec<_>>();
    let folders: BTreeSet<Names> = uses.keys().flat_map(above).collect();
    let of_folders = folders.iter().map(|folder| circle(within(folder, uses)));
    let all = std::iter::once(circle(uses.clone())).chain(of_folders);
    all.filter(|circle| !circle.is_empty()).collect()
}

/// `entry/ways` as a module; the root is empty.
fn module(name: &str) -> Names {
    name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The files of a crate by their modules.
fn texts(folder: &Path, module: &Names, into: &mut BTreeMap<Names, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let inside = [&module[..], std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            texts(&path, &inside, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let of_folder = ["lib", "main", "mod"].contains(&&*name);
            let module = if of_folder { module.clone() } else { inside };
            into.insert(module, fs::read_to_string(&path).expect("text"));
        }
    }
}

/// Every crate of the workspace, with its sources.
fn crates() -> Vec<(String, BTreeMap<Names, String>)> {
    let of_wing = |wing: &'static str| {
        names(&root().join(wing)).into_iter().map(move |name| format!("{wing}/{name}"))
    };
    let folders = ["lib", "memory", "lab"].into_iter().flat_map(of_wing);
    let folders = folders.chain(["python".to_owned(), "xtask".to_owned()]);
    let read = |folder: String| {
        let (mut found, sources) = (BTreeMap::new(), root().join(&folder).join("src"));
        texts(&sources, &Vec::new(), &mut found);
        (folder, found)
    };
    folders.map(read).collect()
}

#[test]
fn no_crate_has_a_circle_of_files_or_folders() {
    // Uses that certainly exist, so that an empty search fails.
    let certain = [
        ("lib/cachewise", "entry/grammar", "dispatch"),
        ("lib/cachewise", "raw", "entry/ways"),
        ("lib/kernels", "table", "kernel"),
        ("lab/measure", "residency/proof", "level"),
        ("lab/report", "svg/bars", "svg/elements"),
        ("lab/cli", "", "verbs/run"),
        ("memory/pages", "cache", "inner"),
        ("memory/pages", "fork", "slots"),
        ("memory/scrubd", "server", "store"),
        ("xtask", "ci", "browser"),
    ];
    let (mut looked_at, mut all_circles) = (0, Vec::new());
    for (folder, texts) in crates() {
        let uses = uses(&texts);
        for (_, user, used) in certain.iter().filter(|(of, ..)| *of == folder) {
            let all = &uses[&module(user)];
            assert!(all.contains(&module(used)), "{folder}: {user} uses {used}, found {all:?}");
            looked_at += 1;
        }
        all_circles
            .extend(circles(&uses).into_iter().map(|circle| (folder.clone(), circle.join(" "))));
    }
    assert_eq!(looked_at, certain.len());
    assert_eq!(all_circles, Vec::<(String, String)>::new());
}

#[test]
fn a_circle_is_found_however_it_is_closed() {
    let of = |files: &[(&str, &str)]| {
        circle(uses(&files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect()))
    };
    let lower = ("b", "pub fn two() {} // crate::a::one()");
    assert_eq!(of(&[("a", "use crate::b::{self, two}; fn one() { b::two() }"), lower]), [""; 0]);
    let both = ["a", "b"];
    for (a, b) in [
        ("use crate::b::{self, two};", "fn two() { crate::a::one() }"),
        ("use super::b; fn one() { b::two() }", "use super::a::*;"),
        ("macro_rules! one { () => { $crate::b::two() } }", "fn two() { one!() }"),
        ("fn one() { crate::two() }", "pub fn two() { crate::a::one() }"),
        ("fn one() { use crate::b::two; two() }", "pub fn two() { crate::a::one() }"),
        (
            "use crate as all; fn one() { crate::passed::two() }",
            "mod inner { use super::super::a::one; }",
        ),
    ] {
        let passing = ("passed", "pub use crate::b::*;");
        let files = [("", "pub use b::two;"), ("a", a), ("b", b), passing];
        assert_eq!(of(&files), both, "{a} {b}");
    }
    // A parent that lends to its child and uses it; not one that passes on, nor one whose tests use it.
    let child = ("a/child", "use super::lent; pub fn two() { lent() }");
    let parent = "mod child; fn lent() {} fn one() { child::two() }";
    assert_eq!(of(&[("a", parent), child]), ["a", "a/child"]);
    for parent in [
        "mod child; pub use child::two; fn lent() {}",
        "mod child; fn lent() {} #[cfg(test)] mod tests { fn one() { super::child::two() } }",
        "mod child; fn lent() -> &'static str { \"child::two()\" }",
    ] {
        assert_eq!(of(&[("a", parent), child]), [""; 0], "{parent}");
    }
}

#[test]
fn a_circle_of_folders_is_found_where_their_files_have_none() {
    let of = |files: &[(&str, &str)]| {
        circles(&uses(
            &files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect(),
        ))
    };
    // A folder's file uses one outside, which uses another of the folder's.
    let folder = ("in/a", "use crate::in::a::rows::names; pub use rows::names;");
    let rows = ("in/a/rows", "pub fn names() {}");
    let table = ("in/b", "pub fn table() { super::a::rows::names() }");
    let user = ("in/a/user", "fn used() { crate::in::b::table() }");
    assert_eq!(of(&[folder, rows, table, user]), [["in/a", "in/b"]]);
    let table = ("in/b", "pub fn table() {}");
    assert_eq!(of(&[folder, rows, table, user]), Vec::<Vec<String>>::new());
}

/// Files that Git tracks, as paths and texts; binary files are left out.
fn tracked() -> Vec<(PathBuf, String)> {
    let listed =
        std::process::Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = listed.expect("git").stdout;
    let paths = std::str::from_utf8(&listed).expect("names").split('\0').map(PathBuf::from);
    paths
        .filter_map(|path| Some((path.clone(), fs::read_to_string(root().join(path)).ok()?)))
        .collect()
}

/// Files that tests find by a pattern, and what of a name the pattern is.
const FOUND: [&str; 4] = ["-tune-quick-", "-costs-", "-experiments-", "-classic-"];

#[test]
fn every_record_is_named_and_they_are_few() {
    let sources = tracked();
    let sources: Vec<_> = sources.iter().filter(|(path, _)| !path.starts_with("record")).collect();
    let folder = root().join("record");
    let all = names(&folder);
    let bytes: u64 =
        all.iter().map(|name| fs::metadata(folder.join(name)).expect("a file").len()).sum();
    assert!(all.len() <= 60 && bytes <= 6 << 20, "{} files, {bytes} bytes", all.len());
    for name in all.iter().filter(|name| *name != "README.md") {
        // The newest record of an experiment, or of a part of one, is drawn and claimed by a test, whatever its date.
        let what = name.get("2026-11-22-".len()..).unwrap_or_default();
        let newer = |other: &String| other > name && other.get("2026-11-22-".len()..) == Some(what);
        let is_experiment =
            |(end, _): (usize, &str)| cachewise_experiments::registry::of(&what[..end]).is_some();
        let is_newest = what.match_indices('-').any(is_experiment) && !all.iter().any(newer);
        let stem = name.split('.').next().unwrap_or_default();
        let named = || sources.iter().any(|(_, text)| text.contains(stem));
        let found = FOUND.iter().any(|part| name.contains(part));
        let kind = format!("*-{}", what.split("-zen").next().unwrap_or_default());
        let patterned = || sources.iter().any(|(_, text)| text.contains(&kind));
        assert!(is_newest || found || named() || patterned(), "record/{name}: nobody names it");
    }
}

/// Beginnings of a comment that is a fragment: neither the noun that an item is nor the verb that it does.
const FRAGMENTS: [&str; 8] =
    ["What ", "Who ", "Whom ", "Whose ", "Of ", "Whether ", "Where ", "How many "];

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let mut found = Vec::new();
    for (path, text) in tracked() {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if !is_source {
            continue;
        }
        let comment = |line: &str| {
            let line = line.trim_start().strip_prefix("//")?;
            line.trim_start_matches(['/', '!']).strip_prefix(' ').map(str::to_owned)
        };
        let mut inside = false;
        for (number, line) in text.lines().enumerate() {
            let words = comment(line);
            let first = words.as_deref().filter(|_| !inside).unwrap_or_default();
            if FRAGMENTS.iter().any(|fragment| first.starts_with(fragment)) {
                found.push(format!("{}:{}: {first}", path.display(), number + 1));
            }
            inside = line.trim_start().starts_with("//");
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Words of the longest sentence.
const LONGEST: usize = 35;

#[test]
fn sentences_of_the_documents_that_everybody_reads_are_short() {
    let guides =
        names(&root().join("docs/guide")).into_iter().map(|name| format!("docs/guide/{name}"));
    let documents = ["README.md", "METHODOLOGY.md", "docs/page-pool.md"].map(str::to_owned);
    let mut long = Vec::new();
    for name in documents.into_iter().chain(guides) {
        let text = fs::read_to_string(root().join(&name)).expect("a document");
        long.extend(sentences(&text).into_iter().filter_map(|sentence| {
            let words = sentence.split_whitespace().count();
            (words > LONGEST).then(|| format!("{name}: {words} words: {sentence}"))
        }));
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The sentences of Markdown's prose: what is in code, tables, headings and comments is none.
fn sentences(text: &str) -> Vec<String> {
    let (mut prose, mut inside, mut spliced) = (String::new(), false, false);
    for line in text.lines().map(str::trim) {
        spliced = (spliced || line.starts_with("<!-- cachewise ")) && line != "<!-- /cachewise -->";
        let fence = line.starts_with("```");
        inside ^= fence;
        let ends = line.is_empty()
            || ["|", "#", "<!--", ">", "- ", "* "].iter().any(|mark| line.starts_with(mark));
        if fence || inside || spliced || line.starts_with(['|', '#', '<']) {
            prose.push('\n');
            continue;
        }
        prose.push_str(if ends { "\n" } else { " " });
        prose.push_str(line.trim_start_matches(['>', '-', '*', ' ']));
    }
    let prose = prose.replace(". ", ".\n").replace("? ", "?\n").replace("! ", "!\n");
    prose.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Spellings of a read of a clock.
const READS: [&str; 8] = [
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "Clock::calibrate",
    "clock.now",
    "rdtsc",
    "clock_gettime",
];

/// Files beside `measure`'s that read a clock, with the lines that do. Each waits, ends after so long, or times what
/// takes milliseconds and is no call of a routine.
const CLOCKS: [(&str, usize); 15] = [
    ("lab/blame/src/recording.rs", 1),
    ("lab/blame/src/resident.rs", 1),
    ("lab/cli/src/progress.rs", 4),
    ("lab/cli/src/verbs/advise/asked.rs", 1),
    ("lab/cli/src/verbs/advise/load.rs", 4),
    ("lab/cli/src/verbs/advise/unit.rs", 1),
    ("lab/cli/src/verbs/export/mpi.rs", 1),
    ("lab/cli/src/verbs/tune.rs", 1),
    ("lab/experiments/src/after.rs", 2),
    ("lab/experiments/src/backing.rs", 1),
    ("lab/experiments/src/page_fault/measure.rs", 2),
    ("lab/experiments/src/page_fault/measure/arms.rs", 4),
    ("lab/experiments/src/page_fault/measure/settings.rs", 3),
    ("lab/experiments/src/prefault/measure.rs", 1),
    ("lab/experiments/src/tcp/stream.rs", 1),
];

#[test]
fn nobody_but_measure_reads_a_clock() {
    let mut found = Vec::new();
    for (path, text) in tracked() {
        let name = path.display().to_string();
        let is_source = name.starts_with("lab/") && name.contains("/src/") && name.ends_with(".rs");
        if !is_source || name.starts_with("lab/measure/") || name.ends_with("tests.rs") {
            continue;
        }
        // Without the module of tests, which ends with a brace at the margin.
        let (before, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
        let after = tests.split_once("\n}\n").map_or("", |(_, after)| after);
        let reads = |line: &&str| {
            !line.trim_start().starts_with("//") && READS.iter().any(|read| line.contains(read))
        };
        let lines = before.lines().chain(after.lines()).filter(reads).count();
        found.extend((lines > 0).then_some((name, lines)));
    }
    assert_eq!(found, CLOCKS.map(|(name, lines)| (name.to_owned(), lines)));
}

/// Most lines of a function of a verb: it reads its options, calls, and prints.
const VERB: usize = 60;

#[test]
fn functions_of_verbs_are_short() {
    let (mut looked_at, mut long) = (0, Vec::new());
    for (path, text) in tracked() {
        if !path.starts_with("lab/cli/src/verbs") {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let item = line.trim_start();
            let is_whole = item.ends_with('}') || item.ends_with(';');
            let Some((before, name)) = item.split_once("fn ") else { continue };
            if is_whole || !before.is_empty() && !before.starts_with("pub") {
                continue;
            }
            let end = format!("{}}}", &line[..line.len() - item.len()]);
            let more = lines[at..].iter().position(|line| *line == end).expect("its last line");
            looked_at += 1;
            if more >= VERB {
                long.push(format!("{}: {name}: {} lines", path.display(), more + 1));
            }
        }
    }
    assert!(looked_at > 300 && long.is_empty(), "of {looked_at} functions: {long:#?}");
}

/// Names that would fit many types, with the most types that have them. A further one says what it is: `TuningCell`.
const COMMON: [(&str, usize); 5] =
    [("Answer", 2), ("Cell", 1), ("Found", 1), ("Outcome", 1), ("Written", 1)];

#[test]
fn a_common_name_is_that_of_one_type() {
    let defined = |line: &str| -> Option<String> {
        let item = line.trim_start();
        let of_crate = || Some(item.strip_prefix("pub(")?.split_once(") ")?.1);
        let item = item.strip_prefix("pub ").or_else(of_crate).unwrap_or(item);
        let (kind, rest) = item.split_once(' ')?;
        // That of an `impl` has its name of a trait.
        let is_associated = kind == "type" && line.starts_with(' ') && rest.contains(" = ");
        let is_type = ["struct", "enum", "trait", "type"].contains(&kind) && !is_associated;
        is_type.then(|| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
    };
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in tracked() {
        if path.extension().is_some_and(|extension| extension == "rs") {
            text.lines().filter_map(defined).for_each(|name| *found.entry(name).or_default() += 1);
        }
    }
    let counted = COMMON.map(|(name, _)| (name, found.get(name).copied().unwrap_or(0)));
    assert_eq!(counted, COMMON);
}
