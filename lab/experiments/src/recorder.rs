//! The recorder of what an experiment finds: rows and remarks into the records, progress out, Ctrl-C in.

use crate::error::LabError;
use cachewise_measure::{Decision, Decisions, End, RecordError, Row, Writer};

/// Told how far a run is, asked whether to stop. The command line draws a bar from it.
pub trait Progress {
    /// The work ahead, in arbitrary units, and what it is.
    fn begin(&mut self, what: &str, units: f64);
    /// A piece of it was done.
    fn advance(&mut self, what: &str, units: f64);
    /// Tells whether to stop; asked between samples.
    fn cancelled(&self) -> bool;
}

/// No progress shown, and never stopped.
impl Progress for () {
    fn begin(&mut self, _: &str, _: f64) {}
    fn advance(&mut self, _: &str, _: f64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Takes down what is found, in a record where there is one, and keeps it. Its errors are those of a
/// record that cannot be written.
pub struct Recorder<'r> {
    progress: &'r mut dyn Progress,
    writer: Option<Writer>,
    pub rows: Vec<Row>,
    /// Every remark so far: what was skipped and why.
    pub notes: Vec<String>,
    pub decisions: Decisions,
}

impl<'r> Recorder<'r> {
    /// One that writes into a record whose header is written.
    pub fn new(progress: &'r mut dyn Progress, writer: Option<Writer>) -> Recorder<'r> {
        let (rows, notes, decisions) = (Vec::new(), Vec::new(), Decisions::default());
        Recorder { progress, writer, rows, notes, decisions }
    }

    /// The work ahead, in arbitrary units, and what it is.
    pub fn begin(&mut self, what: &str, units: f64) {
        self.progress.begin(what, units);
    }

    /// A piece of it was done.
    pub fn advance(&mut self, what: &str, units: f64) {
        self.progress.advance(what, units);
    }

    /// Tells whether the user wants to stop.
    pub fn stopped(&self) -> bool {
        self.progress.cancelled()
    }

    /// A row that is finished.
    pub fn row(&mut self, row: Row) -> Result<(), LabError> {
        self.writer.iter_mut().try_for_each(|writer| writer.row(&row))?;
        self.rows.push(row);
        Ok(())
    }

    pub fn rows(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), LabError> {
        rows.into_iter().try_for_each(|row| self.row(row))
    }

    pub fn note(&mut self, text: impl Into<String>) -> Result<(), LabError> {
        let text = text.into();
        self.writer.iter_mut().try_for_each(|writer| writer.note(&text))?;
        self.notes.push(text);
        Ok(())
    }

    /// The kernel that the library decided on, where that is what was measured.
    pub fn decision(&mut self, decision: Decision) -> Result<(), LabError> {
        let line = Decisions { kernels: vec![decision] };
        self.writer.iter_mut().try_for_each(|writer| writer.decisions(&line))?;
        self.decisions.kernels.extend(line.kernels);
        Ok(())
    }

    /// Ends the record with what its rows amount to; nothing where there is none.
    pub fn finish(
        &mut self,
        interrupted: bool,
        verdicts: &[String],
    ) -> Result<Option<End>, RecordError> {
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        verdicts.iter().for_each(|text| writer.verdict(text));
        writer.finish(interrupted).map(Some)
    }
}
