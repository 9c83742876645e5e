//! Source of the decisions: the order of trust, and the one-time initialisation.
//!
//! 1. the profile that `CACHEWISE_PROFILE` names;
//! 2. the user's profile for this CPU
//!    ([`profile::user_path`](crate::profile::user_path));
//! 3. the machine's profile for this CPU, in `/etc/cachewise/`
//!    ([`profile::machine_path`](crate::profile::machine_path));
//! 4. a profile shipped for this CPU model with these caches;
//! 5. computed defaults (`defaults.rs`).
//!
//! A profile that is missing (unless it is only the user's or the machine's), unreadable, damaged
//! or foreign is passed over, with one line on stderr per process that `CACHEWISE_QUIET=1`
//! silences. A program that runs with more privilege than its caller (`AT_SECURE`: set-user-id and
//! the like) looks at neither environment nor user files; it reads the machine's, which only root
//! writes. Operations that a profile says nothing about keep their computed defaults.
//!
//! Initialisation takes no lock: one thread claims it, and whoever else comes meanwhile is served
//! by a baseline kernel. The claim holds the process's id, so that a child forked in the middle of
//! it does the work anew.

use crate::cpu::{Caches, Identity};
use crate::defaults;
use crate::follow;
use crate::profile::{ProfileError, ProfileText};
use crate::reuse::Reuse;
use crate::rows::{DIRECT_LIMIT, OWN};
use crate::shipped::{self, SHIPPED};
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::system;
use crate::table;
use cachewise_kernels::{Kernel, Operation};
use core::cell::OnceCell;
use core::ffi::{CStr, c_char};
use core::fmt;
use core::hint;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Source of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The profile that `CACHEWISE_PROFILE` names.
    Environment(ProfilePath),
    /// The user's profile for this CPU.
    User(ProfilePath),
    /// The machine's profile for this CPU, for all users.
    Machine(ProfilePath),
    /// A profile that came with the library, for the CPU model of this name.
    Shipped(&'static str),
    /// A profile that the program [installed](install) itself.
    Installed,
    /// No profile: computed from the CPU's features and caches.
    Computed,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Environment(path) => write!(f, "{path} (CACHEWISE_PROFILE)"),
            Source::User(path) => write!(f, "{path} (this user's profile)"),
            Source::Machine(path) => write!(f, "{path} (this machine's profile)"),
            Source::Shipped(model) => write!(f, "the profile shipped for {model}"),
            Source::Installed => f.write_str("the profile the program installed"),
            Source::Computed => f.write_str("defaults computed from this CPU's caches"),
        }
    }
}

/// A profile's path, kept for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilePath(&'static CStr);

impl ProfilePath {
    /// The bytes of the path.
    #[must_use]
    pub fn as_bytes(self) -> &'static [u8] {
        self.0.to_bytes()
    }

    /// The path.
    #[cfg(all(feature = "std", unix))]
    #[must_use]
    pub fn as_path(self) -> &'static std::path::Path {
        use std::os::unix::ffi::OsStrExt as _;
        std::path::Path::new(std::ffi::OsStr::from_bytes(self.as_bytes()))
    }
}

/// On one line: what is not UTF-8 or does not print is shown as `?`.
impl fmt::Display for ProfilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, self.as_bytes())
    }
}

pub(crate) fn write_path(out: &mut dyn fmt::Write, path: &[u8]) -> fmt::Result {
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            out.write_char(if character.is_control() { '?' } else { character })?;
        }
        if !chunk.invalid().is_empty() {
            out.write_char('?')?;
        }
    }
    Ok(())
}

/// Why a profile was not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// Error in the profile.
    Profile(ProfileError),
    /// Another thread, or the code this call interrupted, is filling the table and did not finish
    /// while this call waited.
    Busy,
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::Profile(error) => error.fmt(f),
            InstallError::Busy => f.write_str("the decision table is being filled: try again"),
        }
    }
}

impl core::error::Error for InstallError {}

impl From<ProfileError> for InstallError {
    fn from(error: ProfileError) -> InstallError {
        InstallError::Profile(error)
    }
}

