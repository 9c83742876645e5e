//! No circle of files in a crate: who reads one reads what it uses, and is done.
//!
//! A file uses another where it names what the other defines, in a macro's text too. What a file only
//! passes on (`pub use`) is used by whoever names it there. A parent and its children are files like any
//! others; `mod child;` alone is no use. Tests inside of files are left out.

use crate::support::root;
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A module by its names from the root of the crate on, or a path to something in one.
type Names = Vec<String>;

/// Files by their modules.
type Uses = BTreeMap<Names, BTreeSet<Names>>;

/// The paths and signs of a program: a path is one of them, a macro's with its `!`. None of comments, of
/// strings, and of whom things are visible to.
fn tokens(text: &str) -> Vec<&str> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        let comment = r"//.*|/\*(?s:.*?)\*/";
        let string = r##"b?r"[^"]*"|b?r#+"(?s:.*?)"#+|"(?:\\(?s:.)|[^"\\])*""##;
        let character = r"'(?:\\.[^']*|[^'\\])'|'\w+";
        let visibility = r"\((?:super|crate|in [\w:]+)\)";
        let token = r"\w+(?:::\w+)*(?:!\B)?|::|\S";
        let all = [comment, string, character, visibility, token].join("|");
        Regex::new(&all).expect("an expression")
    });
    let is_left_out = |token: &&str| {
        token.starts_with(['\'', '"'])
            || token.ends_with('"')
            || token.len() > 1 && token.starts_with(['/', '('])
    };
    TOKEN.find_iter(text).map(|found| found.as_str()).filter(|token| !is_left_out(token)).collect()
}

/// A token as a path.
fn names(token: &str) -> Names {
    token.split("::").map(str::to_owned).collect()
}

/// Behind the bracket that closes the one at a place.
fn behind(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    let closes = |token: &&str| {
        depth += i32::from(["{", "(", "["].contains(token));
        depth -= i32::from(["}", ")", "]"].contains(token));
        depth == 0
    };
    tokens[open..].iter().position(closes).map_or(tokens.len(), |length| open + length + 1)
}

/// Without what is compiled for tests alone.
fn of_the_program<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is = |what: &[&str]| tokens[at..].starts_with(what);
        if !is(&["#", "[", "cfg", "(", "test"]) && !is(&["#", "[", "cfg", "(", "all", "(", "test"])
        {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        while tokens.get(at) == Some(&"#") {
            at = behind(tokens, at + 1);
        }
        let imports = tokens[at..].iter().find(|token| **token != "pub") == Some(&"use");
        let ends = |token: &&str| *token == ";" || (*token == "{" && !imports);
        let end = tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length);
        at = if tokens.get(end) == Some(&"{") { behind(tokens, end) } else { end + 1 };
    }
    kept
}

/// What a file names, by paths from the root of the crate on.
#[derive(Default)]
struct File {
    /// What it uses; the last name may be `*`, or end in `!`.
    named: BTreeSet<Names>,
    /// What it passes on: by the name there, which may be `*`.
    passed_on: Vec<(String, Names)>,
    macros: BTreeSet<String>,
    /// Every word in it that is no import and no definition.
    words: BTreeSet<String>,
}

/// The paths of a `use`, with the name that each has here, up to the sign that ends them.
fn imports<'t>(
    tokens: &mut impl Iterator<Item = &'t str>,
    mut path: Names,
    into: &mut Vec<(Names, String)>,
) -> &'t str {
    let mut name = None;
    loop {
        match tokens.next().unwrap_or(";") {
            "{" => {
                while imports(&mut *tokens, path.clone(), into) == "," {}
                name = None;
            }
            "as" => name = tokens.next().map(str::to_owned),
            "self" if !path.is_empty() => name = path.last().cloned(),
            "::" => {}
            end @ ("," | "}" | ";") => {
                into.extend(name.map(|name| (path, name)));
                return end;
            }
            token => {
                path.extend(names(token));
                name = path.last().cloned();
            }
        }
    }
}

