//! The question: options, program and machine; and the settings that it leaves.

use super::figure::Figure;
use super::load;
use super::runner::Runner;
use crate::args::Advise;
use crate::output;
use crate::progress::Bar;
use cachewise_advise::candidates::{self, Candidate, LeftOut};
use cachewise_advise::lists;
use cachewise_experiments::LabError;
use cachewise_measure::{Machine, NoiseSnapshot};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds that a run of `advise` takes, unless `--budget` says otherwise.
const BUDGET: f64 = 180.0;

/// Seconds after a load, unless `--settle` says otherwise.
const SETTLE: f64 = 1.0;

/// The question, and what is known before anything is run.
pub(super) struct Asked<'a> {
    pub args: &'a Advise,
    pub words: &'a [String],
    pub profile: Option<PathBuf>,
    pub machine: Machine,
    pub before: NoiseSnapshot,
    pub seed: u64,
    pub budget: f64,
}

impl<'a> Asked<'a> {
    /// The machine as it is before anything runs.
    pub fn new(args: &'a Advise, words: &'a [String], profile: Option<PathBuf>) -> Self {
        let machine = Machine::describe();
        let seed = args.seed.unwrap_or_else(crate::verbs::drawn_seed);
        let before = NoiseSnapshot::take();
        let budget = args.budget.unwrap_or(BUDGET);
        Asked { args, words, profile, machine, before, seed, budget }
    }

    /// Runs the program.
    pub fn runner(&self, file: &Path, bar: Bar) -> anyhow::Result<Runner<'a>> {
        let args = self.args;
        let directory = output::temporary("advise", output::folder)?;
        Ok(Runner {
            program: file.to_owned(),
            words: &args.program,
            input: args.input.clone(),
            compared: args.compare.clone(),
            load: args.load.clone().map(|line| load::Load { line, ready: args.ready.clone() }),
            figure: args.figure.clone().map(|pattern| Figure { pattern, less: args.less }),
            directory,
            stop: bar.stop(),
            bar,
            begun: Instant::now(),
            limit: Duration::from_secs_f64(self.budget),
            seconds: None,
            expected: None,
            candidates: Vec::new(),
            by_cpu: false,
            sampled: false,
            settle: args.settle.unwrap_or(SETTLE),
            left: 0,
            by_shell: false,
            has_run: false,
            notes: Vec::new(),
        })
    }

    /// The settings that the user names.
    pub fn also(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.args.also.iter().filter_map(|words| also(words))
    }

    /// Those that `--only` leaves, the simplest first, with the caller's lists extended.
    pub fn tried(
        &self,
        mut tried: Vec<Candidate>,
        left_out: &mut Vec<LeftOut>,
    ) -> anyhow::Result<Vec<Candidate>> {
        let args = self.args;
        if let Some(only) = &args.only {
            let left = left_out.iter().map(|out| out.name.as_str());
            let names: Vec<&str> = tried.iter().map(|one| one.name.as_str()).chain(left).collect();
            if !names.iter().any(|name| only.is_match(name)) {
                let names = names.join("; ");
                return Err(LabError::Usage(format!(
                    "--only: found \"{}\", which no setting matches; accepted: {names}",
                    only.as_str()
                ))
                .into());
            }
            tried.retain(|one| only.is_match(&one.name));
        }
        tried.sort_by_key(Candidate::simplicity);
        for (name, value) in tried.iter_mut().flat_map(|one| &mut one.variables) {
            *value = lists::extended(name, std::env::var(&*name).ok().as_deref(), value);
        }
        let is_set = |one: &Candidate| {
            let same = |(name, value): &(String, String)| {
                std::env::var(name).is_ok_and(|set| set == *value)
            };
            !one.variables.is_empty() && one.words.is_empty() && one.variables.iter().all(same)
        };
        let (set, tried): (Vec<Candidate>, Vec<Candidate>) = tried.into_iter().partition(is_set);
        let why = "the caller has set it already";
        left_out.extend(set.into_iter().map(|one| LeftOut { name: one.name, why: why.to_owned() }));
        Ok(tried)
    }
}

/// The variables that a user names, as a setting.
fn also(words: &str) -> Option<Candidate> {
    let pairs = words.split_whitespace().map(|pair| pair.split_once('='));
    let variables: Option<Vec<(String, String)>> =
        pairs.map(|pair| pair.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect();
    let variables = variables.filter(|variables| !variables.is_empty())?;
    Some(candidates::named(words, variables))
}