/// The library's decision for an operation, a hint and a size.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    /// The kernel; `None` where the library's own paths serve: up to 128 bytes, and up to 256
    /// without a hint on a CPU with AVX2.
    pub kernel: Option<&'static Kernel>,
    /// True if it is left to the process's own C library; there is no kernel then. Below
    /// [`libc_from`](crate::profile::libc_from) the library's own loop of vectors does what a profile leaves
    /// to it: the jump would cost more than it gains.
    pub libc: bool,
    /// Name of the decision where it is for the kernel only if source and destination are not aligned to each other,
    /// and otherwise for the C library: `copy.avx.or-libc`.
    pub or_libc: Option<&'static CStr>,
    /// The smallest size of the range that has this decision.
    pub from: u64,
    /// The largest size of the range.
    pub to: u64,
    /// Source of the decision.
    pub source: Source,
}

impl Decided {
    /// The kernel's name, `libc` or `inlined`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if let Some(name) = self.or_libc.and_then(|name| name.to_str().ok()) {
            return name;
        }
        match self.kernel {
            Some(kernel) => kernel.name,
            None if self.libc => crate::profile::LIBC,
            None => "inlined",
        }
    }
}

/// Returns the decision for a call: the kernel, its range of sizes, and its source.
///
/// Page operations are decided as their byte operations; a hint makes no difference to a
/// comparison.
///
/// ```
/// use cachewise::{Reuse, decision};
/// use cachewise_kernels::Operation;
///
/// let decided = decision(Operation::Copy, Reuse::Never, 64 << 20);
/// assert!(decided.name().starts_with("copy."));
/// assert!(decided.from <= 64 << 20 && 64 << 20 <= decided.to);
/// ```
#[must_use]
pub fn decision(operation: Operation, reuse: Reuse, size: u64) -> Decided {
    init();
    // A hint goes to the table above OWN; without one the middle sizes are the library's own.
    let direct = table::is_direct(operation, reuse, DIRECT_LIMIT);
    let own = if reuse == Reuse::Unknown && direct { DIRECT_LIMIT as u64 } else { OWN as u64 };
    if size <= own {
        let (from, to) = (0, own);
        return Decided {
            kernel: None,
            libc: false,
            or_libc: None,
            from,
            to,
            source: Source::Computed,
        };
    }
    let row = crate::rows::row(operation, reuse);
    let in_profile = FROM_PROFILE.load(Ordering::Acquire) >> row & 1 == 1;
    let decided = in_profile && size >= crate::profile::FIRST_SIZE;
    let source = if decided { current() } else { Source::Computed };
    match table::look_up(operation, reuse, size) {
        Some(table::DecidedRange { kernel, or_libc, from, to }) => {
            Decided { kernel, libc: kernel.is_none(), or_libc, from: from.max(own + 1), to, source }
        }
        // Only while another thread fills the table.
        None => {
            let (from, to, source) = (size, size, Source::Computed);
            Decided { kernel: None, libc: false, or_libc: None, from, to, source }
        }
    }
}

/// Returns the source of the decisions as a whole; [`decision`] says it for one operation.
#[must_use]
pub fn profile_source() -> Source {
    init();
    current()
}

/// Follows the profile in these bytes from now on, in place of what the order of trust found. For
/// programs that bring their own profile.
///
/// Calls in other threads follow the old or the new profile until this returns.
///
/// # Errors
/// The profile is damaged, for another CPU, or names a kernel that the library may not use here;
/// nothing is changed then.
pub fn install(profile: &[u8]) -> Result<(), InstallError> {
    let identity = Identity::get();
    let available = identity.features;
    let profile = ProfileText::parse(profile)?;
    profile.check(&identity.signature, available)?;
    let claim = Claim::wait().ok_or(InstallError::Busy)?;
    follow::note_features(&identity);
    let decided = follow::follow(&profile, &identity, &OnceCell::new());
    follow::note_direct();
    publish(INSTALLED, decided);
    drop(claim);
    Ok(())
}

/// [`install`]s an owned profile.
///
/// # Errors
/// As [`install`].
#[cfg(feature = "std")]
pub fn load(profile: &crate::profile::Profile) -> Result<(), InstallError> {
    install(profile.to_text().as_bytes())
}

