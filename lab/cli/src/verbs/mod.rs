//! One file per verb. Each returns the exit status.

pub mod advise;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod exec;
pub mod explain;
pub mod export;
pub mod lease;
pub mod list;
pub mod redraw;
pub mod report;
pub mod run;
pub mod scrubd;
pub mod tune;

use cachewise::Source;
use cachewise::profile::Profile;
use cachewise_measure::Machine;
use std::path::Path;

/// The profile that decides here, where it is a file.
fn profile_in_force() -> Option<&'static Path> {
    file_of(cachewise::profile_source())
}

/// The file that a source of decisions is.
fn file_of(source: Source) -> Option<&'static Path> {
    match source {
        Source::Environment(path) | Source::User(path) | Source::Machine(path) => {
            Some(path.as_path())
        }
        _ => None,
    }
}

/// The profile in that file; without one [the shipped one](shipped_in_force).
fn read_or_shipped(path: Option<&Path>) -> anyhow::Result<Option<Profile>> {
    Ok(match path {
        Some(path) => Some(Profile::read(path)?),
        None => shipped_in_force(),
    })
}

/// The profile that came with the library, where it is the one in force.
fn shipped_in_force() -> Option<Profile> {
    let Source::Shipped(_) = cachewise::profile_source() else { return None };
    Profile::parse(cachewise::shipped_profile()?.text).ok()
}

/// The C library's name and version.
fn libc(machine: &Machine) -> String {
    format!("{} {}", machine.libc.name, machine.libc.version)
}

/// A seed nobody chose; it is recorded.
fn drawn_seed() -> u64 {
    fastrand::u64(..) >> 16
}
