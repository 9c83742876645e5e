//! What an experiment is, and what of the user's options it takes.

use crate::prelude::*;
use cachewise_measure::Decision;
use cachewise_report::Table;

/// An option that not every experiment takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Op,
    Peer,
    Libc,
    Distribution,
    Kernels,
    Size,
    Residency,
}

impl Flag {
    const fn name(self) -> &'static str {
        match self {
            Flag::Op => "--op",
            Flag::Peer => "--peer",
            Flag::Libc => "--libc",
            Flag::Distribution => "--distribution",
            Flag::Kernels => "--kernels",
            Flag::Size => "--size",
            Flag::Residency => "--residency",
        }
    }
}

/// Options that few experiments take, and why the others do not.
const FEW: [(Flag, &str); 4] = [
    (Flag::Op, "it has operations of its own"),
    (Flag::Peer, "it compares kernels; use it with peers"),
    (Flag::Libc, "it compares kernels; use it with peers"),
    (Flag::Distribution, "it has sizes of its own; use it with peers"),
];

/// What is said of rows, and of what was decided when they were measured.
pub(crate) type Say = fn(&[Row], &[Decision]) -> Vec<String>;

/// How rows become tables.
pub(crate) type Tables = fn(&[Row]) -> Vec<Table>;

/// An experiment anyone can run by name.
pub struct Experiment {
    /// What to type.
    pub name: &'static str,
    /// The question in a line.
    pub about: &'static str,
    /// Items of the source documents it answers (`002.2`).
    pub seeds: &'static [&'static str],
    /// Operations whose kernels it measures.
    pub operations: &'static [Operation],
    /// Options that it takes, of those that few do.
    pub(crate) takes: &'static [Flag],
    /// Options that it does not take, and why.
    pub(crate) refuses: &'static [(Flag, &'static str)],
    /// What `--classic` sets: the source document's own parameters; empty where it has none.
    pub classic: &'static str,
    /// Its sentences, of rows that can be relied on; the first is the headline.
    pub(crate) say: Option<Say>,
    /// Its tables, where they are not those of a matrix: one for each cell.
    pub(crate) tables: Option<Tables>,
    /// How its rows are drawn, beside its tables.
    pub(crate) figures: fn() -> Vec<Figure>,
    /// What its candidates are compared with that is done where nobody changes anything: to be faster is
    /// a gain.
    pub today: &'static [&'static str],
    /// Who gains by it.
    pub serves: Serves,
    pub(crate) run: fn(&mut Setting) -> Result,
}

/// Who gains by what an experiment finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Who tunes: it measures kernels.
    Tuner,
    /// Who runs programs on the library: it measures the library itself.
    Library,
    /// Who has a pool of pages.
    Pool,
}

impl Experiment {
    /// How its rows are drawn: what goes into the record's header.
    pub fn figures(&self) -> Vec<Figure> {
        (self.figures)()
    }

    /// Whether it has sentences of its own.
    pub fn has_sentences(&self) -> bool {
        self.say.is_some()
    }

    /// Whether it compares the library with others.
    pub fn takes_peers(&self) -> bool {
        self.takes.contains(&Flag::Peer)
    }

    /// Runs it.
    ///
    /// # Errors
    /// Unknown kernels, impossible sizes, `--classic` without any, wrong bytes, refused memory, a record
    /// that cannot be written; [`LabError::Interrupted`] when the user stopped it, and then finished rows
    /// are with the recorder.
    pub fn run(&self, setting: &mut Setting) -> Result {
        setting.check_sizes()?;
        if setting.options.classic && self.classic.is_empty() {
            return Err(LabError::Usage(format!(
                "--classic: {} has no parameters of a source document; accepted without it",
                self.name
            )));
        }
        self.check_options(setting.options)?;
        setting.bench.experiment = self.name;
        (self.run)(setting)
    }

    /// An option that this experiment would not follow is refused rather than ignored.
    fn check_options(&self, options: &Options) -> Result {
        let given = [
            (Flag::Op, !options.operations.is_empty()),
            (Flag::Peer, !options.peers.is_empty()),
            (Flag::Libc, !options.libcs.is_empty()),
            (Flag::Distribution, options.distribution.is_some()),
            (Flag::Kernels, options.kernels.is_some()),
            (Flag::Size, !options.sizes.is_empty()),
            (Flag::Residency, !options.placements.is_empty()),
        ];
        let few = FEW.iter().filter(|(flag, _)| !self.takes.contains(flag));
        let mut all = few.chain(self.refuses).filter(|(flag, _)| given.contains(&(*flag, true)));
        let other = options.operations.iter().find(|op| !self.operations.contains(op));
        let (flag, why) = match (all.next(), other) {
            (Some((flag, why)), _) => (*flag, (*why).to_owned()),
            (None, Some(other)) => (Flag::Op, format!("it is not about {other}")),
            (None, None) => return Ok(()),
        };
        Err(LabError::Usage(format!("{}: not for {}: {why}", flag.name(), self.name)))
    }
}
