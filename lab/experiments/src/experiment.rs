//! An experiment, and the options that it follows.

use crate::prelude::*;
use cachewise_report::{Table, matrix};

/// An experiment anyone can run by name, or one that left, whose records are read and drawn still.
pub struct Experiment {
    pub name: &'static str,
    /// Names that older records have for its rows.
    pub(crate) formerly: &'static [&'static str],
    /// The question in a line.
    pub about: &'static str,
    /// Items of the source documents it answers (`002.2`).
    pub seeds: &'static [&'static str],
    /// Operations whose kernels it measures.
    pub operations: &'static [Operation],
    /// Options that it follows, of those that not all do.
    pub(crate) takes: &'static [&'static str],
    /// The effect of `--classic`: the source document's own parameters; empty where it has none.
    pub classic: &'static str,
    /// Sentences about what was measured, where no claim has them.
    pub(crate) say: fn(&[Row]) -> Vec<String>,
    pub(crate) tables: fn(&[Row]) -> Vec<Table>,
    /// Figures beside its tables, named in the record's header.
    pub figures: fn() -> Vec<Figure>,
    /// References that stand for what is done if nobody changes anything: to be faster is
    /// a gain.
    pub today: &'static [&'static str],
    /// The readers who gain by it.
    pub serves: Serves,
    /// True for an item of `study`.
    pub is_study: bool,
    /// `None` where it left.
    pub(crate) run: Option<fn(&mut Setting) -> Result>,
}

pub(crate) const USUAL: &[&str] = &["--kernels", "--size", "--residency"];

/// Defaults of most experiments: each says how it differs.
pub(crate) const PLAIN: Experiment = Experiment {
    name: "",
    formerly: &[],
    about: "",
    seeds: &[],
    operations: &[],
    takes: USUAL,
    classic: "",
    say: |_| Vec::new(),
    tables: matrix::tables,
    figures: Vec::new,
    today: &[LIBC],
    serves: Serves::Tuner,
    is_study: false,
    run: None,
};

/// The readers who gain by what an experiment finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// People who tune: it measures kernels.
    Tuner,
    /// Users of the library: it measures the library itself.
    Library,
    /// Users of a pool of pages.
    Pool,
}

impl Experiment {
    /// The words behind `run`.
    pub fn words(&self) -> String {
        format!("{}{}", if self.is_study { "study " } else { "" }, self.name)
    }

    /// Tells whether rows of that name are its own.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.formerly.contains(&name)
    }

    /// Tells whether it compares the library with others.
    pub fn takes_peers(&self) -> bool {
        self.takes.contains(&"--peer")
    }

    /// Tells whether it can be run, and is no record alone.
    pub fn is_here(&self) -> bool {
        self.run.is_some()
    }

    /// Runs it.
    ///
    /// # Errors
    /// Unknown kernels, impossible sizes, an option that it does not follow, wrong bytes, refused memory, a
    /// record that cannot be written; [`LabError::Interrupted`] when the user stopped it, and then finished rows
    /// are with the recorder.
    pub fn carry_out(&self, setting: &mut Setting) -> Result {
        setting.check_sizes()?;
        self.check_options(setting.options)?;
        setting.bench.experiment = self.name;
        setting.options.launch.into_iter().for_each(crate::callee::begin_launch);
        self.run.map_or(Ok(()), |run| run(setting))
    }

    /// An option that this experiment would not follow is refused rather than ignored.
    fn check_options(&self, options: &Options) -> Result {
        let given = [
            ("--op", !options.operations.is_empty()),
            ("--peer", !options.peers.is_empty()),
            ("--libc", !options.libcs.is_empty()),
            ("--distribution", options.distribution.is_some()),
            ("--kernels", options.kernels.is_some()),
            ("--size", !options.sizes.is_empty()),
            ("--residency", !options.placements.is_empty()),
            ("--classic", options.classic && self.classic.is_empty()),
        ];
        let mut refused = given.iter().filter(|(name, given)| *given && !self.takes.contains(name));
        if let Some((name, _)) = refused.next() {
            let takes = self.takes.join(" ");
            return Err(LabError::Usage(format!(
                "{name}: not for {}; it takes {takes}",
                self.name
            )));
        }
        let other = options.operations.iter().find(|op| !self.operations.contains(op));
        other.map_or(Ok(()), |other| {
            Err(LabError::Usage(format!("--op {other}: not for {}", self.name)))
        })
    }
}
