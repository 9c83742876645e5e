//! The real machine behind the tuner's seam.
//!
//! A visit places operands anew, by its draw; restores their state before every sample; calls a kernel
//! through the library's own entry, with a table that names this kernel alone. What the seam asks for is in
//! `seam.rs`; how a sample is timed, and which are left out, is `cachewise_measure::visit`'s business.
//!
//! | file | what it has |
//! |---|---|
//! | `operands` | where operands lie, what they hold, and how a state is restored; calls on them |
//! | `calibrate` | what the machine is |

mod calibrate;
mod operands;

use super::plan;
use super::seam::{
    After, Arm, Ask, Competitor, Contents, Destination, Facts, Sample, Script, Stage, TuningCell,
    Visit,
};
use cachewise::profile::{Decision, OPERATIONS, Profile};
use cachewise_kernels::{Features, Kernel, Operation, RegisterClass};
use cachewise_measure::LabError;
use cachewise_measure::after::shows_a_lower_clock;
use cachewise_measure::callee::{self, Callee};
use cachewise_measure::distributions::Distribution;
use cachewise_measure::routines::candidates;
use cachewise_measure::routines::{libc_reference, library};
use cachewise_measure::script;
use cachewise_measure::{
    Arena, Bystander, Clock, Header, LINE, Latencies, Machine, MemoryBudget, NoiseSnapshot,
    PagePolicy, PairedRatio, Place, Warning, visit, warnings,
};
use fastrand::Rng;
use operands::{Operands, call_all, check, differences, flush, overwrite, read, room};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

/// Conditions of a tuning on the machine.
pub struct Setup<'h> {
    /// When the tuning began: what the user has waited since.
    pub begun: Instant,
    /// Bytes of memory at most, where the user says so.
    pub memory: Option<usize>,
    /// Seconds of the whole tuning: a longer one has larger operations.
    pub budget: f64,
    /// The sizes of small calls, instead of the plain mixture.
    pub distribution: Option<Distribution>,
    /// Asked between samples whether to stop.
    pub stop: &'h dyn Fn() -> bool,
    /// Told what is being done, and the seconds that are expected to be left.
    pub progress: &'h mut dyn FnMut(Stage, f64),
}

/// The machine that this process runs on.
pub struct Hardware<'h> {
    /// The machine's description of itself.
    pub machine: Machine,
    setup: Setup<'h>,
    clock: Clock,
    latencies: Option<Latencies>,
    noise: NoiseSnapshot,
    facts: Facts,
    arena: Arena,
    kernels: BTreeMap<Operation, Vec<&'static Kernel>>,
    /// The time of integer work after vectors of 64 bytes, over that after integers.
    after_wide: Option<PairedRatio>,
    distribution: Distribution,
    bystanders: BTreeMap<usize, Bystander>,
    /// The profile that [`Arm::Library`] follows.
    followed: Profile,
    table: Table,
    /// Arms whose bytes were checked, by operation and every second octave of sizes.
    checked: BTreeSet<(Arm, Operation, u32)>,
}

/// Contents of the library's decision table.
#[derive(Clone, Copy, PartialEq)]
enum Table {
    Unknown,
    /// One arm alone, by its number.
    Only(Operation, usize),
    /// The decisions.
    Followed,
}

