//! Every sentence of the documents that promise how something behaves, beside the tests that hold it to that
//! (`promises.txt`): a sentence that is in no row, and a row whose sentence or test is gone, are errors.

use crate::support::root;
use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words of a Markdown document without its programs, of a header's comments, or of a Python module's texts; one line
/// for each paragraph, row, comment or text. Of a document `PATH#HEADING` only that section.
fn paragraphs(document: &str) -> Vec<String> {
    let (path, heading) = document.split_once('#').unwrap_or((document, ""));
    let path = &root().join(path);
    let mut text = read(path);
    if !heading.is_empty() {
        let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("that section");
        text = section.split("\n## ").next().expect("it").to_owned();
    }
    let joined = |text: &str| {
        let lines = text.lines().map(|line| line.trim().trim_start_matches("* ").trim_matches('*'));
        lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    if path.extension().is_some_and(|kind| kind == "h") {
        let comments = text.split("/*").skip(1).filter_map(|rest| rest.split("*/").next());
        return comments.map(joined).collect();
    }
    if path.extension().is_some_and(|kind| kind == "py") {
        let texts = text.split("\"\"\"").skip(1).step_by(2).flat_map(|text| text.split("\n\n"));
        return texts.map(joined).collect();
    }
    let mut found = vec![String::new()];
    for (at, part) in text.split("```").enumerate() {
        for line in part.lines().filter(|_| at % 2 == 0) {
            if line.trim().is_empty() || line.starts_with(['-', '|', '#', '*']) {
                found.push(String::new());
            }
            if !line.starts_with('#') && !line.starts_with("<!--") && !line.starts_with("| ---") {
                let last = found.last_mut().expect("one");
                last.push_str(line.trim_start_matches("- "));
                last.push(' ');
            }
        }
        found.push(String::new());
    }
    found.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Sentences: from a capital letter, or a name in a program's letters, behind the end of another.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begun = 0;
    for (at, pair) in paragraph.as_bytes().windows(3).enumerate() {
        let ends = matches!(pair[0], b'.' | b'?' | b'!') && pair[1] == b' ';
        if ends && (pair[2].is_ascii_uppercase() || pair[2] == b'`' || pair[2] == b'[') {
            found.push(&paragraph[begun..=at]);
            begun = at + 2;
        }
    }
    found.push(&paragraph[begun..]);
    found.into_iter().filter(|text| text.contains(' ')).collect()
}

/// Names of tests in a folder: functions of Rust with `#[test]`, of Python that begin with `test_`, and the functions of
/// programs in C and C++, which their tests run whole.
fn tests_in(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_in(&path, into);
            continue;
        }
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if !["rs", "py", "c", "cpp"].contains(&kind) {
            continue;
        }
        let mut is_test = false;
        for line in read(&path).lines().map(str::trim) {
            let words: &[&str] = match kind {
                "rs" => &["fn "],
                "py" => &["def "],
                _ => &["static void ", "int "],
            };
            let name = words.iter().find_map(|word| line.strip_prefix(word)?.split_once('('));
            let Some((name, _)) = name else {
                // Between the attribute and its function there are other attributes and comments.
                is_test = line.starts_with("#[test]") || is_test && line.starts_with(['#', '/']);
                continue;
            };
            let is_one = match kind {
                "rs" => is_test,
                "py" => name.starts_with("test_"),
                _ => true,
            };
            into.extend(is_one.then(|| name.trim_start_matches('*').to_owned()));
            is_test = false;
        }
    }
}

#[test]
fn every_sentence_has_its_tests_or_promises_nothing() {
    let mut tests = BTreeSet::new();
    for folder in ["lib", "memory", "python/tests", "lab/cli", "xtask"] {
        tests_in(&root().join(folder), &mut tests);
    }
    let table = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/promises.txt"));
    let mut wrong = Vec::new();
    for part in table.split("\n== ").skip(1) {
        let (document, rows) = part.split_once('\n').expect("a document and its rows");
        let text = paragraphs(document);
        let all: Vec<_> = text.iter().flat_map(|paragraph| sentences(paragraph)).collect();
        let mut held: BTreeSet<&&str> = BTreeSet::new();
        for row in rows.lines().filter(|row| !row.is_empty()) {
            let (words, names) =
                row.rsplit_once(" => ").unwrap_or_else(|| panic!("no arrow: {row}"));
            let of: Vec<_> = all.iter().filter(|sentence| sentence.contains(words)).collect();
            if of.is_empty() {
                wrong.push(format!("{document}: no sentence has {words:?}"));
            }
            held.extend(of);
            let missing = |name: &&str| *name != "-" && !tests.contains(*name);
            wrong.extend(
                names.split(", ").filter(missing).map(|name| format!("no test {name}: {words}")),
            );
        }
        let rest = all.iter().filter(|sentence| !held.contains(sentence));
        wrong.extend(rest.map(|sentence| format!("{document}: in no row: {sentence}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