/// Fills the table now rather than in the first call that has a choice: of more than 64 bytes, or a comparison of more than
/// one. Never needed; a constructor calls it so
/// that no later call pays the microseconds of reading a profile.
#[cold]
pub fn init() {
    if STATE.load(Ordering::Acquire) == DONE {
        return;
    }
    #[cfg(all(feature = "os", target_os = "linux"))]
    crate::os::preserving_errno(fill);
    #[cfg(not(all(feature = "os", target_os = "linux")))]
    fill();
}

/// This object's constructor.
#[cfg(all(feature = "os", target_os = "linux"))]
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

#[cfg(all(feature = "os", target_os = "linux"))]
extern "C" fn loaded() {
    crate::os::note_stderr();
    crate::os::preserving_errno(system::look);
    // A call before this one filled the table without the C library.
    if table::is_filled() {
        init();
    }
}

fn fill() {
    let Some(claim) = Claim::first() else { return };
    let identity = Identity::get();
    follow::note_features(&identity);
    let caches = OnceCell::new();
    let (kind, decided) = discover(&identity, &caches).unwrap_or_else(|| {
        defaults::fill(0, &identity, &caches);
        (COMPUTED, 0)
    });
    follow::note_direct();
    publish(kind, decided);
    #[cfg(all(feature = "os", target_os = "linux"))]
    if !crate::os::has_environment() || !system::looked() {
        return claim.release_undone();
    }
    drop(claim);
}

/// Follows what the order of trust finds: who decided, and which rows; `None` where there is no profile.
/// `caches` are asked for at most once, and only by who needs them: each question is a trap into a
/// hypervisor.
fn discover(identity: &Identity, caches: &OnceCell<Caches>) -> Option<(u8, u16)> {
    #[cfg(all(feature = "os", target_os = "linux"))]
    if let Some(found) = files::discover(identity, caches) {
        return Some(found);
    }
    let here = || *caches.get_or_init(|| Caches::of(identity));
    let found = shipped::find(SHIPPED, &identity.signature, here).ok()?;
    // Not the user's doing, so nobody is warned where a hypervisor hides what it needs.
    let decided = found.follow(identity, caches)?;
    SHIPPED_NAME.store(ptr::from_ref(&found.name).cast_mut(), Ordering::Release);
    Some((SHIPPED_PROFILE, decided))
}

const COMPUTED: u8 = 0;
#[cfg(all(feature = "os", target_os = "linux"))]
const ENVIRONMENT: u8 = 1;
#[cfg(all(feature = "os", target_os = "linux"))]
const USER: u8 = 2;
#[cfg(all(feature = "os", target_os = "linux"))]
const MACHINE: u8 = 5;
const SHIPPED_PROFILE: u8 = 3;
const INSTALLED: u8 = 4;

/// Kind of the source: one of the constants above.
static KIND: AtomicU8 = AtomicU8::new(COMPUTED);
/// The rows that a profile decided, one bit each.
static FROM_PROFILE: AtomicU16 = AtomicU16::new(0);
/// The path of the environment's, the user's or the machine's profile, ending in NUL; set before
/// `KIND` says so, and never again.
static PATH: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
/// The shipped profile's name; as `PATH`.
static SHIPPED_NAME: AtomicPtr<&'static str> = AtomicPtr::new(ptr::null_mut());

fn publish(kind: u8, decided: u16) {
    KIND.store(kind, Ordering::Release);
    FROM_PROFILE.store(decided, Ordering::Release);
}

fn current() -> Source {
    let kind = KIND.load(Ordering::Acquire);
    let name = SHIPPED_NAME.load(Ordering::Acquire);
    let path = PATH.load(Ordering::Acquire);
    if kind == INSTALLED {
        return Source::Installed;
    }
    if kind == SHIPPED_PROFILE && !name.is_null() {
        // SAFETY: only `discover` stores it, from a row of the static table.
        return Source::Shipped(unsafe { *name });
    }
    #[cfg(all(feature = "os", target_os = "linux"))]
    if !path.is_null() && matches!(kind, ENVIRONMENT | USER | MACHINE) {
        // SAFETY: only `files` stores it: a string ending in NUL in pages that are never given
        // back nor written again.
        let path = ProfilePath(unsafe { CStr::from_ptr(path) });
        return match kind {
            USER => Source::User(path),
            MACHINE => Source::Machine(path),
            _ => Source::Environment(path),
        };
    }
    let _ = path;
    Source::Computed
}

