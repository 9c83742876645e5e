//! One page that needs nothing else: no script, no network, no font. Themes, legends and drill-down
//! are the browser's own check boxes and details elements, so that the page may be trusted, printed,
//! and used from the keyboard.

mod drill;

use crate::plot::{self, Panel, Plot, Quantity};
use crate::svg::{self, palette};
use crate::units::{bytes, significant, time};
use crate::{Said, Table, compare, crossover};
use cachewise_measure::{
    ClockFacts, Cpu, FigureKind, Latencies, Machine, Record, Row, Surroundings, Verdict,
};
use minijinja::{Environment, Value, context};

/// Panels that stand open; the others are behind a line.
const OPEN_PANELS: usize = 6;
/// Experiments with more tables than these keep them to the drill-down.
const MOST_TABLES: usize = 40;

/// One record on the page.
pub struct Sheet<'s> {
    /// The record's file name, without directories; empty where none was written.
    pub name: String,
    pub record: &'s Record,
    /// Sentences and tables of the record.
    pub said: Said,
}

/// A table for the template. `carrying`: its rows leave out what they share with the row above, at their
/// beginning; that is heard, and seen where rows are cards.
fn drawn(table: &Table, carrying: bool) -> Value {
    let mut rows: Vec<Vec<(&str, bool)>> = Vec::new();
    for row in &table.rows {
        let mut cells: Vec<_> = row.iter().map(|text| (text.as_str(), false)).collect();
        for (cell, above) in cells.iter_mut().zip(rows.last().into_iter().flatten()) {
            if !carrying || !cell.0.is_empty() {
                break;
            }
            *cell = (above.0, true);
        }
        rows.push(cells);
    }
    context! { caption => table.caption, columns => table.heads(), rows, remarks => table.remarks }
}

/// The style of every page: palette, marks, layout.
pub(crate) fn page_style() -> String {
    format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         :root:has(#theme-light:checked){{color-scheme:light;{light}}}\n\
         :root:has(#theme-dark:checked){{color-scheme:dark;{dark}}}\n\
         @media print{{:root:root:has(body){{color-scheme:light;{light}}}}}\n\
         {}{}",
        svg::STYLE,
        include_str!("page.css"),
        light = palette::LIGHT,
        dark = palette::DARK,
    )
}

/// The page. Errors are the template's, and ours.
///
/// # Errors
/// When the template and this function disagree, which tests would have shown, or when there is no
/// record to draw.
pub fn page(sheets: &[Sheet<'_>]) -> Result<String, minijinja::Error> {
    if sheets.is_empty() {
        let kind = minijinja::ErrorKind::InvalidOperation;
        return Err(minijinja::Error::new(kind, "there is no record to draw"));
    }
    let plots: Vec<Vec<Plot>> = sheets.iter().map(|sheet| plots(sheet.record)).collect();
    let keys = plots.iter().flatten().map(|plot| legend(plot).len()).max().unwrap_or(0);
    let toggle = |key| format!(".plot:has(.t{key}:not(:checked)) .s{key}{{display:none}}\n");
    let sections = sheets.iter().zip(&plots).enumerate();
    let sections: Vec<Value> =
        sections.map(|(index, (sheet, plots))| section(index, sheet, plots)).collect();
    let title = sections[0].get_attr("headline")?;
    let head = Head {
        title: title.as_str().unwrap_or_default(),
        brand: "Cachewise report",
        first: ("r0", "To the report"),
        written: &sheets[0].record.header.tool,
        style: (0..keys).map(toggle).collect(),
    };
    let values = context! { several => sections.len() > 1, mixed => mixed(sheets), sections };
    render(head, include_str!("page.html"), values)
}

/// The parts of a page that are not its own template's.
#[derive(serde::Serialize)]
pub struct Head<'h> {
    pub title: &'h str,
    /// The line beside the choice of colours.
    pub brand: &'h str,
    /// The identifier of the content and the words of the link that skips to it.
    pub first: (&'h str, &'h str),
    /// The program that wrote the record; empty where there are several.
    pub written: &'h str,
    /// Rules behind those of every page.
    pub style: String,
}

/// A page: the frame of all, and in it what a template makes of the values.
///
/// # Errors
/// The template is none, or needs what the values lack.
pub fn render(
    mut head: Head<'_>,
    template: &str,
    values: impl serde::Serialize,
) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    let body = environment.render_named_str("page.html", template, values)?;
    head.style.insert_str(0, &page_style());
    let frame = include_str!("frame.html");
    environment.render_named_str("frame.html", frame, context! { head, body })
}

