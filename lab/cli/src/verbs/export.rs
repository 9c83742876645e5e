//! `cachewise export glibc`: the decisions as glibc's own thresholds.

use crate::args::Export;
use crate::{output, status};
use anyhow::Context as _;
use cachewise::profile::Profile;
use cachewise_advise::lists;
use cachewise_experiments::tunables;
use cachewise_measure::{Libc, Machine};

const GLIBC_TUNABLES: &str = "GLIBC_TUNABLES";

/// Prints the assignment that a shell or `env` takes: the profile's thresholds, and what the caller has set besides.
pub fn run(args: &Export) -> anyhow::Result<u8> {
    let path = args.profile.as_deref().or_else(|| super::profile_in_force());
    let profile = super::read_or_shipped(path)?.context(
        "there is no profile for this CPU to export; `cachewise tune` makes one, --profile names one",
    )?;
    let setting = tunables_of(&profile, &Machine::describe().libc);
    if setting.is_empty() {
        output::tell(
            "cachewise: the profile leaves copies and fills to libc: there is nothing to set",
        );
        return Ok(status::INCONCLUSIVE);
    }
    let caller = std::env::var(GLIBC_TUNABLES).unwrap_or_default();
    let all = lists::extended(GLIBC_TUNABLES, Some(&caller), &setting);
    output::print_exactly(&format!("{GLIBC_TUNABLES}={all}\n"))?;
    Ok(status::OK)
}

/// The value of `GLIBC_TUNABLES` for a profile, under this glibc; empty under another C library.
pub(super) fn tunables_of(profile: &Profile, libc: &Libc) -> String {
    libc.release().map_or_else(String::new, |release| tunables::line(&profile.decisions, release))
}
