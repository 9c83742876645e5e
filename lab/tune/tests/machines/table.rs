//! Costs of calls on a CPU: a table made from a record, by kernel, size and state of the destination.
//!
//! Columns of the first three, which other programs measured: `operation,kernel,bytes,state,median_ns,reader_ns`; states
//! `cached`, `dst-evicted`, and `both-evicted` where that is all there is. The fourth has the race's rows of aligned
//! operands of a long tuning.

use cachewise_kernels::Operation;
use cachewise_tune::seam::{Class, Competitor, Destination};
use std::collections::BTreeMap;

/// Sizes are given by their logarithm: 256 B to 64 MiB.
pub const FIRST: f64 = 8.0;
pub const STEP: f64 = 1.0 / 16.0;
pub const STEPS: usize = 289;

/// The step nearest to a size.
pub fn step(size: usize) -> usize {
    (((size as f64).log2() - FIRST) / STEP).round().clamp(0.0, (STEPS - 1) as f64) as usize
}

/// Costs of a kernel, or of libc, at every step.
#[derive(Clone)]
pub struct Costs {
    pub arm: Competitor,
    /// By state (cached, evicted, repeated): logarithm of operation and reader together, in ns.
    pub total: [Vec<f64>; 3],
    /// The reader's part of that: nothing of what is repeated.
    pub reader: [Vec<f64>; 3],
}

/// By operation, libc first.
pub type Table = BTreeMap<Operation, Vec<Costs>>;

/// Operation and reader, in ns.
type Times = (f64, Option<f64>);
/// By octave, from 256 B on.
type Curve = BTreeMap<usize, Times>;

pub const OCTAVES: std::ops::RangeInclusive<usize> = 8..=26;

/// Reads a table; panics where it is not one.
pub fn read(text: &str) -> Table {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |names: [&str; 2]| columns.iter().position(|found| names.contains(found));
    let needed = |names| column(names).unwrap_or_else(|| panic!("one of {names:?}"));
    let [operation, kernel, bytes, state, median, reader] = [
        ["operation"; 2],
        ["kernel", "candidate"],
        ["bytes", "size"],
        ["state"; 2],
        ["median_ns", "operation_ns"],
        ["reader_ns"; 2],
    ]
    .map(needed);
    // A tuning's rows have the destination by itself, other layouts, and operands that differ.
    let (destination, axes) = (column(["destination"; 2]), column(["axes"; 2]));
    let mut order: BTreeMap<Operation, Vec<&str>> = BTreeMap::new();
    let mut curves: BTreeMap<(Operation, &str, &str), Curve> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let size: usize = fields[bytes].parse().expect(line);
        let other = destination.is_some()
            && (fields[state] != "aligned" || !size.is_power_of_two())
            || axes.is_some_and(|column| !fields[column].is_empty());
        // The time of libc through the library is no kernel's.
        if other || fields[kernel] == "libc.handed-over" {
            continue;
        }
        let state = match destination.map_or(fields[state], |column| fields[column]) {
            "dst-evicted" => "evicted",
            state => state,
        };
        let (operation, name) =
            (Operation::from_name(fields[operation]).expect(line), fields[kernel]);
        let names = order.entry(operation).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
        // Nobody reads what a comparison leaves; the record's reader read an operand of it.
        let is_read = !matches!(operation, Operation::Compare | Operation::Equal);
        let reader = fields[reader].parse().ok().filter(|_| is_read);
        let median: f64 = fields[median].parse().expect(line);
        assert!(median.is_finite(), "{line}");
        let times = (median, reader);
        curves.entry((operation, name, state)).or_default().insert(size.ilog2() as usize, times);
    }
    let costs = |operation: Operation, name: &str| {
        let arm = Competitor { name: name.to_owned(), class: class(name) };
        let curve = |name, state| curves.get(&(operation, name, state));
        let libc = |state| destination.and_then(|_| curve("libc", state));
        let found = curve(name, "cached").expect(name);
        let cached = above(&arm, found, whole(found, curve("libc", "cached")), libc("cached"));
        let mut found = curve(name, "both-evicted").cloned().unwrap_or_default();
        found.extend(curve(name, "evicted").into_iter().flatten());
        let evicted = match found.keys().last() {
            None => from_memory(&arm, &cached),
            Some(last) => {
                let mut evicted =
                    above(&arm, &found, whole(&found, libc("evicted")), libc("evicted"));
                // Above the largest that a tuning has, nothing is cached in either state.
                let beyond = cached.range(last + 1..).filter(|_| destination.is_some());
                evicted.extend(beyond);
                evicted
            }
        };
        // A record without calls on the same operands: the cached ones, without a reader.
        let mut alone: Curve = cached.iter().map(|(at, (time, _))| (*at, (*time, None))).collect();
        alone.extend(curve(name, "repeated").into_iter().flatten());
        let states = [&cached, &evicted, &alone].map(fine);
        Costs { arm, total: states.clone().map(|s| s.0), reader: states.map(|s| s.1) }
    };
    let of_operation = |(operation, mut names): (Operation, Vec<&str>)| {
        names.sort_by_key(|name| *name != "libc");
        (operation, names.into_iter().map(|name| costs(operation, name)).collect())
    };
    order.into_iter().map(of_operation).collect()
}