/// Differences between the machines of several records, in a sentence.
fn mixed(sheets: &[Sheet<'_>]) -> Option<String> {
    let first = sheets.first()?;
    let differing = |sheet: &Sheet<'_>| {
        let [one, other] = [first, sheet].map(|sheet| &sheet.record.header.machine);
        let differences = compare::machine_differences(one, other).join(", ");
        (!differences.is_empty())
            .then(|| format!("{} differs from {} in {differences}", sheet.name, first.name))
    };
    let differing: Vec<String> = sheets[1..].iter().filter_map(differing).collect();
    (!differing.is_empty()).then(|| {
        format!(
            "These records come from different machines: {}. Compare ratios between them, never \
             seconds or GB/s.",
            differing.join("; ")
        )
    })
}

/// The figures of a record.
fn plots(record: &Record) -> Vec<Plot> {
    let mut plots = plot::plots(record);
    plot::agree_on_colours(&mut plots);
    plots
}

fn section(index: usize, sheet: &Sheet<'_>, plots: &[Plot]) -> Value {
    let record = sheet.record;
    let header = &record.header;
    let mut verdicts = sheet.said.verdicts.clone();
    // Rows that could not be measured are no headline.
    let no_finding =
        |text: &String| text.starts_with("Withheld: ") || text.starts_with("Not measurable here: ");
    if verdicts.first().is_none_or(no_finding) {
        verdicts.insert(0, tally(&record.rows));
    }
    let named = record.name().unwrap_or_else(|| crate::rows::experiment_of(record));
    let experiment = if named.is_empty() { "record" } else { named };
    let tables = &sheet.said.tables;
    let tables = if tables.len() > MOST_TABLES { &[] } else { tables.as_slice() };
    context! {
        id => format!("r{index}"),
        name => sheet.name,
        experiment,
        headline => sentence(verdicts.remove(0)),
        verdicts,
        facts => facts(record),
        machine => machine(&header.machine),
        warnings => header.warnings,
        notes => record.notes.iter().map(|note| &note.text).collect::<Vec<_>>(),
        command => shell_words(&header.command),
        figures => plots.iter().map(picture).collect::<Vec<_>>(),
        decisions => sheet.said.decisions.iter().map(|table| drawn(table, true)).collect::<Vec<_>>(),
        crossovers => crossover::table(record).map(|table| drawn(&table, true)),
        tables => tables.iter().map(|table| drawn(table, false)).collect::<Vec<_>>(),
        groups => drill::groups(&record.rows),
        rows => record.rows.len(),
        interrupted => record.end.as_ref().is_none_or(|end| end.interrupted),
    }
}

/// A headline begins with a capital, unless a kernel's name begins it, and ends as a sentence does.
fn sentence(mut text: String) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    if !first.contains('.') && text.is_char_boundary(1) {
        text[..1].make_ascii_uppercase();
    }
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

/// Text in place of a headline for a record without rows.
pub const NOTHING_COMPARED: &str = "The record has no rows in which something was compared.";

/// A headline for a record that has none.
fn tally(rows: &[Row]) -> String {
    let against: Vec<&Row> = rows.iter().filter(|row| row.candidate != row.reference).collect();
    let [faster, slower] = [Verdict::Faster, Verdict::Slower].map(|verdict| {
        against.iter().filter(|row| crate::cost::verdict(row) == Some(verdict)).count()
    });
    if against.is_empty() {
        return NOTHING_COMPARED.to_owned();
    }
    let reference = against.first().map_or("the reference", |row| row.reference.as_str());
    let (all, others) = (against.len(), against.len() - faster - slower);
    format!(
        "Of {all} comparisons with {reference}, {faster} were faster, {slower} slower, and {others} \
         showed no difference or were dropped as slow."
    )
}

