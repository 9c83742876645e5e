//! One launch: a page set, its comparisons, and every kernel's single calls, in turns. In a process of
//! its own where the program can start one, since layout differs between processes.

pub use crate::helper::Order;
use crate::helper::{Helper, Request};
use crate::pages::{PageSet, ROOTS};
use crate::prelude::*;
use cachewise_measure::{CallTimes, turns};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    pub(super) name: String,
    /// Mean nanoseconds per call, by pass.
    pub(super) mean_ns: Vec<f64>,
    /// The distribution over all passes.
    pub(super) times: CallTimes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchOutcome {
    /// In the order asked for.
    pub(super) kernels: Vec<Timed>,
    /// The cost of reading the clock, nanoseconds; subtracted from every call.
    pub(super) cost_ns: f64,
    /// The clock's smallest step, nanoseconds.
    pub(super) resolution_ns: f64,
}

/// Carries out an order in a fresh process of the program.
///
/// # Errors
/// Errors of [`run`], and a program that cannot be started or does not answer.
pub fn in_process_of_its_own(
    program: &Path,
    order: &Order,
    stop: &dyn Fn() -> bool,
) -> Result<LaunchOutcome> {
    let failed = |error: std::io::Error| LabError::Child(format!("single calls: {error}"));
    let mut helper = Helper::start(program).map_err(failed)?;
    let answer = helper.ask_until(&Request::Calls(order.clone()), stop).map_err(failed)?;
    answer.ok_or(LabError::Interrupted)
}

/// Carries out an order in this process. `stop` is asked between passes.
///
/// # Errors
/// An unknown kernel, one this CPU lacks, wrong answers, too few files.
pub fn run(order: &Order, stop: &dyn Fn() -> bool) -> Result<LaunchOutcome> {
    let mut set = PageSet::gather(&ROOTS, order.pages, order.seed)?;
    set.descend(order.comparisons, order.seed);
    let routines = order.kernels.iter().map(|name| routine(name)).collect::<Result<Vec<_>>>()?;
    let clock = Clock::of_process();
    let untimed = |name: &String| Timed { name: name.clone(), ..Timed::default() };
    let mut kernels: Vec<Timed> = order.kernels.iter().map(untimed).collect();
    routines.iter().try_for_each(|routine| set.check(routine))?;
    for turn in turns::orders(routines.len(), order.passes, order.seed).concat() {
        if stop() {
            return Err(LabError::Interrupted);
        }
        let Function::Compare(compare) = routines[turn].function else { continue };
        let mut times = CallTimes::default();
        times.time(&clock, set.pairs.len(), |index| {
            let (a, b) = set.pairs[index];
            // SAFETY: pages of the set, readable for a page; the CPU runs the kernel.
            std::hint::black_box(unsafe { compare(set.page(a), set.page(b), PAGE_SIZE) });
        });
        kernels[turn].mean_ns.push(times.sum_ns / set.pairs.len() as f64);
        kernels[turn].times.add(&times);
    }
    Ok(LaunchOutcome { kernels, cost_ns: clock.cost_ns(), resolution_ns: clock.resolution_ns() })
}

/// A compare kernel, or libc's memcmp.
fn routine(name: &str) -> Result<Routine> {
    if name == LIBC {
        return Ok(libc_reference(Operation::Compare));
    }
    let is_here = |kernel: &&Kernel| {
        kernel.operation() == Operation::Compare && kernel.runs_on(Features::detect())
    };
    let unknown = || LabError::UnknownKernel {
        found: name.to_owned(),
        nearest: "; nearest: compare.gpr64".to_owned(),
    };
    find(name).filter(is_here).map(Routine::from).ok_or_else(unknown)
}
