//! An experiment, and the options that it takes.

use crate::prelude::*;
use cachewise_report::Table;

/// Sentences about rows.
pub(crate) type Sentences = fn(&[Row]) -> Vec<String>;

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

/// How rows become tables.
pub(crate) type Tables = fn(&[Row]) -> Vec<Table>;

/// An experiment anyone can run by name.
pub struct Experiment {
    /// The name to type.
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
    /// The effect of `--classic`: the source document's own parameters; empty where it has none.
    pub classic: &'static str,
    /// Sentences about what was measured, where no claim has them.
    pub(crate) say: Option<Sentences>,
    /// Its tables, where they are not those of a matrix: one for each cell.
    pub(crate) tables: Option<Tables>,
    /// How its rows are drawn, beside its tables.
    pub(crate) figures: fn() -> Vec<Figure>,
    /// References that stand for what is done if nobody changes anything: to be faster is
    /// a gain.
    pub today: &'static [&'static str],
    /// The readers who gain by it.
    pub serves: Serves,
    /// A further part of the question.
    pub(crate) second: Option<Part>,
    pub(crate) run: fn(&mut Setting) -> Result,
}

/// Defaults of most experiments: each says how it differs.
pub(crate) const PLAIN: Experiment = Experiment {
    name: "",
    about: "",
    seeds: &[],
    operations: &[],
    takes: &[],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: Vec::new,
    today: &[LIBC],
    serves: Serves::Tuner,
    second: None,
    run: |_| Ok(()),
};

/// A part that is measured behind the rest, and had a name of its own: older records have it, and it is told
/// under it what it leaves out.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) experiment: &'static Experiment,
    /// The states of its rows.
    pub(crate) states: &'static [&'static str],
}

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
    /// How its rows are drawn: what goes into the record's header.
    pub fn figures(&self) -> Vec<Figure> {
        self.parts().flat_map(|part| (part.figures)()).collect()
    }

    /// Itself without its further part, then that.
    fn parts(&self) -> impl Iterator<Item = &Experiment> {
        [self].into_iter().chain(self.second.map(|part| part.experiment))
    }

    /// Tells whether it has that name, or a part of it had.
    pub fn answers_to(&self, name: &str) -> bool {
        self.parts().any(|part| part.name == name)
    }

    /// Its parts of which there are rows, with these.
    pub(crate) fn rows_by_part(&self, rows: &[Row]) -> Vec<(&Experiment, Vec<Row>)> {
        let states = self.second.map_or(&[][..], |part| part.states);
        let is_second = |row: &Row| states.iter().any(|state| row.cell.state == *state);
        let (second, first): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(is_second);
        let all = self.parts().zip([first, second]);
        let mut all: Vec<_> = all.filter(|(_, rows)| !rows.is_empty()).collect();
        if all.is_empty() {
            all.push((self, Vec::new()));
        }
        all
    }

    /// Tells whether it compares the library with others.
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
        setting.bench.experiment = self.name;
        setting.options.launch.into_iter().for_each(crate::callee::begin_launch);
        let refused: Vec<_> =
            self.parts().map(|part| part.check_options(setting.options).err()).collect();
        let is_all_refused = refused.iter().all(Option::is_some);
        for (part, refused) in self.parts().zip(refused) {
            let why = match refused {
                Some(error) if is_all_refused => return Err(error),
                Some(error) => error,
                None => match (part.run)(setting) {
                    Err(why @ LabError::Nothing(_)) if !setting.out.rows.is_empty() => why,
                    ended => {
                        ended?;
                        continue;
                    }
                },
            };
            setting.out.note(format!("left out {}: {why}", part.name))?;
        }
        Ok(())
    }

    /// An option that this experiment would not follow is refused rather than ignored.
    fn check_options(&self, options: &Options) -> Result {
        if options.classic && self.classic.is_empty() {
            return Err(LabError::Usage(format!(
                "--classic: {} has no parameters of a source document; accepted without it",
                self.name
            )));
        }
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
