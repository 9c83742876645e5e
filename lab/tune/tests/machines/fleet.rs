//! Records and profiles of simulated tunings, as `cachewise tune` leaves them on a host: what a fleet is
//! made of where nobody has a thousand machines.
//!
//! `CACHEWISE_FLEET=DIRECTORY` keeps them; `SEEDS=300` makes so many of each sound machine, and a
//! tenth as many of each broken one; of Zen 3 a third as many with another cache.

use crate::simulated::Kind;
use crate::table::STEP;
use crate::{ahead, cascade_lake, change, check, newest_tuning, plain, seeds, zen3, zen5};
use cachewise::cpu::{Caches, Cpu, Signature, Text};
use cachewise::profile::{Decision, Profile, Record, fnv1a64};
use cachewise_measure::{Header, Writer, record};
use cachewise_tune::recording::{self, facts};
use cachewise_tune::seam::Facts;
use std::path::{Path, PathBuf};

/// The CPUs by what their records are called.
const MODELS: [&str; 3] = ["zen3", "zen5", "cascade-lake"];

/// Conditions of a host: sound, sound but for another cache than others of its model have, or something
/// that should keep its figures out of everybody's profile.
const CONDITIONS: [&str; 5] = ["sound", "other", "noisy", "throttled", "crowded"];

fn kind(model: &str, condition: &str) -> Kind {
    let sound = plain(match model {
        "zen3" => zen3(),
        "zen5" => zen5(),
        _ => cascade_lake(),
    });
    match condition {
        "noisy" => Kind { noise: 12.0, steal: 4.0, ..sound },
        "crowded" => Kind { noise: 4.0, neighbour: true, quota: 0.3, ..sound },
        // Vector units at a lower clock than everything else.
        "throttled" => {
            let names = sound.table.clone();
            let mut slow = sound;
            change(&mut slow, |at, total| {
                let vector = names[&at.operation][at.arm].arm.name.contains("avx");
                if vector { total + 1.5f64.ln() } else { total }
            });
            slow
        }
        // Every size behaves as one of four times its size does elsewhere.
        "other" => {
            let mut other = sound;
            ahead(&mut other, (2.0 / STEP) as usize);
            other
        }
        _ => sound,
    }
}

/// Decisions as a profile that names its record.
fn profile(header: &Header, record: &Path, decisions: Vec<Decision>, note: String) -> Profile {
    let (cpu, facts) = (&header.machine.cpu, facts(header));
    let signature = Signature::new(&cpu.vendor, cpu.family, cpu.model, cpu.stepping);
    let checksum = fnv1a64(&std::fs::read(record).expect("the record"));
    let name = record.file_name().expect("a file").to_string_lossy().into_owned();
    Profile {
        cpu: Cpu { signature, name: Text::new(&cpu.model_name) },
        caches: Caches {
            l1d: facts.l1 as u64,
            l2: facts.l2 as u64,
            llc: facts.llc as u64,
            clamped: false,
        },
        record: Some(Record { name, checksum }),
        written: format!("{} by cachewise {}", header.started, env!("CARGO_PKG_VERSION")),
        decisions,
        notes: vec![note],
        ..Profile::here()
    }
}

/// Tunes one host; leaves its profile and its record.
fn tune(directory: &Path, model: &str, condition: &str, seed: u64, header: &Header) -> PathBuf {
    let facts = facts(header);
    let kind = Kind { facts: Facts { largest: 1 << 30, ..facts }, ..kind(model, condition) };
    let (tuning, evidence) = check::tune(&kind, seed, Vec::new());
    let stem = format!("{model}-{condition}-{seed}");
    let path = directory.join(format!("{stem}.record.jsonl"));
    let mut writer = Writer::create(&path).expect("a directory that is writable");
    writer
        .header(&Header { schema: record::SCHEMA_VERSION, seed, ..header.clone() })
        .expect("room");
    for row in evidence.rows() {
        writer.row(&row).expect("room");
    }
    writer.decisions(&recording::decisions(&tuning)).expect("room");
    writer.finish(false).expect("room");
    let note = format!("a simulated machine, {condition}, seed {seed}");
    let profile_path = directory.join(format!("{stem}.profile"));
    let profile = profile(header, &path, tuning.decisions, note);
    std::fs::write(&profile_path, profile.to_text()).expect("a profile that is valid");
    path
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_fleet_leaves_profiles_and_records() {
    let kept = std::env::var_os("CACHEWISE_FLEET").map(PathBuf::from);
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = kept.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(directory).expect("a directory");
    let seeds = seeds(1);
    // Kept nowhere, one CPU is enough.
    let models = if kept.is_some() { &MODELS[..] } else { &MODELS[..1] };
    // Two at a time: a tuning is one thread.
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                models.iter().for_each(|model| hosts(directory, model, seeds, half))
            });
        }
    });
}

/// Every second host of a model.
fn hosts(directory: &Path, model: &str, seeds: u64, half: u64) {
    // The machine's own description, from its CPU's tuning.
    let header = newest_tuning(model).header;
    for condition in CONDITIONS {
        let many = match condition {
            "sound" => seeds,
            // One model has hosts with another cache, and enough of them to differ among themselves.
            "other" if model == MODELS[0] => seeds.div_ceil(3),
            "other" => 0,
            _ => seeds.div_ceil(10),
        };
        // Hosts that are alone have more in one half than in the other, by turns.
        let turn = CONDITIONS.iter().position(|found| *found == condition).unwrap_or(0) as u64;
        for seed in (0..many).filter(|seed| (seed + turn) % 2 == half) {
            let path = tune(directory, model, condition, 100 + seed, &header);
            if seed == 0 {
                let read = record::read(&path).expect("a record");
                assert!(read.rows.len() > 1000, "{}", path.display());
                assert!(!read.decisions.kernels.is_empty(), "{}", path.display());
            }
        }
    }
}
