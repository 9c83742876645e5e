//! `reuse-map` (000.14): per candidate, operation, size and place a grid of touched fraction by
//! delay. `<` marks cells that the candidate wins, `>` those it loses, `~` those that nobody can
//! tell; between `<` and `>` runs the break-even line.

use super::*;

/// One table per candidate other than the reference, operation, size and place.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let compared = rows.iter().filter(|row| row.candidate != row.reference);
    groups(compared, |row| (title(&row.cell), row.candidate.as_str()))
        .into_iter()
        .map(|((title, candidate), of_map)| {
            let mut table = table(&title, candidate, &of_map);
            let title = |row: &&Row| self::title(&row.cell) == title;
            table.remarks.extend(residency(rows.iter().filter(title)));
            table
        })
        .collect()
}

fn title(key: &CellKey) -> String {
    let place = key.levels().map_or(String::new(), |levels| format!(", {levels}"));
    format!("{} of {}{place}", key.operation, bytes(key.size))
}

/// A column: traffic first, then times.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Delay {
    Traffic(f64),
    Time(f64),
}

impl Delay {
    fn of(key: &CellKey) -> Delay {
        match key.axes.get("delay_ns") {
            Some(time) => Delay::Time(*time),
            None => Delay::Traffic(key.axis("delay_bytes").unwrap_or(0.0)),
        }
    }

    fn text(self) -> String {
        match self {
            Delay::Traffic(0.0) => "at once".to_owned(),
            Delay::Traffic(traffic) => format!("after {}", bytes(traffic as u64)),
            Delay::Time(nanoseconds) => format!("after {}", time(nanoseconds)),
        }
    }
}

fn table(title: &str, candidate: &str, rows: &[&Row]) -> Table {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| {
        a.cell.reader.partial_cmp(&b.cell.reader).unwrap_or(std::cmp::Ordering::Equal)
    });
    let delay = |row: &Row| Delay::of(&row.cell);
    let mut delays = columns(&rows, delay, |delay| delay.text());
    delays.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    let share = |row: &Row| format!("{:.1} %", row.cell.reader.unwrap_or(0.0) * 100.0);
    let cell = |row: &Row| {
        cost::ratio(row).map_or(String::new(), |ratio| {
            let mark = match ratio.verdict(cost::MARGIN) {
                Verdict::Faster => "<",
                Verdict::Slower => ">",
                Verdict::CannotTell => "~",
            };
            format!("{:.2} {mark}", ratio.median)
        })
    };
    let caption = format!("{candidate} over {reference}, {title}");
    let place = |row: &Row| (share(row), delay(row));
    let mut table = grid(caption, ">read", &rows, &delays, place, cell);
    let wins = by_verdict(&rows, Verdict::Faster);
    let losses = by_verdict(&rows, Verdict::Slower);
    table.remarks.push(format!(
        "operation and reader over {reference}'s in the same rounds: < faster ({wins}), > slower \
         ({losses}), ~ cannot tell ({})",
        rows.len() - wins - losses
    ));
    table
}

fn by_verdict(rows: &[&Row], wanted: Verdict) -> usize {
    rows.iter().filter(|row| cost::verdict(row) == Some(wanted)).count()
}
