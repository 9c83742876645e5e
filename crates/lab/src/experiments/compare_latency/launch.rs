//! One launch: a page set, its comparisons, and every kernel's single calls, in turns. In a process of
//! its own where the program can start one, since layout differs between processes.

use super::pages::{Comparison, PageSet};
use crate::LabError;
use crate::helper::{Helper, Request};
use crate::routines::{LIBC, Routine, libc_reference};
use cachewise_kernels::{Features, Function, Operation, PAGE_SIZE, find};
use cachewise_measure::{CallTimes, Clock};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What to time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Directories whose files the pages come from.
    pub roots: Vec<String>,
    /// Pages of the set.
    pub pages: usize,
    /// Comparisons per pass.
    pub comparisons: usize,
    /// Passes per kernel.
    pub passes: usize,
    /// Kernel names, and libc's.
    pub kernels: Vec<String>,
    /// Seed of pages, tree and turns.
    pub seed: u64,
}

/// One kernel's single calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Kernel name, or libc's.
    pub name: String,
    /// Mean nanoseconds per call, by pass.
    pub mean_ns: Vec<f64>,
    /// The distribution over all passes.
    pub times: CallTimes,
}

/// One launch's outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order asked for.
    pub kernels: Vec<Timed>,
    /// What reading the clock cost, nanoseconds; subtracted from every call.
    pub cost_ns: f64,
    /// The clock's smallest step, nanoseconds.
    pub resolution_ns: f64,
}

/// Carries out an order in a fresh process of the program.
///
/// # Errors
/// As [`run`], and a program that cannot be started or does not answer.
pub fn in_process_of_its_own(
    program: &Path,
    order: &Order,
    stop: &dyn Fn() -> bool,
) -> Result<Outcome, LabError> {
    let failed = |error: std::io::Error| LabError::Child(format!("single calls: {error}"));
    let mut helper = Helper::start(program, None).map_err(failed)?;
    let answer = helper.ask_until(&Request::Calls(order.clone()), stop).map_err(failed)?;
    answer.ok_or(LabError::Interrupted)
}

/// Carries out an order in this process. `stop` is asked between passes.
///
/// # Errors
/// An unknown kernel, one this CPU lacks, wrong answers, too few files.
pub fn run(order: &Order, stop: &dyn Fn() -> bool) -> Result<Outcome, LabError> {
    let roots: Vec<&Path> = order.roots.iter().map(Path::new).collect();
    let set = PageSet::gather(&roots, order.pages, order.seed)?;
    let trace = set.descend(order.comparisons, order.seed);
    let routines = order.kernels.iter().map(|name| routine(name)).collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::calibrate();
    let untimed = |routine: &Routine| Timed {
        name: routine.name.clone(),
        mean_ns: Vec::new(),
        times: CallTimes::default(),
    };
    let mut kernels: Vec<Timed> = routines.iter().map(untimed).collect();
    for routine in &routines {
        check(routine, &set, &trace)?;
    }
    let mut random = fastrand::Rng::with_seed(order.seed);
    let mut turns: Vec<usize> = (0..routines.len()).collect();
    for _ in 0..order.passes {
        random.shuffle(&mut turns);
        for &turn in &turns {
            if stop() {
                return Err(LabError::Interrupted);
            }
            let Function::Compare(compare) = routines[turn].function else { continue };
            let mut times = CallTimes::default();
            times.time(&clock, trace.len(), |index| {
                let Comparison { candidate, node, .. } = trace[index];
                // SAFETY: pages of the set, readable for a page; the CPU runs the kernel.
                std::hint::black_box(unsafe {
                    compare(set.page(candidate), set.page(node), PAGE_SIZE)
                });
            });
            kernels[turn].mean_ns.push(times.sum_ns / trace.len() as f64);
            kernels[turn].times.add(&times);
        }
    }
    Ok(Outcome { kernels, cost_ns: clock.cost_ns(), resolution_ns: clock.resolution_ns() })
}

/// A compare kernel, or libc's memcmp.
fn routine(name: &str) -> Result<Routine, LabError> {
    if name == LIBC {
        return Ok(libc_reference(Operation::Compare));
    }
    match find(name) {
        Some(kernel)
            if kernel.operation() == Operation::Compare && kernel.runs_on(Features::detect()) =>
        {
            Ok(Routine::from(kernel))
        }
        _ => Err(LabError::UnknownKernel {
            found: name.to_owned(),
            nearest: vec!["compare.gpr64".to_owned()],
        }),
    }
}

/// Every comparison of the trace must have its sign.
///
/// # Errors
/// [`LabError::WrongBytes`] with the first that has not.
pub fn check(routine: &Routine, set: &PageSet, trace: &[Comparison]) -> Result<(), LabError> {
    let Function::Compare(compare) = routine.function else { return Ok(()) };
    for &Comparison { candidate, node, sign } in trace {
        // SAFETY: pages of the set, readable for a page; the CPU runs the kernel.
        let found = unsafe { compare(set.page(candidate), set.page(node), PAGE_SIZE) };
        if found.signum() != i32::from(sign) {
            return Err(LabError::WrongBytes(format!(
                "{}: pages {candidate} and {node} compare as {found}, expected the sign {sign}",
                routine.name
            )));
        }
    }
    Ok(())
}
