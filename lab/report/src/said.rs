//! An experiment's sentences and tables of a record, for everything that prints, draws or splices it.

use crate::Table;

/// Sentences and tables of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its verdicts; the first is the headline.
    pub verdicts: Vec<String>,
    pub decisions: Option<Table>,
    pub tables: Vec<Table>,
}
