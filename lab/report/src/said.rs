//! What an experiment makes of a record, for everything that prints, draws or splices it.

use crate::Table;

/// What a record amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its verdicts; the first is the headline.
    pub verdicts: Vec<String>,
    /// What was decided, of a tuning.
    pub decisions: Option<Table>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Whether these are the matrix: one table for each cell.
    pub is_matrix: bool,
}
