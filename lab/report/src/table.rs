//! One table, three ways to write it: for a terminal, as CSV, as Markdown.

use crate::foreign;

/// Alignment of a column's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A column of a [listing](Table::listing): its head and what stands in it.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// A table with a caption above and remarks below. Every row has one text per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub caption: String,
    /// Column heads with their alignment.
    pub columns: Vec<(String, Align)>,
    pub rows: Vec<Vec<String>>,
    /// Notes that a reader needs.
    pub remarks: Vec<String>,
}

const GAP: usize = 2;

/// A column of words is not wrapped to less than this.
const READABLE: usize = 20;

/// Characters, which a terminal's columns are taken for.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// The text in lines of at most so many characters, broken at spaces alone: a longer word is a line of its
/// own. Lines after the first are indented as the text is and by `hang` more.
pub fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    let mut begun = line.len();
    for word in text[indent..].split(' ') {
        let is_first = line.len() == begun;
        if !is_first && length(&line) + 1 + length(word) > width {
            lines.push(line.trim_end().to_owned());
            begun = indent + hang;
            line = " ".repeat(begun) + word;
        } else {
            line = if is_first { line + word } else { line + " " + word };
        }
    }
    lines.push(line);
    lines
}

impl Table {
    /// An empty table; a column head that starts with `>` is right-aligned.
    pub fn new(caption: impl Into<String>, columns: &[impl AsRef<str>]) -> Table {
        let column = |head: &str| match head.strip_prefix('>') {
            Some(name) => (name.to_owned(), Align::Right),
            None => (head.to_owned(), Align::Left),
        };
        let columns = columns.iter().map(|head| column(head.as_ref())).collect();
        Table { caption: caption.into(), columns, rows: Vec::new(), remarks: Vec::new() }
    }

    /// An empty table with the column heads in one text, parted by ` | `.
    pub fn of(caption: impl Into<String>, heads: &str) -> Table {
        Table::new(caption, &heads.split(" | ").collect::<Vec<_>>())
    }

    /// A line for each of some items.
    pub fn listing<'i, T: 'i>(
        caption: impl Into<String>,
        columns: &[Column<T>],
        items: impl IntoIterator<Item = &'i T>,
    ) -> Table {
        let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        let mut table = Table::new(caption, &heads);
        for item in items {
            table.push(columns.iter().map(|(_, cell)| cell(item)).collect());
        }
        table
    }

    /// Column heads, and whether each is right-aligned.
    pub fn heads(&self) -> Vec<(String, bool)> {
        self.columns.iter().map(|(name, align)| (name.clone(), *align == Align::Right)).collect()
    }

    /// Table of these columns alone.
    #[must_use]
    pub fn only(mut self, heads: &[&str]) -> Table {
        let kept: Vec<bool> =
            self.columns.iter().map(|(head, _)| heads.contains(&head.as_str())).collect();
        let mut at = kept.iter().copied().cycle();
        self.columns.retain(|_| at.next() == Some(true));
        self.rows.iter_mut().for_each(|row| row.retain(|_| at.next() == Some(true)));
        self
    }

    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// Appends a row; missing cells are empty, superfluous ones are dropped.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// For a terminal that is `width` columns wide (`None`: no limit). No figure and no word is broken. First
    /// the widest columns of words are wrapped; columns that still do not fit follow below, from left to right,
    /// each time beside the first columns.
    pub fn terminal(&self, width: Option<u16>) -> String {
        let width = width.map_or(usize::MAX, usize::from);
        let mut text = String::new();
        let say = |part: &str| wrap(&foreign::line(part), width, 2).join("\n") + "\n";
        if !self.caption.is_empty() {
            text += &say(&self.caption);
        }
        let parts = self.folded(width);
        text += &parts.iter().map(|part| self.drawn(part, width)).collect::<Vec<_>>().join("\n");
        text + &self.remarks.iter().map(|remark| say(&format!("  {remark}"))).collect::<String>()
    }