/// 0 at first, [`DONE`] once the table is filled, and while somebody fills it [`claimant`].
static STATE: AtomicU32 = AtomicU32::new(0);
const DONE: u32 = 1;

/// This process, as the one that fills the table.
fn claimant() -> u32 {
    #[cfg(all(feature = "os", target_os = "linux"))]
    return crate::os::process_id().wrapping_add(2).max(2);
    #[cfg(not(all(feature = "os", target_os = "linux")))]
    2
}

/// The right to fill the table; dropping it says that the table is filled.
struct Claim;

impl Claim {
    /// For the first filling: `None` where it is done, or somebody in this process is at it.
    fn first() -> Option<Claim> {
        let me = claimant();
        Claim::take(me, |state| state != DONE && state != me)
    }

    /// For a later one: waits, but not for ever, since this thread may have interrupted the
    /// claimant.
    fn wait() -> Option<Claim> {
        let me = claimant();
        (0..1_000_000).find_map(|_| {
            hint::spin_loop();
            Claim::take(me, |state| state != me)
        })
    }

    fn take(me: u32, may: impl Fn(u32) -> bool) -> Option<Claim> {
        let free = |state| may(state).then_some(me);
        STATE.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok().map(|_| Claim)
    }
}

#[cfg(all(feature = "os", target_os = "linux"))]
impl Claim {
    /// The table can be used, but the environment was not there to be asked (in an IFUNC resolver,
    /// which runs before the C library is initialised), or the C library's routines were not looked up yet (in
    /// another library's constructor). The next [`init`] asks again.
    fn release_undone(self) {
        core::mem::forget(self);
        STATE.store(0, Ordering::Release);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        STATE.store(DONE, Ordering::Release);
    }
}

#[cfg(all(feature = "os", target_os = "linux"))]
mod files {
    //! The first three sources: files, and the one warning line.

    use super::{ENVIRONMENT, MACHINE, PATH, USER};
    use crate::cpu::{Caches, Identity, Signature};
    use crate::cursor::Cursor;
    use crate::follow;
    use crate::os::{self, Errno, File, Scratch};
    use crate::profile::{self, MAX_BYTES, ProfileError, ProfileText};
    use core::cell::OnceCell;
    use core::ffi::CStr;
    use core::fmt::{self, Write as _};
    use core::sync::atomic::{AtomicBool, Ordering};

    /// Linux's PATH_MAX, the final NUL included.
    const PATH_BYTES: usize = 4096;

    /// Paths of up to so many bytes are written on the stack; pages from the system take a process
    /// microseconds of its start.
    const SHORT_PATH: usize = 192;

    pub(super) fn discover(identity: &Identity, caches: &OnceCell<Caches>) -> Option<(u8, u16)> {
        let signature = &identity.signature;
        if !os::is_secure() {
            if let Some(path) = os::variable(c"CACHEWISE_PROFILE") {
                match follow(path, identity, caches) {
                    Ok(decided) => return Some((ENVIRONMENT, decided)),
                    Err(problem) => warn(path, &problem),
                }
            }
            if let Some(decided) = follow_at(|path| user_path(path, signature), identity, caches) {
                return Some((USER, decided));
            }
        }
        let decided = follow_at(|path| machine_path(path, signature), identity, caches)?;
        Some((MACHINE, decided))
    }

