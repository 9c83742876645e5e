//! `tcp-copies`: what a message over TCP costs both ends when the kernel is asked to copy less (001.7).
//!
//! `write` and `read`, against `MSG_ZEROCOPY`, `TCP_ZEROCOPY_RECEIVE` and a receive by io_uring, over the
//! loopback device. A time here is CPU time of both threads, a message. The loopback device has no other
//! memory than the kernel's: it copies what `MSG_ZEROCOPY` spared, and says so in the completions, which
//! are counted. What is mapped comes from a sender with `MSG_ZEROCOPY`, since others do not send whole
//! pages; so mapping has a cell of its own, beside reading from that sender. A mapped message is not
//! touched; `read` leaves it in the caller's buffer. A stream, whose ends do not wait for each other's
//! messages, has cells of its own, over virtual Ethernet devices too (`tcp::stream`).

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::prelude::*;
use crate::tcp::{self, Connection, Way};
use cachewise_measure::units::bytes;

pub(super) const PART: Experiment = Experiment {
    name: "tcp-copies",
    about: "TCP over loopback: read, MSG_ZEROCOPY, TCP_ZEROCOPY_RECEIVE and io_uring",
    seeds: &["001.7"],
    operations: &[Operation::Copy],
    refuses: &[
        (Flag::Kernels, "its candidates are its own"),
        (Flag::Residency, "the kernel's buffers are where it puts them"),
    ],
    classic: "messages of 4k and 256k",
    figures,
    today: &[TCP],
    run,
    ..PLAIN
};

fn figures() -> Vec<Figure> {
    let title = "CPU time of both ends of a message over the loopback device";
    let both = [TCP_MESSAGE, TCP_PINNED_MESSAGE, STREAM].join("|");
    vec![Figure::bars(title, "ns").by(&["size"]).of(&both)]
}

fn run(setting: &mut Setting) -> Result {
    if let Err(error) = setting.whole("pages", PAGE_SIZE) {
        return nothing(error.to_string());
    }
    let sizes = setting.sizes_or(match setting.options {
        // As the policies of `receive`.
        options if options.classic => vec![4 << 10, 256 << 10],
        options if options.quick => vec![16 << 10, 1 << 20],
        _ => vec![4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
    });
    setting.through(sizes, alike, |setting, size| {
        for (state, ways) in CELLS {
            one_cell(setting, size, state, ways)?;
        }
        let streams = tcp::stream::rows(setting, size)?;
        setting.out.rows(streams)?;
        Ok(bytes(size as u64))
    })
}

/// The ways that are compared with the first of each.
const CELLS: [(&str, &[Way]); 2] = [
    (TCP_MESSAGE, &[Way::Plain, Way::ZeroCopySend, Way::Ring]),
    (TCP_PINNED_MESSAGE, &[Way::ZeroCopySend, Way::ZeroCopyReceive]),
];

/// A connection that is billed the CPU time of both ends.
struct BothEnds(Connection);

impl Candidate for BothEnds {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn call(&mut self, place: &Place) {
        self.0.exchange(place, 1);
    }

    fn timed_elsewhere(&mut self, places: &[Place], calls: usize) -> Option<f64> {
        Some(self.0.exchange(places.first()?, calls)? * calls as f64)
    }

    fn stays(&self) -> bool {
        true
    }
}

fn one_cell(setting: &mut Setting, size: usize, state: &'static str, ways: &[Way]) -> Result {
    debug_assert!(size.is_multiple_of(PAGE_SIZE));
    let mut ends = Vec::new();
    for way in ways {
        let what = format!("{} at {}", way.name(), bytes(size as u64));
        ends.extend(tcp::open(setting, (size, *way, true), &what)?.map(BothEnds));
    }
    // Without the first there is nothing to compare with; alone it says nothing that is not in another.
    let first = ends.first().is_some_and(|end| end.name() == ways[0].name());
    if !first || ends.len() == 1 && state != TCP_MESSAGE {
        return Ok(());
    }
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::reused(state).page_aligned() };
    let mut task = setting.task(Operation::Copy, size, cell);
    task.plan.max_sample_ns = if setting.options.quick { 5e6 } else { 2e7 };
    let Some(found) = setting.measure(&task, &mut each(&mut ends))? else { return Ok(()) };
    for (BothEnds(connection), mut row) in ends.iter_mut().zip(found.rows()) {
        if let Some(error) = connection.take_failure() {
            setting.out.note(format!("left out {}: {error}", connection.name()))?;
            continue;
        }
        let (copied, mapped) = (connection.copied(), connection.mapped());
        row = row.with(copied.map(|part| (SENDS_COPIED, part)).as_slice());
        row = row.with(mapped.map(|part| (BYTES_MAPPED, part)).as_slice());
        // A copy that was not spared gains or loses nothing by it. Both candidates of the second
        // cell have the same sender.
        let spared = match mapped {
            Some(part) => part == 1.0,
            None => copied.unwrap_or(0.0) == 0.0,
        };
        row.verdict = row.verdict.filter(|_| spared || row.candidate == row.reference);
        setting.out.row(row)?;
    }
    Ok(())
}
