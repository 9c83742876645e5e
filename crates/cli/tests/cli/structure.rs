//! No circle of files in a crate: who reads one reads what it uses, and is done.
//!
//! A file uses another where it names what the other defines, in a macro's text too. What a file only
//! passes on (`pub use`) is used by whoever names it there. A parent and its children are files like any
//! others; `mod child;` alone is no use. Tests inside of files are left out.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its names from the root of the crate on, or a path to something in one.
type Names = Vec<String>;

/// Files by their modules.
type Uses = BTreeMap<Names, BTreeSet<Names>>;

/// The words and signs of a program, `::` one of them; none of comments, strings and lifetimes.
fn tokens(text: &str) -> Vec<&str> {
    let end = |from: usize, what: &str| text[from..].find(what).map(|at| from + at + what.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let word: usize = text[at..].chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
        let rest = &text[at + word..];
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let next = if rest[hashes..].starts_with('"') && ["r", "br"].contains(&&text[at..at + word])
        {
            end(at + word + hashes + 1, &format!("\"{}", &rest[..hashes]))
        } else if word > 0 {
            let raw = &text[at..at + word] == "r" && rest.starts_with('#');
            tokens.extend(Some(&text[at..at + word]).filter(|_| !raw));
            Some(at + word + usize::from(raw))
        } else if text[at..].starts_with("//") {
            end(at, "\n")
        } else if text[at..].starts_with("::") {
            tokens.push("::");
            Some(at + 2)
        } else if first == '"' {
            let mut escaped = false;
            let closing = text[at + 1..].find(|c: char| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            closing.map(|length| at + length + 2)
        } else if first == '\'' {
            // A character, or the sign before a lifetime's name.
            let length = text[at + 1..].chars().next().map_or(1, char::len_utf8);
            match text[at + 1..].starts_with('\\') {
                true => end(at + 3, "'"),
                false if text[at + 1 + length..].starts_with('\'') => Some(at + length + 2),
                false => Some(at + 1),
            }
        } else {
            tokens
                .extend(Some(&text[at..at + first.len_utf8()]).filter(|_| !first.is_whitespace()));
            Some(at + first.len_utf8())
        };
        at = next.unwrap_or(text.len());
    }
    tokens
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

/// Without what is compiled for tests alone, and without whom things are visible to.
fn of_the_program<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is = |what: &[&str]| tokens[at..].starts_with(what);
        if is(&["#", "[", "cfg", "(", "test"]) || is(&["#", "[", "cfg", "(", "all", "(", "test"]) {
            at = behind(tokens, at + 1);
            while tokens[at..].starts_with(&["#"]) {
                at = behind(tokens, at + 1);
            }
            let visibility = ["pub", "(", "super", "crate", ")"];
            let mut item = tokens[at..].iter().skip_while(|token| visibility.contains(token));
            let imports = item.next() == Some(&"use");
            while at < tokens.len() && tokens[at] != ";" && (imports || tokens[at] != "{") {
                at += 1;
            }
            at = if at < tokens.len() && tokens[at] == "{" { behind(tokens, at) } else { at + 1 };
        } else if is(&["pub", "("]) {
            kept.push("pub");
            at = behind(tokens, at + 1);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
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

/// The paths of a `use`, with the name that each has here.
fn imports(tokens: &[&str], before: &[&str], into: &mut Vec<(Names, String)>) {
    let mut path: Vec<&str> = before.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "{" => {
                let end = behind(tokens, at);
                let mut from = at + 1;
                for place in at + 1..end {
                    let outside = behind_all(&tokens[at + 1..place]);
                    if place == end - 1 || (tokens[place] == "," && outside) {
                        imports(&tokens[from..place], &path, into);
                        from = place + 1;
                    }
                }
                return;
            }
            "as" => break,
            "::" => {}
            word => path.push(word),
        }
        at += 1;
    }
    if path.last() == Some(&"self") && path.len() > 1 {
        path.pop();
    }
    let name = if at < tokens.len() { tokens.last() } else { path.last() };
    if let Some(name) = name.filter(|_| path.len() > before.len() || before.last() == path.last()) {
        into.push((path.iter().map(|word| (*word).to_owned()).collect(), (*name).to_owned()));
    }
}

/// Whether every bracket is closed.
fn behind_all(tokens: &[&str]) -> bool {
    let count = |what: &str| tokens.iter().filter(|token| **token == what).count();
    count("{") == count("}")
}

impl File {
    /// Reads a module's file. `modules` are all of the crate's.
    fn read(module: &Names, text: &str, modules: &BTreeSet<&Names>) -> File {
        let all = tokens(text);
        let tokens = of_the_program(&all);
        let mut file = File::default();
        let mut aliases: BTreeMap<&str, Names> = BTreeMap::new();
        let mut passed: Vec<(String, Names)> = Vec::new();
        // Modules inside of the file, with their ends.
        let mut inner: Vec<(usize, &str)> = Vec::new();
        let (mut at, mut paths) = (0, Vec::new());
        while at < tokens.len() {
            inner.retain(|(end, _)| at < *end);
            let here: Names = module
                .iter()
                .cloned()
                .chain(inner.iter().map(|(_, name)| (*name).to_owned()))
                .collect();
            let starts = at == 0 || tokens[at - 1] != "::";
            match tokens[at] {
                "use" if starts => {
                    let length = tokens[at..].iter().position(|token| *token == ";").unwrap_or(1);
                    let (mut found, is_passed) = (Vec::new(), at > 0 && tokens[at - 1] == "pub");
                    imports(&tokens[at + 1..at + length], &[], &mut found);
                    for (path, name) in found {
                        let path = absolute(&here, module, &path, modules);
                        match (path, is_passed) {
                            (Some(path), true) => passed.push((name, path)),
                            (None, true) => passed.push((name, Vec::new())),
                            (Some(path), false) => {
                                let word =
                                    tokens[at..at + length].iter().find(|word| **word == name);
                                aliases.extend(word.map(|word| (*word, path.clone())));
                                file.named.insert(path);
                            }
                            (None, false) => {}
                        }
                    }
                    at += length;
                }
                "mod" if starts => {
                    let name = if tokens.get(at + 1) == Some(&"$") { at + 2 } else { at + 1 };
                    if tokens.get(name + 1) == Some(&"{") {
                        inner.push((behind(&tokens, name + 1), tokens[name]));
                    }
                    at = name + 1;
                }
                "macro_rules" => {
                    file.macros.extend(tokens.get(at + 2).map(|name| (*name).to_owned()));
                    at += 3;
                }
                // A name that is given here is not used.
                "fn" | "struct" | "enum" | "const" | "static" | "type" | "trait"
                    if tokens.get(at + 2) != Some(&"::") =>
                {
                    at += 2;
                }
                word if starts && word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                    file.words.insert(word.to_owned());
                    let mut path = vec![word.to_owned()];
                    while let ["::", next, ..] = tokens[at + 1..]
                        && next.chars().all(|c| c.is_alphanumeric() || c == '_')
                    {
                        path.push(next.to_owned());
                        at += 2;
                    }
                    if let ["!", "(" | "[" | "{", ..] = tokens[at + 1..] {
                        path.last_mut().expect("one name").push('!');
                    }
                    paths.push((here, path));
                    at += 1;
                }
                _ => at += 1,
            }
        }
        for (here, path) in paths {
            let is_macro = path[0].ends_with('!');
            if let Some(alias) = aliases.get(&*path[0]).filter(|_| path.len() > 1) {
                file.named.insert([&alias[..], &path[1..]].concat());
            } else if is_macro {
                file.named.insert(path);
            } else if path.len() > 1 {
                file.named.extend(absolute(&here, module, &path, modules));
            }
        }
        let uses_too = passed.iter().filter(|(name, _)| file.words.contains(name));
        file.named.extend(uses_too.map(|(_, path)| path.clone()).filter(|path| !path.is_empty()));
        file.passed_on = passed;
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
fn circle(mut left: Uses) -> Option<Vec<String>> {
    // Whoever uses nobody who is left can be read first.
    while let Some(free) = {
        let is_free =
            |(_, used): &(&Names, &BTreeSet<Names>)| used.iter().all(|one| !left.contains_key(one));
        left.iter().find(is_free).map(|(module, _)| module.clone())
    } {
        left.remove(&free);
    }
    let mut way = vec![left.keys().next()?];
    loop {
        let next = left[way[way.len() - 1]].iter().find(|used| left.contains_key(*used))?;
        if let Some(start) = way.iter().position(|module| *module == next) {
            return Some(way[start..].iter().map(|module| module.join("/")).collect());
        }
        way.push(next);
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
        ("crates/learn", &[("section", "operation")]),
        ("crates/measure", &[("residency/proof", "level")]),
        ("crates/report", &[("svg/bars", "svg/elements")]),
        (
            "crates/lab",
            &[("helper/serving", "forking"), ("experiments/twins", "experiments/setting")],
        ),
        ("crates/cli", &[("verbs/learn", "verbs/exec"), ("", "verbs/run")]),
        ("xtask", &[("ci", "browser")]),
    ] {
        let mut found = BTreeMap::new();
        texts(&root().join(folder).join("src"), &Vec::new(), &mut found);
        let uses = uses(&found);
        for (user, used) in certain {
            let all = &uses[&module(user)];
            assert!(all.contains(&module(used)), "{folder}: {user} uses {used}, found {all:?}");
        }
        assert_eq!(circle(uses), None, "{folder}");
    }
}

#[test]
fn a_circle_is_found_however_it_is_closed() {
    let of = |files: &[(&str, &str)]| {
        circle(uses(&files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect()))
    };
    let lower = ("b", "pub fn two() {} // crate::a::one()");
    assert_eq!(of(&[("a", "use crate::b::{self, two}; fn one() { b::two() }"), lower]), None);
    let both = Some(vec!["a".to_owned(), "b".to_owned()]);
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
    assert!(of(&[("a", parent), child]).is_some());
    for parent in [
        "mod child; pub use child::two; fn lent() {}",
        "mod child; fn lent() {} #[cfg(test)] mod tests { fn one() { super::child::two() } }",
        "mod child; fn lent() -> &'static str { \"child::two()\" }",
    ] {
        assert_eq!(of(&[("a", parent), child]), None, "{parent}");
    }
}