fn facts(record: &Record) -> Vec<(String, String)> {
    let header = &record.header;
    let mut facts = Vec::new();
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    fact("started", header.started.clone());
    fact("written by", header.tool.clone());
    fact("seed", header.seed.to_string());
    if let Some(end) = &record.end {
        // Some kept tunings have the seconds of writing alone.
        if end.seconds >= 0.5 {
            fact("took", format!("{:.0} s", end.seconds));
        }
        end.peak_bytes.into_iter().for_each(|peak| fact("most memory", bytes(peak)));
    }
    for (name, text) in timing(&header.clock, header.latencies.as_ref()) {
        fact(name, text);
    }
    for (name, value) in &header.settings {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fact(&name.replace('_', " "), text);
    }
    for (name, text) in surroundings(header.surroundings.as_ref()) {
        fact(name, text);
    }
    for (name, value) in header.flags.iter().filter(|(_, value)| !value.is_empty()) {
        fact(name, value.clone());
    }
    facts
}

/// Facts about the clock, and latencies of the levels where they were measured.
pub fn timing(clock: &ClockFacts, latencies: Option<&Latencies>) -> Vec<(&'static str, String)> {
    let (cost, ghz) = (time(clock.cost_ns), significant(clock.core_ghz));
    let clock = format!("{}, {cost} per reading, core at {ghz} GHz", clock.source);
    let load = latencies.map(|all| {
        let [l1, l2, llc, dram] = [all.l1, all.l2, all.llc, all.dram].map(time);
        ("a dependent load", format!("L1 {l1}, L2 {l2}, LLC {llc}, DRAM {dram}"))
    });
    std::iter::once(("clock", clock)).chain(load).collect()
}