impl<'h> Hardware<'h> {
    /// Describes and measures the machine: about two seconds.
    ///
    /// # Errors
    /// An emulated CPU; no memory for operands of a few MiB; being stopped.
    pub fn new(setup: Setup<'h>) -> Result<Hardware<'h>, LabError> {
        let noise = NoiseSnapshot::take();
        let mut machine = Machine::describe();
        cachewise_measure::lab_error::refuse_emulation(&machine)?;
        let limit = calibrate::limit_memory(setup.memory);
        let go_on = || if (setup.stop)() { Err(LabError::Interrupted) } else { Ok(()) };
        go_on()?;
        let clock = Clock::of_process();
        go_on()?;
        // Needs memory of its own, which is given back before the operands' is taken.
        let latencies = Latencies::shared(&clock, &machine.caches).ok();
        go_on()?;
        let wanted = plan::largest(machine.caches.llc.bytes, setup.budget);
        // A quarter is for bystanders and for what else is needed.
        let most = (limit / 4 * 3 / 2).saturating_sub(operands::MARGIN).min(wanted);
        let arena = Arena::within(&MemoryBudget::process(), room(most), PagePolicy::Huge, 1)?;
        let facts = calibrate::facts(&machine, &clock, &arena, latencies.as_ref(), most);
        if facts.cache() < machine.caches.llc.bytes {
            machine.caches.llc_usable = Some(facts.cache());
        }
        let features = Features::detect();
        let mut kernels = OPERATIONS.map(|operation| (operation, preferred(operation, features)));
        for (_, kernels) in &mut kernels {
            kernels.retain(|kernel| !calibrate::copies_by_bytes(kernel, &clock, &arena));
        }
        go_on()?;
        let copies = kernels.iter().find(|(operation, _)| *operation == Operation::Copy);
        let after_wide = copies.and_then(|(_, all)| calibrate::after_wide_vectors(&clock, all));
        if after_wide.as_ref().is_some_and(shows_a_lower_clock) {
            for (_, kernels) in &mut kernels {
                kernels.retain(|kernel| kernel.registers != RegisterClass::Zmm);
            }
        }
        let distribution = setup.distribution.clone().unwrap_or_else(script::plain);
        Ok(Hardware {
            after_wide,
            machine,
            clock,
            latencies,
            noise,
            facts,
            arena,
            kernels: kernels.into_iter().collect(),
            distribution,
            bystanders: BTreeMap::new(),
            followed: Profile::here(),
            table: Table::Unknown,
            checked: BTreeSet::new(),
            setup,
        })
    }

    /// Disturbances of the tuning so far.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        warnings(&self.noise, &NoiseSnapshot::take(), &self.machine)
    }

    /// That what runs after vectors of 64 bytes is slower here, so that none takes part: as a sentence.
    #[must_use]
    pub fn without_wide_vectors(&self) -> Option<String> {
        let found = self.after_wide.as_ref().filter(|found| shows_a_lower_clock(found))?;
        let [more, low, high] =
            [found.median, found.low, found.high].map(|ratio| 100.0 * (ratio - 1.0));
        Some(format!(
            "what runs after vectors of 64 bytes takes {more:.0} % longer here ({low:.0} to {high:.0} %): no kernel \
             with such vectors takes part"
        ))
    }

    /// The record's first line.
    #[must_use]
    pub fn header(&self, seed: u64) -> Header {
        let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
        let mut header = Header::now(tool, self.machine.clone(), self.clock.facts(), seed);
        header.latencies = self.latencies;
        header.warnings = self.warnings();
        header
    }

    /// Function of an arm, once the library's table has it.
    fn function(
        &mut self,
        cell: &TuningCell,
        arm: Arm,
    ) -> Result<cachewise_kernels::Function, LabError> {
        let wanted = match arm {
            Arm::LIBC => return Ok(libc_reference(cell.operation).function),
            Arm::Kernel(number) => Table::Only(cell.operation, number),
            Arm::HandedOver => Table::Only(cell.operation, 0),
            Arm::Library => Table::Followed,
        };
        if self.table != wanted {
            self.table = Table::Unknown;
            let done = match wanted {
                Table::Only(operation, number) => {
                    let kernels = self.kernels.get(&operation);
                    let known = || kernels?.get(number.checked_sub(1)?);
                    match number {
                        0 => cachewise::use_libc(operation),
                        _ => known().is_some_and(|kernel| cachewise::use_only(kernel)),
                    }
                }
                Table::Followed => cachewise::load(&self.followed).is_ok(),
                Table::Unknown => false,
            };
            if !done {
                let why = format!("the library refuses what is to be measured ({arm:?})");
                return Err(LabError::Nothing(why));
            }
            self.table = wanted;
        }
        Ok(library(cell.operation).function)
    }