impl File {
    /// Reads a module's file. `modules` are all of the crate's.
    fn read(module: &Names, text: &str, modules: &BTreeSet<&Names>) -> File {
        let tokens = of_the_program(&tokens(text));
        let mut file = File::default();
        let (mut aliases, mut paths) = (BTreeMap::new(), Vec::new());
        // Modules inside of the file, with their ends.
        let mut inner: Vec<(usize, &str)> = Vec::new();
        let mut at = 0;
        while let [token, next, ..] = tokens[at..] {
            inner.retain(|(end, _)| at < *end);
            let inside = inner.iter().map(|(_, name)| (*name).to_owned());
            let here: Names = module.iter().cloned().chain(inside).collect();
            let before = at.checked_sub(1).map_or("", |before| tokens[before]);
            at += 1;
            match token {
                "use" => {
                    let mut rest = tokens[at..].iter().copied();
                    let mut found = Vec::new();
                    imports(&mut rest, Names::new(), &mut found);
                    at = tokens.len() - rest.len();
                    for (path, name) in found {
                        let path = absolute(&here, module, &path, modules);
                        if before == "pub" {
                            file.passed_on.push((name, path.unwrap_or_default()));
                        } else if let Some(path) = path {
                            file.named.insert(path.clone());
                            aliases.insert(name, path);
                        }
                    }
                }
                "mod" => {
                    let name = if next == "$" { at + 1 } else { at };
                    if tokens.get(name + 1) == Some(&"{") {
                        inner.push((behind(&tokens, name + 1), tokens[name]));
                    }
                    at = name + 1;
                }
                "macro_rules!" => {
                    file.macros.insert(next.to_owned());
                    at += 1;
                }
                // A name that is given here is not used.
                "fn" | "struct" | "enum" | "const" | "static" | "type" | "trait"
                    if !next.contains("::") =>
                {
                    at += 1;
                }
                _ if before != "::"
                    && token.starts_with(|c: char| c == '_' || c.is_alphanumeric()) =>
                {
                    paths.push((here, names(token)));
                }
                _ => {}
            }
        }
        for (here, path) in paths {
            file.words.insert(path[0].clone());
            if let Some(alias) = aliases.get(&path[0]).filter(|_| path.len() > 1) {
                file.named.insert([&alias[..], &path[1..]].concat());
            } else if path[0].ends_with('!') {
                file.named.insert(path);
            } else if path.len() > 1 {
                file.named.extend(absolute(&here, module, &path, modules));
            }
        }
        let uses_too = file.passed_on.iter().filter(|(name, _)| file.words.contains(name));
        let uses_too = uses_too.map(|(_, path)| path.clone()).filter(|path| !path.is_empty());
        file.named.extend(uses_too.collect::<Vec<_>>());
        file
    }
}

/// A path from the root of the crate on; `None` where it leads elsewhere.
fn absolute(
    here: &Names,
    module: &Names,
    path: &[String],
    modules: &BTreeSet<&Names>,
) -> Option<Names> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    match &*path[0] {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([here, &path[1..]].concat()),
        "super" => Some([&here[..here.len().checked_sub(ups)?], &path[ups..]].concat()),
        child => {
            let child = [&module[..], &[child.to_owned()]].concat();
            modules.contains(&child).then(|| [&child, &path[1..]].concat())
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
    if let Some(name) = path.last().and_then(|last| last.strip_suffix('!')) {
        let defines = |(_, file): &(&Names, &File)| file.macros.contains(name);
        return files.iter().filter(defines).map(|(module, _)| module.clone()).collect();
    }
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]));
    let Some(length) = length else { return found };
    let (module, rest) = path.split_at(length);
    let mut is_passed = false;
    for (name, to) in &files[module].passed_on {
        let is_it = rest.first() == Some(name);
        // It may be among all that is passed on from there, or all may be asked for.
        let all_is_asked = rest.first().is_some_and(|first| first == "*");
        let may_be = name == "*" || (all_is_asked && words.contains(name));
        if (is_it || may_be) && most > 0 {
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

/// Which file of a crate uses which others.
fn uses(texts: &BTreeMap<Names, String>) -> Uses {
    let modules: BTreeSet<&Names> = texts.keys().collect();
    let read =
        |(module, text): (&Names, &String)| (module.clone(), File::read(module, text, &modules));
    let files: BTreeMap<Names, File> = texts.iter().map(read).collect();
    let used = |(module, file): (&Names, &File)| {
        let others = file.named.iter().filter(|path| {
            // A macro of its own.
            !path.last().is_some_and(|last| {
                last.strip_suffix('!').is_some_and(|name| file.macros.contains(name))
            })
        });
        let mut found: BTreeSet<Names> =
            others.flat_map(|path| defining(path, &file.words, &files, 8)).collect();
        found.remove(module);
        (module.clone(), found)
    };
    files.iter().map(used).collect()
}

/// Files that use each other in a circle.
fn circle(mut left: Uses) -> Vec<String> {
    loop {
        let is_left = |one: &&Names| left.contains_key(*one);
        let used: BTreeSet<Names> = left.values().flatten().filter(is_left).cloned().collect();
        let all = left.len();
        // Who uses nobody who is left is in no circle, and neither is whom nobody uses.
        left.retain(|module, uses| used.contains(module) && !uses.is_disjoint(&used));
        if left.len() == all {
            return left.keys().map(|module| module.join("/")).collect();
        }
    }
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

#[test]
fn no_crate_has_a_circle_of_files() {
    // What is certainly used, so that nothing is found because nothing is looked at.
    for (folder, certain) in [
        ("crates/cachewise", &[("entry/grammar", "dispatch"), ("raw", "entry/ways")][..]),
        ("crates/measure", &[("residency/proof", "level")]),
        ("crates/report", &[("svg/bars", "svg/elements")]),
        ("crates/experiments", &[("helper/serving", "forking"), ("twins", "experiment")]),
        ("crates/tune", &[("tuner", "race")]),
        ("crates/cli", &[("verbs/explain", "verbs/program"), ("", "verbs/run")]),
        ("xtask", &[("ci", "browser")]),
    ] {
        let mut found = BTreeMap::new();
        texts(&root().join(folder).join("src"), &Vec::new(), &mut found);
        let uses = uses(&found);
        for (user, used) in certain {
            let all = &uses[&module(user)];
            assert!(all.contains(&module(used)), "{folder}: {user} uses {used}, found {all:?}");
        }
        assert_eq!(circle(uses), [""; 0], "{folder}");
    }
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