    /// Follows the file whose path is written so, where there is one.
    fn follow_at(
        write: impl Fn(&mut Cursor<'_>) -> Option<()>,
        identity: &Identity,
        caches: &OnceCell<Caches>,
    ) -> Option<u16> {
        let mut short = [0; SHORT_PATH];
        if let Some(path) = written(&mut short, &write) {
            return follow_if_there(path, identity, caches);
        }
        let mut pages = Scratch::new(PATH_BYTES).ok()?;
        follow_if_there(written(pages.bytes(), &write)?, identity, caches)
    }

    /// The path in these bytes; `None` where it does not fit, or there is none.
    fn written(bytes: &mut [u8], write: impl Fn(&mut Cursor<'_>) -> Option<()>) -> Option<&CStr> {
        let mut path = Cursor::new(bytes);
        write(&mut path)?;
        path.push(b"\0").ok()?;
        CStr::from_bytes_until_nul(bytes).ok()
    }

    /// Having none is normal; so is a directory that this process may not look into.
    fn follow_if_there(path: &CStr, identity: &Identity, caches: &OnceCell<Caches>) -> Option<u16> {
        match follow(path, identity, caches) {
            Ok(decided) => return Some(decided),
            Err(Problem::Unreadable(error)) if error.is_missing() || !os::exists(path) => {}
            Err(problem) => warn(path, &problem),
        }
        None
    }

    /// As [`profile::user_path`], without allocating.
    fn user_path(path: &mut Cursor<'_>, signature: &Signature) -> Option<()> {
        let absolute =
            |name: &CStr| os::variable(name).filter(|path| path.to_bytes().starts_with(b"/"));
        match absolute(c"XDG_CONFIG_HOME") {
            Some(config) => path.push(config.to_bytes()).ok()?,
            None => {
                path.push(absolute(c"HOME")?.to_bytes()).ok()?;
                path.push(b"/.config").ok()?;
            }
        }
        path.push(b"/cachewise/").ok()?;
        profile::write_file_name(path, signature).ok()
    }

    /// As [`profile::machine_path`], without allocating.
    fn machine_path(path: &mut Cursor<'_>, signature: &Signature) -> Option<()> {
        path.push(profile::MACHINE_DIRECTORY.as_bytes()).ok()?;
        path.push(b"/").ok()?;
        profile::write_file_name(path, signature).ok()
    }

    enum Problem {
        Unreadable(Errno),
        Profile(ProfileError),
    }

    impl From<Errno> for Problem {
        fn from(error: Errno) -> Problem {
            Problem::Unreadable(error)
        }
    }

    impl From<ProfileError> for Problem {
        fn from(error: ProfileError) -> Problem {
            Problem::Profile(error)
        }
    }

    impl fmt::Display for Problem {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Problem::Unreadable(error) => {
                    write!(f, "file: expected a readable profile, found {error}")
                }
                Problem::Profile(error) => error.fmt(f),
            }
        }
    }

    /// Follows a file, and keeps its path if that succeeds.
    fn follow(path: &CStr, identity: &Identity, caches: &OnceCell<Caches>) -> Result<u16, Problem> {
        let file = File::open(path)?;
        // One byte more than is accepted, so that too much is seen.
        let mut pages = Scratch::new(MAX_BYTES + 1)?;
        let length = file.read(pages.bytes().get_mut(..=MAX_BYTES).unwrap_or(&mut []))?;
        let profile = ProfileText::parse(pages.bytes().get(..length).unwrap_or(&[]))?;
        profile.check(&identity.signature, identity.features)?;

        let name = path.to_bytes_with_nul();
        let mut kept = Scratch::new(name.len())?;
        // The pages have room for it.
        let _ = Cursor::new(kept.bytes()).push(name);
        let decided = follow::follow(&profile, identity, caches);
        PATH.store(kept.leak().as_mut_ptr().cast(), Ordering::Release);
        Ok(decided)
    }

    /// The one line that the library ever prints, once per process.
    fn warn(path: &CStr, problem: &Problem) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let quiet = os::variable(c"CACHEWISE_QUIET").is_some_and(|value| value != c"0");
        if quiet || WARNED.swap(true, Ordering::Relaxed) {
            return;
        }
        // The path is at most PATH_BYTES long, or it could not have been opened; the rest of the
        // line is shorter than that.
        let Ok(mut pages) = Scratch::new(2 * PATH_BYTES) else { return };
        let mut line = Cursor::new(pages.bytes());
        let _ = write!(line, "cachewise: {}: {problem}; profile ignored", Shown(path));
        let _ = line.push(b" (CACHEWISE_QUIET=1 silences this)\n");
        os::write_stderr(line.written());
    }

    /// A path that need not live long, shown as [`ProfilePath`](super::ProfilePath) is.
    struct Shown<'a>(&'a CStr);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            super::write_path(f, self.0.to_bytes())
        }
    }
}
