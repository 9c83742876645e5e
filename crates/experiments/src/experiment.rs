//! What an experiment is, and what of the user's options it takes.

use crate::prelude::*;

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
    /// What `--classic` sets: the source document's own parameters; empty where it has none.
    pub classic: &'static str,
    /// How its rows are drawn, beside its tables.
    pub(crate) figures: fn() -> Vec<Figure>,
    pub(crate) run: fn(&mut Setting) -> Result,
}

impl Experiment {
    /// How its rows are drawn: what goes into the record's header.
    pub fn figures(&self) -> Vec<Figure> {
        (self.figures)()
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
            ("--op", !options.operations.is_empty()),
            ("--peer", !options.peers.is_empty()),
            ("--distribution", options.distribution.is_some()),
            ("--kernels", options.kernels.is_some()),
            ("--size", !options.sizes.is_empty()),
            ("--residency", !options.placements.is_empty()),
        ];
        let is_among = |names: &str| names.split(' ').any(|name| name == self.name);
        let few = TAKEN_BY.iter().filter(|(_, takers, _)| !is_among(takers));
        let mut all = few.chain(REFUSED_BY.iter().filter(|(_, names, _)| is_among(names)));
        let other = options.operations.iter().find(|op| !self.operations.contains(op));
        let (option, why) = match (all.find(|(option, ..)| given.contains(&(option, true))), other)
        {
            (Some((option, _, why)), _) => (*option, (*why).to_owned()),
            (None, Some(other)) => ("--op", format!("it is not about {other}")),
            (None, None) => return Ok(()),
        };
        Err(LabError::Usage(format!("{option}: not for {}: {why}", self.name)))
    }
}

/// Options that few experiments take, by whom, and why the others do not.
const TAKEN_BY: [(&str, &str, &str); 3] = [
    (
        "--op",
        "copy-matrix zero-matrix compare-matrix whole-cost hints peers",
        "it has operations of its own",
    ),
    ("--peer", "peers", "it compares kernels; use it with peers"),
    ("--distribution", "peers page-compare", "it has sizes of its own; use it with peers"),
];

/// Options that most experiments take, who does not, and why.
const REFUSED_BY: [(&str, &str, &str); 19] = [
    ("--kernels", "peers hints", "it compares whole libraries"),
    ("--kernels", "twins page-compare tcp-copies", "its candidates are its own"),
    ("--kernels", "page-fault", "its candidates are ways to get a page, not kernels"),
    ("--kernels", "parallel prefault", "it compares numbers of threads"),
    ("--size", "page-compare", "it compares pages of 4096 bytes"),
    ("--size", "page-colour", "its sizes follow from the cache"),
    ("--residency", "peers hints", "its buffers are warm"),
    ("--residency", "page-clear", "the loop leaves its buffer where it leaves it"),
    ("--residency", "page-copy", "the loop leaves its pages where it leaves them"),
    ("--residency", "cached-target", "it goes through its own states"),
    ("--residency", "receive", "the ring and the user's buffer have places of their own"),
    ("--residency", "tcp-copies", "the kernel's buffers are where it puts them"),
    ("--residency", "page-colour", "a page's colour decides where it can be"),
    ("--residency", "sticky", "where the destination is left is what is measured"),
    ("--residency", "vector-state parallel", "one pair of buffers is used over and over"),
    (
        "--residency",
        "compare-latency",
        "buffers are warm, and pages lie where the tree leaves them",
    ),
    ("--residency", "page-compare", "pages are too many for any cache"),
    ("--residency", "extent", "an extent lies where its own last pass left it"),
    ("--residency", "page-fault prefault", "a fresh page is wherever it was zeroed"),
];
