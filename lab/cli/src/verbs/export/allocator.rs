//! `cachewise export allocator`: whether allocators should keep what is freed on this machine, tried in fresh
//! processes, and the variables that have them do so.

use super::trial::{PAIRS, Trial, Variables, fresh, settle, table};
use crate::progress::Bar;
use crate::verbs::advise::installed;
use anyhow::Context as _;
use cachewise_advise::candidates::{KEEP, KEPT_BY};
use cachewise_experiments::helper::{Helper, Request};
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::units::bytes;

/// Sizes of blocks that are tried.
const SIZES: [usize; 4] = [256 << 10, 2 << 20, 16 << 20, 64 << 20];

/// Prints the variables that pay.
pub fn run() -> anyhow::Result<u8> {
    let own = |(name, value): (&str, &str)| vec![(name.to_owned(), value.to_owned())];
    let mut all = vec![Trial {
        who: "glibc".to_owned(),
        base: Vec::new(),
        setting: own(("GLIBC_TUNABLES", KEEP)),
    }];
    for found in installed() {
        let Some((_, key, value)) = KEPT_BY.into_iter().find(|(name, ..)| *name == found.name)
        else {
            continue;
        };
        let base = own(("LD_PRELOAD", &found.file.to_string_lossy()));
        all.push(Trial { who: found.name, base, setting: own((key, value)) });
    }
    let mut bar = Bar::new()?;
    bar.begin("trying allocators that keep what is freed", (all.len() * PAIRS * 2) as f64);
    let mut table = table("blocks taken, written page by page and given back", "allocator");
    table.remark("what is kept costs its memory");
    settle(&mut bar, table, all, &SIZES.map(|size| bytes(size as u64)), &mut |set| blocks(set))
}

/// What blocks take in a fresh process.
fn blocks(variables: &Variables) -> anyhow::Result<Vec<f64>> {
    fresh(|program| Helper::start_with(program, variables))?
        .ask(&Request::Blocks { sizes: SIZES.to_vec() })
        .context("timing blocks in a fresh process")
}
