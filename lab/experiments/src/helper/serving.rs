//! A helper, from the end that answers: above all that it can be asked for.

use super::{Request, send};
use crate::LabError;
use crate::bench::{Bench, Cell, Task};
use crate::compare_latency::launch;
use crate::forking::Looper;
use crate::libraries::Peer;
use crate::routines::libc_reference;
use crate::tuned_libc::Elsewhere;
use cachewise_kernels::{Operation, PAGE_SIZE};
use cachewise_measure::{Clock, Plan, stats};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufRead, Write};

/// Serves requests until the input ends.
///
/// # Errors
/// What reading and writing can return; whatever else fails is an answer.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // Ctrl-C reaches the whole foreground group; this process ends when its input does.
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let (mut looper, mut elsewhere) = (Looper::default(), Elsewhere::default());
    for line in input.lines() {
        let line = line?;
        let answer = match serde_json::from_str(&line) {
            Err(error) => Err(format!("found \"{line}\", accepted a request: {error}")),
            Ok(Request::Fork { buffer, loops }) => answer(looper.run(buffer, loops)),
            Ok(Request::Libc(calls)) => answer(elsewhere.time(&calls)),
            // Whoever asked for it ends this process, which needs no asking.
            Ok(Request::Calls(order)) => answer(launch::run(&order, &|| false)),
            Ok(Request::Sizes { operation, sizes, library }) => {
                answer(times(&operation, &sizes, library.as_deref()))
            }
            Ok(Request::Blocks { sizes }) => answer(Ok::<_, LabError>(blocks(&sizes))),
        };
        send(&mut output, &answer)?;
        output.flush()?;
    }
    Ok(())
}

fn answer(found: Result<impl Serialize, impl ToString>) -> Result<Value, String> {
    let found = found.map_err(|error| error.to_string())?;
    serde_json::to_value(found).map_err(|error| error.to_string())
}

/// What libc, or another library, takes in this process, nanoseconds per call by size.
fn times(operation: &str, sizes: &[usize], library: Option<&str>) -> Result<Vec<f64>, LabError> {
    let operation = Operation::from_name(operation)
        .ok_or_else(|| LabError::Nothing(format!("no operation is called {operation}")))?;
    let routine = match library {
        Some(named) => {
            let peer: Peer = named.parse().map_err(LabError::Usage)?;
            peer.load().map_err(|error| match error {
                // No option of the user's.
                LabError::Peer(why) => LabError::Nothing(why),
                other => other,
            })?
        }
        None => libc_reference(operation),
    };
    let mut bench = Bench::new(0, None, sizes.iter().copied().max().unwrap_or(0))?;
    let time = |&size: &usize| {
        let plan = Plan { screening_rounds: 0, ..Plan::default() };
        let task = Task { operation, size, cell: Cell::warm(), plan };
        let found = bench.routines(&task, std::slice::from_ref(&routine), true, &|| false)?;
        Ok(found.row(0, 0).median_ns())
    };
    sizes.iter().map(time).collect()
}

/// What a block of this process's allocator takes: taken, a byte of each page written, given back.
fn blocks(sizes: &[usize]) -> Vec<f64> {
    const ROUNDS: usize = 31;
    let clock = Clock::of_process();
    let time = |&size: &usize| {
        let round = |_| {
            clock.time(|| {
                let mut block = Vec::<u8>::with_capacity(size);
                block
                    .spare_capacity_mut()
                    .iter_mut()
                    .step_by(PAGE_SIZE)
                    .for_each(|byte| _ = byte.write(1));
                drop(std::hint::black_box(block));
            })
        };
        // What it keeps of the first is what the others meet.
        stats::median(&(0..ROUNDS).map(round).collect::<Vec<f64>>())
    };
    sizes.iter().map(time).collect()
}
