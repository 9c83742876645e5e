//! `cachewise time-libc`: what the C library takes in this process. `export` starts it with and
//! without tunables, which glibc reads at process start only.

use crate::args::TimeLibc;
use crate::progress::Bar;
use crate::{output, status};
use cachewise_lab::bench::{Bench, Question, State};
use cachewise_lab::routines::libc_reference;
use cachewise_measure::{Plan, stats};

/// Prints one JSON object, sizes to nanoseconds per call.
pub fn run(args: &TimeLibc) -> anyhow::Result<u8> {
    let mut bar = Bar::new()?;
    let mut bench = Bench::new(0, None)?;
    let mut times = serde_json::Map::new();
    for &size in &args.size {
        let routines = [libc_reference(args.op)];
        let answer = bench.ask(
            &Question {
                experiment: "time-libc",
                operation: args.op,
                size,
                state: State::Warm,
                routines: &routines,
                plan: Plan { screening_rounds: 0, ..Plan::default() },
                verify: true,
            },
            &mut bar,
        )?;
        if answer.interrupted {
            return Ok(status::INTERRUPTED);
        }
        let nanoseconds = stats::median(&answer.rows[0].operation_ns);
        times.insert(size.to_string(), nanoseconds.into());
    }
    output::print(&format!("{}\n", serde_json::Value::Object(times)))?;
    Ok(status::OK)
}
