use super::answers::{Shelf, rank};
use super::items::{Kind, items};
use super::*;
use cachewise_measure::Record;
use std::path::{Path, PathBuf};

/// Digest of all quotations as they were last looked up: the documents' text is not in this repository.
const QUOTED: u64 = 11_246_189_553_190_005_156;

/// The folder of the documents' text: named by the environment, or beside the checkout.
fn documents() -> Option<PathBuf> {
    let named = std::env::var_os("SOURCE_DOCUMENTS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    named.or(Some(beside)).filter(|folder| folder.is_dir())
}

/// Every document's text, a line break or a mark of quotation being one space.
fn text(folder: &Path, document: &str) -> String {
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let is_it = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(document))
    };
    let path = files.into_iter().find(is_it).unwrap_or_else(|| panic!("no text of {document}"));
    let text = std::fs::read_to_string(path).expect("UTF-8");
    text.split_whitespace()
        .filter(|word| !matches!(*word, ">" | ">>" | "%" | "*"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quotations() -> impl Iterator<Item = (&'static str, &'static str)> {
    let items = items().filter(|item| item.kind == Kind::Quoted);
    let claims = all().filter(|claim| !claim.quote.is_empty());
    items
        .map(|item| (item.number, item.words))
        .chain(claims.map(|claim| (&*claim.item, &*claim.quote)))
}

#[test]
fn no_quotation_changed_since_it_was_looked_up() {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for (number, words) in quotations() {
        for byte in number.bytes().chain(words.bytes()) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(digest, QUOTED, "a quotation changed: look it up (`SOURCE_DOCUMENTS=FOLDER`)");
}

#[test]
fn every_quotation_stands_in_its_document() {
    let Some(folder) = documents() else {
        eprintln!("quotations: not looked up, the documents' text is not here (SOURCE_DOCUMENTS)");
        return;
    };
    let missing: Vec<_> = quotations()
        .filter(|(number, words)| !text(&folder, &number[..3]).contains(words))
        .collect();
    assert!(missing.is_empty(), "not in the documents: {missing:#?}");
}

#[test]
fn every_item_is_answered_and_every_claim_is_of_an_item() {
    let numbers: Vec<&str> = items().map(|item| item.number).collect();
    let text = include_str!("items.tsv").lines().filter(|line| !line.starts_with('#'));
    assert_eq!(numbers.len(), text.count(), "a line lacks a field");
    let mut once = numbers.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), numbers.len(), "an item is there twice");
    for claim in all().filter(|claim| claim.item != OWN) {
        assert!(numbers.contains(&&*claim.item), "{} is no item", claim.item);
    }
    for item in items() {
        let claimed = all().any(|claim| claim.item == item.number);
        assert!(claimed || !item.answer.is_empty(), "{} has neither claim nor answer", item.number);
    }
}

/// A question, and a row's quotation, have the sense of their author.
#[test]
fn words_keep_their_sense() {
    let mut above = "";
    for claim in all().filter(|claim| claim.item != OWN) {
        let is_question = claim.quote.ends_with('?');
        assert!(!is_question || !claim.means.is_empty(), "{}: what does he mean?", claim.quote);
        assert!(!claim.quote.is_empty() || claim.item == above, "{}: whose words?", claim.asks);
        above = &claim.item;
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record")
}

/// An experiment had two names: under the older one is not the newer record.
#[test]
fn records_are_read_in_the_order_of_their_times_whole_runs_first() {
    let shelf = Shelf::new(&folder()).expect("records");
    let zen3: Vec<&Record> =
        shelf.0.iter().filter(|(name, _)| name.contains("-zen3-")).map(|(_, one)| one).collect();
    let at =
        |wanted: &str| zen3.iter().position(|one| one.experiment() == Some(wanted)).expect(wanted);
    assert!(at("receive") < at("tcp-copies"), "the older record of one experiment is first");
    let newest = zen3[at("receive")];
    assert!(!newest.header.command.contains(&"--size".to_owned()), "{:?}", newest.header.command);
    assert!(at("hints") < zen3.len() - 1, "a run of chosen sizes is before a whole one");
    assert!(shelf.0.is_sorted_by(|(_, one), (_, other)| rank(one) >= rank(other)));
}

#[test]
fn every_claim_finds_rows() {
    let answers = Answers::of(&folder()).expect("records");
    assert!(answers.without_rows().is_empty(), "{:#?}", answers.without_rows());
}
