//! `cachewise scrubd`: the server in the foreground, and its status.

use crate::args::{At, Pages, Scrubd, ScrubdVerb};
use crate::{output, status};
use anyhow::Context as _;
use cachewise_pages::{Scrub, lease};
use cachewise_scrubd::status::Status;
use cachewise_scrubd::{ServeError, Settings, memory, passed, serve};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::CString;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves, or asks a server.
pub fn run(args: &Scrubd) -> anyhow::Result<u8> {
    if let Some(ScrubdVerb::Status { at, json }) = &args.what {
        return print_status(&socket(at), *json);
    }
    let size = args.size.unwrap_or_default() as u64;
    let path = socket(&args.at);
    if args.at.socket.is_none()
        && let Some(directory) = path.parent()
    {
        // The last directory of the default path is ours; its errors are reported when it is used.
        let _ = std::fs::create_dir(directory);
    }
    let mut scrub = Scrub { cpu_share: args.cpu_share, ..Scrub::default() };
    scrub.load = args.load.unwrap_or(scrub.load);
    let settings = Settings {
        socket: path,
        size,
        keep: args.keep as u64,
        segment: args.segment.map(|bytes| bytes as u64),
        user_most: args.user_limit.map_or(u64::MAX, |bytes| bytes as u64),
        mode: args.mode,
        group: args.group.as_deref().map(group).transpose()?,
        pages: match args.pages {
            Pages::Auto => memory::Pages::Auto,
            Pages::Tmpfs => memory::Pages::Tmpfs,
            Pages::Hugetlb => memory::Pages::Hugetlb,
            Pages::Memfd => memory::Pages::Memfd,
            Pages::Small => memory::Pages::Small,
        },
        scrub,
    };
    // SAFETY: this process has opened nothing that it was passed, and this is the only call.
    let passed = unsafe { passed() }?;
    let (told, stop) = UnixStream::pair()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    let mut tell = |line: &str| output::tell(&format!("scrubd: {line}"));
    serve(settings, passed, told.as_fd(), &mut tell)?;
    Ok(if interrupted.load(Ordering::SeqCst) { status::INTERRUPTED } else { status::OK })
}

/// The socket that is meant.
pub(super) fn socket(at: &At) -> PathBuf {
    at.socket.clone().unwrap_or_else(lease::default_socket)
}

fn print_status(socket: &Path, json: bool) -> anyhow::Result<u8> {
    let text = lease::status(socket)?;
    if json {
        output::print(&format!("{text}\n"))?;
        return Ok(status::OK);
    }
    let status: Status = serde_json::from_str(&text)
        .with_context(|| format!("{}: a scrubd of another version", socket.display()))?;
    output::print(&status.text())?;
    Ok(status::OK)
}

/// A group by its name or number.
fn group(name: &str) -> anyhow::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = CString::new(name)?;
    // SAFETY: a string that ends in NUL; nobody else asks at the same time.
    let found = unsafe { libc::getgrnam(text.as_ptr()) };
    // SAFETY: null, or a group that stays until the next call.
    let found = unsafe { found.as_ref() };
    let unknown = || {
        ServeError::Setting(format!("--group: expected a group's name or number, found {name:?}"))
    };
    Ok(found.ok_or_else(unknown)?.gr_gid)
}
