//! `cachewise export mpi`: what UCX should take this machine's memory for, tried by UCX's own benchmark between
//! two processes.
//!
//! UCX assumes one speed of copies for all machines of a vendor, copies by `rep movsb` in a range of sizes, and from
//! 1.18 on past the cache from a size on (`ucx_info -cf` lists the variables of a release). The first is
//! measured here, the others are the profile's.

use super::trial::{PAIRS, Trial, Variables, settle, table};
use crate::program;
use crate::progress::Bar;
use anyhow::{Context as _, bail};
use cachewise::Reuse;
use cachewise::profile::{Decision, MAX_SIZE, Profile};
use cachewise_experiments::recorder::Progress as _;
use cachewise_kernels::{Operation, StoreKind, find};
use cachewise_measure::costs;
use cachewise_measure::units::bytes;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the messages that are tried.
const SIZES: [usize; 5] = [4 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20];
/// Bytes that all messages of a size have together.
const SENT: usize = 128 << 20;
/// How long the benchmark's two ends may take to find each other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints the variables that pay.
pub fn run(profile: Option<&Profile>) -> anyhow::Result<u8> {
    let [benchmark, info] = [tool("ucx_perftest")?, tool("ucx_info")?];
    let known = Command::new(&info).arg("-cf").output().context("ucx_info")?;
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    let mut bar = Bar::new()?;
    bar.begin("trying what UCX assumes of memory", (2 * PAIRS) as f64);
    let mut setting = assumed(costs::byte()?, profile.map(|profile| &profile.decisions[..]));
    setting.retain(|(name, _)| known.lines().any(|line| line.starts_with(&format!("{name}="))));
    let mut table = table("messages between two processes, by ucx_perftest", "library");
    if is_one_routine() {
        table.remark(
            "Open MPI's btl_vader_memcpy_limit (btl_sm_memcpy_limit) chooses between memcpy and memmove, which \
             are one routine in this C library: nothing to set",
        );
    }
    let trial = Trial { who: "UCX".to_owned(), base: Vec::new(), setting };
    let cells = SIZES.map(|size| bytes(size as u64));
    settle(&mut bar, table, vec![trial], &cells, &mut |set| {
        SIZES.iter().map(|size| messages(&benchmark, *size, set)).collect()
    })
}

fn tool(name: &str) -> anyhow::Result<PathBuf> {
    program::find(Path::new(name)).with_context(|| {
        format!("{name}: not found in PATH; accepted: UCX's tools (package ucx-utils)")
    })
}

/// UCX's settings for copies that take so many seconds a byte.
fn assumed(byte: f64, decisions: Option<&[Decision]>) -> Variables {
    let set = |name: &str, value: String| (format!("UCX_{name}"), value);
    let mut setting = vec![set("BCOPY_BW", format!("{:.0}MBps", 1e-6 / byte))];
    let Some(decisions) = decisions else { return setting };
    let of = |store: StoreKind| {
        let copies = decisions
            .iter()
            .filter(|line| line.operation == Operation::Copy && line.reuse == Reuse::Unknown);
        let of_it =
            copies.filter(|line| find(&line.kernel).is_some_and(|found| found.store == store));
        of_it.fold(None, |range: Option<(u64, u64)>, line| {
            let (from, to) = range.unwrap_or((line.from, line.to));
            Some((from.min(line.from), to.max(line.to)))
        })
    };
    let size = |size: u64| if size == MAX_SIZE { "inf".to_owned() } else { size.to_string() };
    let (from, to) = of(StoreKind::String).unwrap_or((MAX_SIZE, MAX_SIZE));
    setting.push(set("BUILTIN_MEMCPY_MIN", size(from)));
    setting.push(set("BUILTIN_MEMCPY_MAX", size(to)));
    let from = of(StoreKind::NonTemporal).map_or(MAX_SIZE, |(from, _)| from);
    setting.push(set("NT_BUFFER_TRANSFER_MIN", size(from)));
    setting
}

/// Returns whether memcpy and memmove are one function of the C library in use.
fn is_one_routine() -> bool {
    let address = |name: &std::ffi::CStr| {
        // SAFETY: a name with its end, looked for in what is loaded.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    address(c"memcpy") == address(c"memmove")
}

/// Microseconds of a message, by the benchmark's two ends under these variables.
fn messages(benchmark: &Path, size: usize, variables: &Variables) -> anyhow::Result<f64> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let start = || {
        let mut end = Command::new(benchmark);
        end.args(["-p", &port]).stdin(Stdio::null());
        end.envs(variables.iter().map(|(name, value)| (name, value)));
        end
    };
    let mut server = start().stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let messages = (SENT / size).clamp(16, 20_000).to_string();
    let begun = Instant::now();
    let told = loop {
        let mut client = start();
        client.args(["127.0.0.1", "-t", "tag_bw", "-v", "-w", "10"]);
        let ended = client.args(["-s", &size.to_string(), "-n", &messages]).output()?;
        // The other end may not listen yet.
        if ended.status.success() || begun.elapsed() > PATIENCE {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // It ends by itself where all went well, and is of no more use.
    let _ = server.kill();
    server.wait()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    // `iterations,50.0_percentile_lat,avg_lat,overall_lat,...`, and the line of all messages last.
    let last = text.lines().last().and_then(|line| line.split(',').nth(3)?.parse::<f64>().ok());
    let Some(microseconds) = last.filter(|time| *time > 0.0 && told.status.success()) else {
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        let said = said.lines().chain(text.lines()).last().unwrap_or("nothing").to_owned();
        bail!("ucx_perftest: {}: found \"{said}\", accepted its table", told.status);
    };
    Ok(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_is_the_machines_speed_and_the_profiles_ranges() {
        let line = |(from, to, kernel): (u64, u64, &str)| {
            Decision::new(Operation::Copy, Reuse::Unknown, (from, to), kernel)
        };
        let said = |lines: Option<&[Decision]>| {
            let all = assumed(1e-10, lines);
            all.iter().map(|(name, value)| format!("{}={value}", &name[4..])).collect::<Vec<_>>()
        };
        assert_eq!(said(None), ["BCOPY_BW=10000MBps"]);
        let never =
            ["BUILTIN_MEMCPY_MIN=inf", "BUILTIN_MEMCPY_MAX=inf", "NT_BUFFER_TRANSFER_MIN=inf"];
        assert_eq!(said(Some(&[]))[1..], never);
        let lines = [
            (256, 1023, "copy.avx"),
            (1024, 8191, "copy.rep.movsb"),
            (8192, 65535, "copy.rep.movsb"),
            (65536, MAX_SIZE, "copy.avx.nt"),
        ]
        .map(line);
        let ranges =
            ["BUILTIN_MEMCPY_MIN=1024", "BUILTIN_MEMCPY_MAX=65535", "NT_BUFFER_TRANSFER_MIN=65536"];
        assert_eq!(said(Some(&lines))[1..], ranges);
    }
}