    /// The name of an arm, for messages.
    fn name(&self, operation: Operation, arm: Arm) -> &'static str {
        match arm {
            Arm::LIBC => "libc",
            Arm::Kernel(number) => self
                .kernels
                .get(&operation)
                .and_then(|all| all.get(number - 1))
                .map_or("a kernel", |kernel| kernel.name),
            Arm::Library | Arm::HandedOver => "cachewise",
        }
    }

    fn visit_operands(&mut self, ask: &Ask) -> Result<Visit, LabError> {
        let cell = ask.cell;
        let mut random = Rng::with_seed(ask.draw ^ hash(&cell));
        let function = self.function(&cell, ask.arm)?;
        let callee = Callee::new(function);
        if cell.size > self.facts.largest {
            let budget = MemoryBudget::process().limit();
            return Err(LabError::TooLarge { found: cell.size, most: self.facts.largest, budget });
        }
        if let After::Bystander(bytes) = cell.after
            && !self.bystanders.contains_key(&bytes)
        {
            // One at a time: they come in few sizes, and large.
            self.bystanders.clear();
            let bystander = Bystander::new(bytes, 0xB157)?;
            self.bystanders.insert(bytes, bystander);
        }
        let bystander = match cell.after {
            After::Bystander(bytes) => self.bystanders.get(&bytes),
            _ => None,
        };
        let operands = Operands::place(&self.arena, &cell, self.facts.l1, &mut random);
        if operands.reads_only() {
            operands.equalise();
        }
        let list = operands.list();
        let key = (ask.arm, cell.operation, cell.size.ilog2() / 2);
        let repeated = cell.destination == Destination::Repeated;
        let checked = self.checked.contains(&key);
        if !checked {
            let places = differences(&cell, operands.calls, &mut random.clone());
            operands.flip(&places);
            operands.restore(cell.destination, ask.draw);
            check(function, &operands, &places, self.name(cell.operation, ask.arm))?;
            operands.flip(&places);
            self.checked.insert(key);
        }
        if repeated || (checked && cell.size < 1 << 16) {
            // Code that has not run for a while is not what is to be timed.
            operands.restore(cell.destination, ask.draw);
            call_all(callee, &operands, &list);
        }
        let mut visit = Visit::default();
        // A tenth of a nanosecond for a byte is what a sample takes at the least.
        let at_least = (cell.size * operands.calls) as f64 / 10.0;
        let timing = visit::Visit::new(&self.clock, at_least, self.setup.budget);
        for nth in 0..ask.samples {
            let take = || {
                if (self.setup.stop)() {
                    return Err(LabError::Interrupted);
                }
                let places = differences(&cell, operands.calls, &mut random);
                operands.flip(&places);
                if !repeated {
                    operands.restore(cell.destination, ask.draw.wrapping_add(nth as u64));
                }
                let before = bystander.map(|bystander| {
                    operands.evict();
                    bystander.walk();
                    self.clock.time(|| bystander.walk())
                });
                let follows = (cell.after != After::Nothing).then_some(|| match bystander {
                    Some(bystander) => bystander.walk(),
                    None => {
                        (0..operands.calls).for_each(|call| read(operands.at(call).0, operands.n))
                    }
                });
                let parts = timing.parts(|| call_all(callee, &operands, &list), follows);
                operands.flip(&places);
                Ok(parts.map(|[operation, after]| [operation, after - before.unwrap_or(0.0)]))
            };
            let found = timing.sample(take)?;
            let Some([operation, after]) = found else {
                visit.disturbed += 1;
                continue;
            };
            let each = operands.calls as f64;
            let operation = operation / each;
            visit.samples.push(match bystander {
                Some(_) => Sample { operation, bystander: after / each, ..Sample::default() },
                None => Sample { operation, reader: after / each, ..Sample::default() },
            });
        }
        Ok(visit)
    }

    fn visit_script(&mut self, ask: &Ask, small: Script) -> Result<Visit, LabError> {
        let cell = ask.cell;
        let callee = Callee::new(self.function(&cell, ask.arm)?);
        let mut random = Rng::with_seed(ask.draw ^ hash(&cell));
        // Two buffers share what everything touches.
        let span = (cell.size / 2).clamp(4096, self.arena.len() / 2);
        let dst = self.arena.as_mut_ptr();
        let src = dst.wrapping_add(self.arena.len() / 2);
        let unequal = cell.contents == Contents::Unequal;
        let mut visit = Visit::default();
        let timing = visit::Visit::new(&self.clock, f64::INFINITY, self.setup.budget);
        for sample in 0..ask.samples {
            if (self.setup.stop)() {
                return Err(LabError::Interrupted);
            }
            let calls = script::calls(&self.distribution);
            let (of, at) = (&self.distribution, &mut random.fork());
            let steps = script::draw(of, calls, cell.operation, span, unequal, &mut random, at);
            let places: Vec<Place> = steps.iter().map(|step| step.at(dst, src)).collect();
            let compares = matches!(cell.operation, Operation::Compare | Operation::Equal);
            for &Place { dst: to, src: from, n } in &places {
                if compares && !unequal {
                    // The same bytes in both, whatever ran before.
                    overwrite(to, n, to as u64 - dst as u64);
                    overwrite(from.cast_mut(), n, from as u64 - src as u64);
                }
            }
            for &Place { dst: to, src: from, n } in &places {
                for at in [to.cast_const(), from] {
                    if small.hot && cell.destination == Destination::Cached {
                        read(at, n);
                    } else {
                        // Their neighbours too: a prefetcher has brought them, and a mask's unused part
                        // may reach into them.
                        let (first, end) = (dst as usize, src as usize + span);
                        let from = (at as usize - LINE).max(first);
                        flush(from as *const u8, (at as usize + n + LINE).min(end) - from);
                    }
                }
            }
            if sample == 0 {
                // Code that has not run for a while is not what is to be timed.
                callee.run(&places[..1]);
            }
            // In the cache a part of each result is loaded at once or branched on, as programs do; in memory the next calls wait.
            let loads = callee::loads(&places, at);
            let run = || match small.hot {
                true => callee.run_at_once(&places, &loads, None),
                false => callee.run(&places),
            };
            let parts = timing.parts(run, None::<fn()>);
            match parts {
                Some([operation, _]) => visit.samples.push(Sample {
                    operation: operation / places.len() as f64,
                    ..Sample::default()
                }),
                None => visit.disturbed += 1,
            }
        }
        Ok(visit)
    }
}