/// Allocator, tunables and limits of the program that was measured.
fn surroundings(of: Option<&Surroundings>) -> Vec<(&'static str, String)> {
    let Some(Surroundings { allocator, preload, tunables, huge_pages, memory_limit }) = of else {
        return Vec::new();
    };
    let limit = memory_limit.map_or_else(String::new, bytes);
    let all = [
        ("allocator", allocator.clone()),
        ("LD_PRELOAD", preload.clone()),
        ("tunables", tunables.clone()),
        ("huge pages of the program", huge_pages.clone()),
        ("memory limit", limit),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Facts about a machine, one a line.
pub fn machine(machine: &Machine) -> Vec<(&'static str, String)> {
    let cache = |level: &cachewise_measure::CacheLevel| {
        let shared = match level.shared_by {
            0 | 1 => String::new(),
            several => format!(", shared by {several} CPUs"),
        };
        format!("{}{shared} ({})", bytes(level.bytes as u64), level.source)
    };
    let caches = &machine.caches;
    let Cpu { model_name, vendor, family, model, stepping, features, .. } = &machine.cpu;
    let mut facts = vec![
        ("CPU", model_name.clone()),
        ("signature", format!("{vendor} family {family} model {model} stepping {stepping}")),
        ("features", features.clone()),
        ("L1d", cache(&caches.l1d)),
        ("L2", cache(&caches.l2)),
        ("LLC of a core complex", cache(&caches.llc)),
    ];
    if let Some(usable) = caches.llc_usable {
        facts.push(("LLC that answers like one", bytes(usable as u64)));
    }
    facts.extend([
        ("CPUs", machine.logical_cpus.to_string()),
        ("memory", bytes(machine.memory_bytes)),
        ("huge pages", machine.thp.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("hypervisor", machine.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned())),
        ("system", machine.kernel.clone()),
        ("C library", format!("{} {}", machine.libc.name, machine.libc.version)),
        ("compiler", machine.compiler.clone()),
    ]);
    if let Some(emulator) = &machine.emulated {
        facts.push(("emulated by", format!("{emulator}: its times mean nothing")));
    }
    facts
}

/// A command line that a shell takes back.
pub fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = words.iter().map(|word| match word.as_str() {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The keys of a figure's legend: a curve has one for each candidate.
fn legend(plot: &Plot) -> &[plot::Key] {
    if plot.kind == FigureKind::Curve { &plot.keys } else { &[] }
}

fn picture(plot: &Plot) -> Value {
    let keys = |shown: bool| -> Vec<Value> {
        let key = |(index, key): (usize, &plot::Key)| {
            let classes = svg::classes(plot, index, "swatch");
            context! { index, name => key.name, classes, shown }
        };
        let keys = legend(plot).iter().enumerate();
        keys.filter(|(_, key)| key.shown == shown).map(key).collect()
    };
    let view = |panel: &Panel| context! { title => panel.title, svg => svg::panel(plot, panel) };
    let mut open: Vec<Value> = plot.panels.iter().map(view).collect();
    let folded = open.split_off(open.len().min(OPEN_PANELS));
    let colours = match plot.value.is_ratio() {
        true => ("faster than the reference", "slower"),
        false => ("less", "more"),
    };
    let numbers = |panel| drawn(&numbers(plot, panel), false);
    context! {
        title => plot.title,
        note => note(plot),
        keys => keys(true),
        more => keys(false),
        parts => plot.value == Quantity::Cost,
        colours => (plot.kind == FigureKind::HeatMap).then_some(colours),
        open,
        folded,
        tables => plot.panels.iter().map(numbers).collect::<Vec<_>>(),
    }
}

/// Note under a figure: how to read it.
fn note(plot: &Plot) -> String {
    let ratio = plot.value.is_ratio();
    let mut note = match plot.kind {
        FigureKind::Curve if ratio => {
            "Points are medians, bands their 95 % intervals; below the heavy line at 1 is faster than \
             the reference"
        }
        FigureKind::Curve => {
            "Points are medians, bands their 95 % intervals; the reference is dashed"
        }
        FigureKind::Bars if plot.value == Quantity::Cost => "Medians, divided as those of the parts are",
        FigureKind::HeatMap if ratio => {
            "Time over the reference's: below 1 is faster; the heavy line is break-even"
        }
        FigureKind::HeatMap => "Medians",
        _ => "Medians, whiskers their 95 % intervals",
    }
    .to_owned();
    if plot.kind == FigureKind::Curve && plot.panels.iter().any(|panel| !panel.rules.is_empty()) {
        note += "; dotted rules: one operand is as large as that cache";
    }
    note + "."
}

/// A panel's figures as a table.
pub fn numbers(plot: &Plot, panel: &Panel) -> Table {
    match plot.kind {
        FigureKind::Curve => curve_numbers(plot, panel),
        _ => point_numbers(plot, panel),
    }
}

fn curve_numbers(plot: &Plot, panel: &Panel) -> Table {
    let mut columns = vec![format!(">{}", panel.x.title())];
    columns.extend(panel.series.iter().map(|series| format!(">{}", plot.keys[series.key].name)));
    let mut table = Table::new(format!("{} ({})", panel.title, plot.value.title()), &columns);
    let write = |mid: f64| match plot.value {
        // Its unit stands in the caption.
        Quantity::Gbps => significant(mid),
        _ => plot.value.write(mid),
    };
    for &place in &panel.x.places {
        let points = panel.series.iter().map(|series| series.at(place, 0.0));
        let mut row = vec![panel.x.write(place)];
        row.extend(points.map(|point| point.map_or("-".into(), |point| write(point.value.mid))));
        table.push(row);
    }
    table
}

fn point_numbers(plot: &Plot, panel: &Panel) -> Table {
    let x_is_name = panel.x.names.len() == panel.series.len() && panel.y.is_none();
    let x = (!x_is_name).then_some(&panel.x);
    let mut columns = vec!["candidate".to_owned()];
    columns.extend(x.into_iter().chain(&panel.y).map(|axis| format!(">{}", axis.title())));
    columns.extend([format!(">{}", plot.value.title()), ">95 % interval".to_owned()]);
    if plot.value == Quantity::Cost {
        columns.extend([">operation", ">reader", ">bystander"].map(str::to_owned));
    }
    let mut table = Table::new(&panel.title, &columns);
    for series in &panel.series {
        for point in &series.points {
            let value = point.value;
            let mut row = vec![plot.keys[series.key].name.clone()];
            row.extend(x.map(|x| x.write(point.x)));
            row.extend(panel.y.as_ref().map(|y| y.write(point.y)));
            row.push(plot.value.write(value.mid));
            row.push(value.interval(&plot.value).unwrap_or_else(|| "-".to_owned()));
            row.extend(point.parts.iter().flatten().map(|part| time(*part)));
            table.push(row);
        }
    }
    table
}

#[cfg(test)]
mod tests;
