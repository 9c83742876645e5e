//! A grid of braille dots, two across and four down per column, with letters on top.

/// The grid.
pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    letter: Option<char>,
    /// Whose colour.
    rank: usize,
    /// A rule behind everything.
    behind: Option<char>,
}

/// SGR codes by rank: bold for the reference, then colours that differ in lightness too.
const CODES: [&str; 6] = ["1", "36", "33", "35", "32", "34"];

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Canvas {
        Canvas { columns, rows, cells: vec![Cell::default(); columns * rows] }
    }

    fn cell(&mut self, column: f64, row: f64) -> Option<&mut Cell> {
        let inside = |at: f64, count: usize| at >= 0.0 && (at as usize) < count;
        let is_inside = inside(column, self.columns) && inside(row, self.rows);
        is_inside.then(|| &mut self.cells[row as usize * self.columns + column as usize])
    }

    /// An upright rule in a column.
    pub(super) fn rule(&mut self, column: f64) {
        for row in 0..self.rows {
            if let Some(cell) = self.cell(column.round(), row as f64) {
                cell.behind = Some('┊');
            }
        }
    }

    /// A lying rule in a row.
    pub(super) fn level(&mut self, row: f64) {
        for column in 0..self.columns {
            if let Some(cell) = self.cell(column as f64, row.round()) {
                cell.behind = Some('┄');
            }
        }
    }

    /// A line through the points, in units of columns and rows, with a letter at each; several
    /// letters in one place become `*`.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], letter: char, rank: usize) {
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let steps = ((x1 - x0).abs() * 2.0).max((y1 - y0).abs() * 4.0).ceil().max(1.0) as usize;
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                // The middle of a column's cell is the place.
                self.dot(x0 + (x1 - x0) * share + 0.5, y0 + (y1 - y0) * share + 0.5, rank);
            }
        }
        for (column, row) in points {
            if let Some(cell) = self.cell(column.round(), row.round()) {
                let alone = cell.letter.is_none_or(|other| other == letter);
                cell.letter = Some(if alone { letter } else { '*' });
                cell.rank = rank;
            }
        }
    }

    fn dot(&mut self, x: f64, y: f64, rank: usize) {
        // Bits of the Unicode braille block: 1 2 3 7 down the left, 4 5 6 8 down the right.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (right, down) = ((x.fract() * 2.0) as usize, (y.fract() * 4.0) as usize);
        if let Some(cell) = self.cell(x, y) {
            cell.dots |= BITS[down.min(3)][right.min(1)];
            cell.rank = rank;
        }
    }

    /// A row as text.
    pub(super) fn row(&self, row: usize, colour: bool) -> String {
        let text = |cell: &Cell| {
            let drawn = match (cell.letter, cell.dots) {
                (Some(letter), _) => letter,
                (None, 0) => return cell.behind.unwrap_or(' ').to_string(),
                (None, dots) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
            };
            match CODES.get(cell.rank).filter(|_| colour && cell.letter != Some('*')) {
                Some(code) => format!("\u{1b}[{code}m{drawn}\u{1b}[0m"),
                None => drawn.to_string(),
            }
        };
        self.cells[row * self.columns..][..self.columns].iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_dots_and_points_are_letters() {
        let mut canvas = Canvas::new(5, 2);
        canvas.curve(&[(0.0, 1.0), (4.0, 0.0)], 'a', 0);
        canvas.curve(&[(4.0, 0.0)], 'b', 1);
        assert_eq!(canvas.row(0, false).chars().last(), Some('*'));
        assert_eq!(canvas.row(1, false).chars().next(), Some('a'));
        assert!(canvas.row(1, false).chars().nth(1).is_some_and(|c| c > '\u{2800}'));
        canvas.curve(&[(9.0, 9.0)], 'z', 0);
        canvas.curve(&[(-1.0, f64::NAN)], 'z', 0);
    }
}
