//! One table, three ways to write it: for a terminal, as CSV, as Markdown.

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// A column of a [listing](Table::listing): its head and what stands in it.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// A table with a caption above and remarks below. Every row has one text per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What the table shows, in a line.
    pub caption: String,
    /// Column heads with their alignment.
    pub columns: Vec<(String, Align)>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// What a reader has to know to read it right.
    pub remarks: Vec<String>,
}

/// Columns of a terminal that a column of a table takes at least, with the space beside it.
const NARROWEST: usize = 6;

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

    /// The same with the column heads in one text, parted by ` | `.
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

    /// Appends a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// Appends a row; missing cells are empty, superfluous ones are dropped.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// For a terminal that is `width` columns wide (`None`: no limit, nothing is wrapped). One that leaves
    /// less than 6 for a column wraps lines by itself: words would be cut into letters.
    pub fn terminal(&self, width: Option<u16>) -> String {
        let mut drawn = comfy_table::Table::new();
        drawn.load_preset(presets::NOTHING);
        drawn.set_header(self.columns.iter().map(|(name, _)| name.as_str()));
        for row in &self.rows {
            drawn.add_row(row);
        }
        for (index, (_, align)) in self.columns.iter().enumerate() {
            if let Some(column) = drawn.column_mut(index) {
                column.set_cell_alignment(match align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
            }
        }
        drawn.set_content_arrangement(ContentArrangement::Disabled);
        let least = NARROWEST * self.columns.len();
        if let Some(width) = width.filter(|width| usize::from(*width) >= least) {
            drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let caption = Some(self.caption.as_str()).filter(|caption| !caption.is_empty());
        let drawn = drawn.to_string();
        let lines = drawn.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
        let remarks = self.remarks.iter().map(|remark| format!("  {remark}\n"));
        let lines = caption.into_iter().chain(lines).map(|line| format!("{line}\n"));
        lines.chain(remarks).collect()
    }

    /// RFC 4180, heads in the first line; caption and remarks have no place in it.
    pub fn csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let heads = self.columns.iter().map(|(name, _)| name).collect::<Vec<_>>();
        for line in std::iter::once(heads).chain(self.rows.iter().map(|row| row.iter().collect())) {
            // A vector takes everything, and so does a writer that does not count fields.
            let _ = writer.write_record(line);
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// A Markdown table, the caption in bold above, remarks as a list below.
    pub fn markdown(&self) -> String {
        let escape = |text: &str| text.replace('|', "\\|");
        let mut text = String::new();
        if !self.caption.is_empty() {
            text.push_str(&format!("**{}**\n\n", self.caption));
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
            text.push_str(&format!("- {remark}\n"));
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

    #[test]
    fn a_narrow_terminal_wraps_instead_of_overflowing() {
        let text = sample().terminal(Some(24));
        let body = text.lines().skip(1).take_while(|line| !line.starts_with("  ratio"));
        assert!(body.clone().all(|line| line.chars().count() <= 24), "{text}");
        assert!(text.contains("12.34"));
    }

    #[test]
    fn a_terminal_too_narrow_for_words_gets_whole_lines() {
        assert_eq!(sample().terminal(Some(10)), sample().terminal(None));
    }
}