impl super::seam::Machine for Hardware<'_> {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn arms(&self, operation: Operation) -> Vec<Competitor> {
        let kernels = self.kernels.get(&operation).into_iter().flatten();
        std::iter::once(Competitor::libc())
            .chain(kernels.map(|kernel| Competitor::of(kernel)))
            .collect()
    }

    fn now(&self) -> f64 {
        self.setup.begun.elapsed().as_secs_f64()
    }

    fn visit(&mut self, ask: &Ask) -> Result<Visit, LabError> {
        match ask.cell.script {
            Some(script) => self.visit_script(ask, script),
            None => self.visit_operands(ask),
        }
    }

    fn follow(&mut self, decisions: &[Decision]) -> Result<(), LabError> {
        self.followed = Profile { decisions: decisions.to_vec(), ..Profile::here() };
        self.table = Table::Unknown;
        cachewise::load(&self.followed).map_err(|error| {
            LabError::Nothing(format!("the library refuses these decisions: {error}"))
        })?;
        self.table = Table::Followed;
        Ok(())
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        (self.setup.progress)(stage, left);
    }
}

/// The kernels that compete, in order of preference among equals: what the library does without its
/// table first, then temporal, by string instructions, non-temporal; simple before elaborate.
fn preferred(operation: Operation, features: Features) -> Vec<&'static Kernel> {
    let mut kernels = candidates(operation, features);
    kernels.sort_by_key(|kernel| {
        (
            Competitor::of(kernel).class as u8,
            kernel.technique().matches('.').count(),
            !kernel.technique().starts_with("avx2"),
        )
    });
    kernels
}

fn hash(cell: &TuningCell) -> u64 {
    let mut hasher = DefaultHasher::new();
    cell.hash(&mut hasher);
    hasher.finish()
}