/// A curve at every octave: where a size is missing, the nearest one's ratio to libc, or its own
/// time per byte.
fn whole(found: &Curve, libc: Option<&Curve>) -> Curve {
    let mut curve = Curve::new();
    for octave in OCTAVES {
        let nearest = found.keys().min_by_key(|known| known.abs_diff(octave)).expect("a size");
        let (time, reader) = found[nearest];
        let here = libc.and_then(|libc| Some((libc.get(&octave)?, libc.get(nearest)?)));
        let scale = match here {
            _ if *nearest == octave => 1.0,
            Some((here, there)) => here.0 / there.0,
            // Half of a small call is not its bytes.
            None => 2f64.powf(0.5 * (octave as f64 - *nearest as f64)),
        };
        curve.insert(octave, (time * scale, reader.map(|reader| reader * scale)));
    }
    curve
}

/// A tuning races non-temporal kernels beyond the LLC only: below, they take at least twice libc's time.
fn above(arm: &Competitor, found: &Curve, mut whole: Curve, libc: Option<&Curve>) -> Curve {
    let first = *found.keys().next().expect("a size");
    if let (Class::NonTemporal, Some(libc)) = (arm.class, libc) {
        for (octave, time) in whole.range_mut(..first) {
            time.0 = time.0.max(2.0 * libc[octave].0);
        }
    }
    whole
}

/// Costs with evicted destinations, implied by a record that has none: a kernel with temporal stores
/// takes at least as long per byte as where all of it is memory's.
fn from_memory(arm: &Competitor, cached: &Curve) -> Curve {
    let (slowest, _) = cached[OCTAVES.end()];
    let per_octave = |octave: usize| slowest / 2f64.powi((OCTAVES.end() - octave) as i32);
    cached
        .iter()
        .map(|(&octave, &(time, reader))| {
            let least = if arm.class == Class::NonTemporal { 0.0 } else { per_octave(octave) };
            (octave, (time.max(least), reader))
        })
        .collect()
}

/// Every step: logarithm of the total, and the reader's part of it.
fn fine(curve: &Curve) -> (Vec<f64>, Vec<f64>) {
    let at = |octave: usize| {
        let (time, reader) = curve[&octave];
        let total = time + reader.unwrap_or(0.0);
        (total.ln(), reader.unwrap_or(0.0) / total)
    };
    (0..STEPS)
        .map(|step| {
            let position = FIRST + step as f64 * STEP;
            let octave = (position as usize).min(OCTAVES.end() - 1);
            let part = position - octave as f64;
            let ((a, x), (b, y)) = (at(octave), at(octave + 1));
            (a + (b - a) * part, x + (y - x) * part)
        })
        .unzip()
}

pub fn class(name: &str) -> Class {
    match name {
        "libc" => Class::Libc,
        _ if name.contains(".nt") || name.contains("clzero") => Class::NonTemporal,
        _ if name.contains(".rep") => Class::Rep,
        _ => Class::Temporal,
    }
}

pub fn state(destination: Destination) -> usize {
    destination as usize
}
