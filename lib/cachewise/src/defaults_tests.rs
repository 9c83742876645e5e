//! That defaults and shipped profiles lose to libc in no table of costs, and which kernels they take.

extern crate std;
use super::*;
use crate::cpu::Signature;
use crate::profile::Choice;
use crate::shipped::SHIPPED;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::string::String;
use std::vec::Vec;
use std::{fs, println};

/// Speed against libc below which a default is a loss.
const LEAST: f64 = 0.97;

/// The CPU that a table of costs is of, by its file's name.
fn identity(file: &str) -> Identity {
    let signature = match file {
        file if file.contains("zen5") => Signature::new("AuthenticAMD", 26, 2, 1),
        file if file.contains("zen3") => Signature::new("AuthenticAMD", 25, 1, 1),
        file if file.contains("zen4") => Signature::new("AuthenticAMD", 25, 17, 1),
        file if file.contains("cascade-lake") => Signature::new("GenuineIntel", 6, 85, 7),
        other => panic!("{other}: which CPU is it?"),
    };
    let leaves = cachewise_kernels::Leaves::read();
    let all = Features::SSE2.and(Features::AVX).and(Features::AVX2);
    let all = all.and(Features::BMI2).and(Features::ERMS);
    let wide = Features::AVX512F.and(Features::AVX512BW).and(Features::AVX512VL);
    let features = match signature.vendor.as_str() {
        "AuthenticAMD" if signature.model == 1 => all.and(Features::CLZERO).and(Features::FSRM),
        "AuthenticAMD" => all.and(wide).and(Features::CLZERO).and(Features::FSRM),
        _ => all.and(wide),
    };
    Identity { signature, features, leaves }
}

/// The name of what is done without a profile, `libc` where that is the C library's.
fn by_default(operation: Operation, n: u64, identity: &Identity) -> &'static str {
    // All of them have about this much; with a C library, nothing is non-temporal.
    let caches = Caches { l1d: 32 << 10, l2: 1 << 20, llc: 32 << 20, clamped: false };
    let plan = Kernels::find(operation, identity).plan(operation, Reuse::Unknown, &caches, true);
    let (_, slot) = plan
        .iter()
        .rev()
        .find(|(from, slot)| *from <= n && slot.is_some())
        .expect("every size is decided");
    name(operation, slot.expect("it is decided"))
}

/// The same with the profile that is shipped for the CPU.
fn by_profile(operation: Operation, n: u64, identity: &Identity) -> &'static str {
    let shipped = SHIPPED.iter().find(|shipped| shipped.is_for_model(&identity.signature));
    let shipped = shipped.expect("a profile for it");
    let profile = shipped.read(identity).expect(shipped.name);
    let unknown =
        |line: &profile::DecisionLine| line.operation == operation && line.reuse == Reuse::Unknown;
    let line = profile.decisions().filter(unknown).find(|line| line.from <= n && n <= line.to);
    match line.expect("every size is decided").choice(identity.features) {
        Ok(Choice::Kernel(kernel) | Choice::OrLibc(kernel)) => kernel.name,
        Ok(Choice::Libc { .. }) if n < libc_from(operation) => {
            name(operation, Kernels::find(operation, identity).below_libc(operation))
        }
        Ok(Choice::Libc { .. }) => "libc",
        Err(error) => panic!("{}: {error:?}", shipped.name),
    }
}

fn name(operation: Operation, slot: Slot) -> &'static str {
    let kernel = slots::kernels(operation).find(|(known, _)| *known == slot);
    kernel.map_or("libc", |(_, kernel)| kernel.name)
}

/// By operation, size and state: a kernel's least, median and greatest time.
type Cells = BTreeMap<(String, u64, String), BTreeMap<String, [f64; 3]>>;

fn cells(text: &str) -> Cells {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| columns.iter().position(|found| *found == name).expect(name);
    // Rows of a tuning: intervals are of the ratio to libc, and libc has none.
    let tuned = columns[0] == "experiment";
    let mut cells = Cells::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let time = |name: &str| fields[column(name)].parse::<f64>().expect(name);
        let (kernel, state, times) = if tuned {
            // Operands that differ have rows of their own; what few rounds say is no interval.
            if !fields[column("axes")].is_empty() || time("rounds") < 8.0 {
                continue;
            }
            // Taken in turns: what libc took in the same rounds is 1.
            let times = ["ratio_low", "ratio", "ratio_high"].map(time);
            ("candidate", "destination", times)
        } else {
            ("kernel", "state", ["low_ns", "median_ns", "high_ns"].map(time))
        };
        let of = |name: &str| String::from(fields[column(name)]);
        let cell = (of("operation"), of("bytes").parse().expect("a size"), of(state));
        cells.entry(cell).or_default().insert(of(kernel), times);
    }
    // A table without libc's interval says nothing about a few per cent.
    cells.retain(|_, times| tuned || times["libc"][0] < times["libc"][2]);
    cells
}

#[test]
fn neither_a_default_nor_a_shipped_profile_loses_to_libc_in_any_table_of_costs() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let mut tables = 0;
    for entry in fs::read_dir(records).expect("the records") {
        let path = entry.expect("a record").path();
        let file = String::from(path.file_name().and_then(|name| name.to_str()).unwrap_or(""));
        if !file.contains("-costs-") || !file.ends_with(".csv.gz") {
            continue;
        }
        tables += 1;
        let identity = identity(&file);
        let cells = cells(&unpacked(&path));
        let deciders = [("default", by_default as Decider), ("profile", by_profile)];
        for (who, decide) in deciders {
            let (mut checked, mut product) = (0, 0.0);
            for ((operation, n, state), times) in &cells {
                let operation = Operation::from_name(operation).expect("an operation");
                let chosen = decide(operation, *n, &identity);
                // Not every kernel was measured everywhere with both operands in memory.
                let (libc, Some(ours)) = (times["libc"], times.get(chosen)) else { continue };
                // A cell passes where the intervals allow it: medians of 11 are noise at 10 ns.
                assert!(
                    libc[2] / ours[0] >= LEAST,
                    "{file}, {who}: {operation} {n} {state}: {chosen} takes {ours:?}, libc {libc:?}"
                );
                checked += 1;
                product += (libc[1] / ours[1]).ln();
            }
            assert!(10 * checked > 9 * cells.len(), "{file}, {who}: {checked} cells");
            let mean = (product / checked as f64).exp();
            println!("{file}, {who}: {checked} cells, {mean:.3} of libc in the geometric mean");
            assert!(mean >= 1.0, "{file}, {who}: {mean}");
        }
    }
    assert!(tables >= 4, "{tables} tables of costs");
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    let packed = fs::File::open(path).expect("a table");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    text
}

type Decider = fn(Operation, u64, &Identity) -> &'static str;