    /// A column's cells, without its head.
    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[column].as_str())
    }

    /// The least columns of a terminal that a column takes, and those that it would like.
    fn widths(&self, column: usize) -> (usize, usize) {
        let (head, align) = &self.columns[column];
        let word = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
        let cells = self.cells(column).map(length).max().unwrap_or(0);
        let words = match align {
            Align::Right => cells,
            Align::Left => self.cells(column).map(word).max().unwrap_or(0).max(cells.min(READABLE)),
        };
        (words.max(word(head)), cells.max(length(head)))
    }

    /// The columns that stand side by side, for each part of the table.
    fn folded(&self, width: usize) -> Vec<Vec<usize>> {
        let taken = |columns: &[usize]| {
            let widths = columns.iter().map(|column| self.widths(*column).0 + GAP);
            widths.sum::<usize>().saturating_sub(GAP)
        };
        let all: Vec<usize> = (0..self.columns.len()).collect();
        if taken(&all) <= width {
            return vec![all];
        }
        let mut keys = 1;
        while keys < all.len()
            && self.columns[keys].1 == Align::Left
            && 2 * taken(&all[..=keys]) <= width
        {
            keys += 1;
        }
        let mut parts = vec![all[..keys].to_vec()];
        for column in &all[keys..] {
            let last = parts.len() - 1;
            let with = [parts[last].as_slice(), &[*column]].concat();
            if taken(&with) > width && parts[last].len() > keys {
                parts.push([&all[..keys], &[*column]].concat());
            } else {
                parts[last] = with;
            }
        }
        parts
    }

    /// Some columns, side by side.
    fn drawn(&self, columns: &[usize], width: usize) -> String {
        let (least, mut widths): (Vec<usize>, Vec<usize>) =
            columns.iter().map(|column| self.widths(*column)).unzip();
        while widths.iter().map(|width| width + GAP).sum::<usize>() > width.saturating_add(GAP) {
            let shrinks = (0..widths.len()).filter(|at| widths[*at] > least[*at]);
            let Some(widest) = shrinks.max_by_key(|at| widths[*at]) else { break };
            widths[widest] -= 1;
        }
        let heads: Vec<String> = self.columns.iter().map(|(head, _)| head.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells = columns
                .iter()
                .zip(&widths)
                .map(|(at, width)| wrap(&foreign::line(&row[*at]), *width, 0));
            let cells: Vec<Vec<String>> = cells.collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let parts =
                    cells.iter().zip(columns).zip(&widths).map(|((cell, column), width)| {
                        let part = cell.get(line).map_or("", String::as_str);
                        // Not by a format's width, which ends at 65,535.
                        let space = " ".repeat(width.saturating_sub(length(part)));
                        match self.columns[*column].1 {
                            Align::Left => part.to_owned() + &space,
                            Align::Right => space + part,
                        }
                    });
                let line = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
                text += &format!("{}\n", line.trim_end());
            }
        }
        text
    }

    /// RFC 4180, heads in the first line; caption and remarks have no place in it.
    pub fn csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let heads = self.columns.iter().map(|(name, _)| name).collect::<Vec<_>>();
        for line in std::iter::once(heads).chain(self.rows.iter().map(|row| row.iter().collect())) {
            // A vector takes everything, and so does a writer that does not count fields.
            let _ =
                writer.write_record(line.into_iter().map(|cell| foreign::csv(cell).into_owned()));
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// A Markdown table, the caption in bold above, remarks as a list below.
    pub fn markdown(&self) -> String {
        let escape = foreign::markdown;
        let mut text = String::new();
        if !self.caption.is_empty() {
            text.push_str(&format!("**{}**\n\n", foreign::line(&self.caption)));
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text.push_str(&line(self.columns.iter().map(|(name, _)| escape(name)).collect()));
        let rules = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        text.push_str(&line(rules.collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|cell| escape(cell)).collect()));
        }
        if !self.remarks.is_empty() {
            text.push('\n');
        }
        for remark in &self.remarks {
            text.push_str(&format!("- {}\n", foreign::line(remark)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new("copy, DRAM to DRAM", &["name", ">GB/s", "verdict"]);
        table.push(vec!["copy.avx".into(), "12.34".into(), "faster".into()]);
        table.push(vec!["a|b, \"c\"".into(), "5.6".into()]);
        table.remarks.push("ratio to libc".into());
        table
    }

    #[test]
    fn a_table_is_written_in_three_ways() {
        insta::assert_snapshot!(sample().terminal(None), @r#"
        copy, DRAM to DRAM
        name       GB/s  verdict
        copy.avx  12.34  faster
        a|b, "c"    5.6
          ratio to libc
        "#);
        assert_eq!(
            sample().csv(),
            "name,GB/s,verdict\ncopy.avx,12.34,faster\n\"a|b, \"\"c\"\"\",5.6,\n"
        );
        assert_eq!(
            sample().markdown(),
            "**copy, DRAM to DRAM**\n\n| name | GB/s | verdict |\n| --- | ---: | --- |\n\
             | copy.avx | 12.34 | faster |\n| a\\|b, \"c\" | 5.6 |  |\n\n- ratio to libc\n"
        );
    }

    /// A record's names are anybody's words.
    #[test]
    fn a_name_of_any_length_is_drawn() {
        let mut table = sample();
        table.push(vec!["x".repeat(100_000), "1".into(), "y".repeat(100_000)]);
        for width in [None, Some(80)] {
            let drawn = table.terminal(width);
            assert!(drawn.lines().any(|line| line.starts_with("xxx") && line.len() >= 100_000));
        }
    }

    #[test]
    fn text_is_broken_at_spaces_alone() {
        assert_eq!(wrap("  one two three", 9, 2), ["  one two", "    three"]);
        assert_eq!(wrap("unbreakable it is", 5, 0), ["unbreakable", "it is"]);
        assert_eq!(wrap("a  b", 80, 2), ["a  b"]);
        assert_eq!(wrap("", 80, 2), [""]);
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let mut table = Table::of("Loops", "kernel | store | >ns | >95 % interval | meaning");
        let meaning = "what it does, said in more words than there are columns";
        for name in ["copy.avx", "copy.avx512.nt"] {
            table.push(["", "", "5.25", "0.910 .. 1.020", meaning].map(str::to_owned).to_vec());
            let row = table.rows.last_mut().expect("a row");
            (row[0], row[1]) = (name.to_owned(), "temporal".to_owned());
        }
        table.remark("ns: of one call, the median of fifteen rounds");
        insta::assert_snapshot!(table.terminal(Some(60)), @r"
        Loops
        kernel          store       ns   95 % interval
        copy.avx        temporal  5.25  0.910 .. 1.020
        copy.avx512.nt  temporal  5.25  0.910 .. 1.020

        kernel          store     meaning
        copy.avx        temporal  what it does, said in more words
                                  than there are columns
        copy.avx512.nt  temporal  what it does, said in more words
                                  than there are columns
          ns: of one call, the median of fifteen rounds
        ");
        insta::assert_snapshot!(table.terminal(Some(40)), @r"
        Loops
        kernel          store       ns
        copy.avx        temporal  5.25
        copy.avx512.nt  temporal  5.25

        kernel           95 % interval
        copy.avx        0.910 .. 1.020
        copy.avx512.nt  0.910 .. 1.020

        kernel          meaning
        copy.avx        what it does, said in
                        more words than there
                        are columns
        copy.avx512.nt  what it does, said in
                        more words than there
                        are columns
          ns: of one call, the median of fifteen
            rounds
        ");
    }
}
