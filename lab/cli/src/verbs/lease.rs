//! `cachewise lease`: a program whose memory is there before it starts.

use super::exec::{NOT_FOUND, not_started, program};
use super::scrubd::socket;
use crate::args::Lease;
use crate::inherited;
use anyhow::Context as _;
use rustix::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Placeholder of the memory's path.
const PATH: &str = "{path}";

/// Runs the program in our place: it holds the lease as long as it, or a child of it, lives.
pub fn run(args: &Lease) -> anyhow::Result<u8> {
    let words = &args.program[1..];
    let has_path =
        |word: &std::ffi::OsString| word.to_str().is_some_and(|word| word.contains(PATH));
    if !words.iter().any(has_path) {
        let text = format!("expected {PATH} among the program's arguments, found none");
        return Err(cachewise_experiments::LabError::Usage(text).into());
    }
    let Some(program) = program(&args.program[0], "lease")? else { return Ok(NOT_FOUND) };
    let lease = cachewise_pages::lease::Lease::take_path(&socket(&args.at), args.size)?;
    let file = lease.as_fd().as_raw_fd();
    rustix::io::fcntl_setfd(&lease, rustix::io::FdFlags::empty())
        .context("passing the lease on")?;
    let path = format!("/proc/self/fd/{file}");
    let words = words.iter().map(|word| match word.to_str() {
        Some(text) => text.replace(PATH, &path).into(),
        None => word.clone(),
    });
    let mut command = Command::new(&program);
    command.arg0(&args.program[0]).args(words);
    inherited::hand_on(&mut command);
    Ok(not_started(&program, &command.exec()))
}
