//! The items of the five documents: their words, and what answers an item that is no claim (`items.tsv`).

/// One item of the checklist.
pub struct Item {
    /// Document and number, `000.6`. Numbers stay: code and tests cite them.
    pub number: &'static str,
    pub kind: Kind,
    pub words: &'static str,
    /// The answer beside its claims; empty where these suffice.
    pub answer: &'static str,
}

/// The author of an item's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The document's, letter by letter but for line breaks and marks of quotation.
    Quoted,
    /// Ours: the document does not say it.
    Inferred,
    Elsewhere(&'static str),
}

pub fn items() -> impl Iterator<Item = Item> {
    let lines = include_str!("items.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.split('\t');
        let (number, kind) = (fields.next()?, fields.next()?);
        let kind = match kind {
            "\"" => Kind::Quoted,
            "†" => Kind::Inferred,
            whose => Kind::Elsewhere(whose),
        };
        Some(Item { number, kind, words: fields.next()?, answer: fields.next()? })
    })
}
