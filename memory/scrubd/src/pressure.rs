//! The memory that is available here, and whether somebody waits for some: by pressure stall information and the
//! control groups' events, and by looking often enough that nobody can use up in between what is left.

use rustix::event::PollFlags;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes a second that one CPU can take from the system at most: twice what clearing huge pages reaches.
const TAKEN: f64 = 16e9;
/// The same of a whole machine, bounded by its memory.
const TAKEN_BY_ALL: f64 = 128e9;
/// The shortest and the longest time between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// The machine and this process's control groups.
#[derive(Debug)]
pub struct Host {
    meminfo: PathBuf,
    groups: Vec<PathBuf>,
    cpus: usize,
    /// Descriptors that tell that somebody waits for memory.
    watched: Vec<Watched>,
    /// Events of the control groups at the last look.
    events: Option<u64>,
}

#[derive(Debug)]
struct Watched {
    file: OwnedFd,
    /// True if it is of a control group of this process's, and not of the machine.
    own: bool,
}

/// The memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that could be had.
    pub available: u64,
    /// Bytes of the machine, or of the control group with the lowest limit.
    pub whole: u64,
    /// True if a control group was at its limit since the last look.
    pub at_limit: bool,
}

impl Room {
    /// Bytes that are left to others: a 32nd, 16 MiB at least and 1 GiB at most.
    #[must_use]
    pub fn margin(&self) -> u64 {
        (self.whole / 32).clamp(16 << 20, 1 << 30)
    }

    /// Bytes that are missing from the margin.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.margin().saturating_sub(self.available)
    }

    /// Returns whether so much is available that a stall of the machine's is somebody's own limit, or a search for huge pages.
    #[must_use]
    pub fn is_ample(&self) -> bool {
        self.available > self.whole / 4
    }
}

impl Host {
    /// The machine that this process is on.
    #[must_use]
    pub fn new() -> Host {
        Host::of("/proc".as_ref(), cachewise_pages::groups(), cachewise_pages::cpus())
    }

    fn of(proc: &Path, groups: Vec<PathBuf>, cpus: usize) -> Host {
        // The root's figures are the machine's; only others have a type.
        let inner = groups.iter().filter(|group| group.join("cgroup.type").exists());
        let own = inner.map(|group| group.join("memory.pressure")).find(|path| path.exists());
        let mut watched = Vec::new();
        let mut watch = |file: Option<OwnedFd>, own| {
            watched.extend(file.map(|file| Watched { file, own }));
        };
        watch(own.and_then(|path| trigger(&path)), true);
        watch(trigger(&proc.join("pressure/memory")), false);
        for group in &groups {
            watch(opened(&group.join("memory.events"), OFlags::RDONLY), true);
        }
        Host { meminfo: proc.join("meminfo"), groups, cpus, watched, events: None }
    }

    /// Descriptors that are urgent (`POLLPRI`) when somebody waits for memory.
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watched.iter().map(|watched| watched.file.as_fd())
    }

    /// Takes what came of waiting for them: returns whether somebody of this process's control groups waits, and whether somebody does
    /// at all. One whose group is gone is watched no longer.
    pub fn came(&mut self, came: &[PollFlags]) -> (bool, bool) {
        let (mut own, mut all, mut places) = (false, false, came.iter());
        self.watched.retain(|watched| {
            let came = places.next().copied().unwrap_or(PollFlags::empty());
            if came.contains(PollFlags::PRI) {
                (own, all) = (own || watched.own, true);
                // Told anew of the next one only after this one has been read.
                let _ = rustix::io::pread(&watched.file, &mut [0; 512], 0);
                return true;
            }
            came.is_empty()
        });
        (own, all)
    }

    /// Looks how much memory there is.
    pub fn look(&mut self) -> Room {
        let meminfo = text(&self.meminfo);
        let of = |name| value(&meminfo, name).and_then(|kib| kib.checked_mul(1024));
        let whole = of("MemTotal:").unwrap_or(u64::MAX);
        // Without the system's figure, all memory counts as available.
        let available = of("MemAvailable:").unwrap_or(whole);
        let mut room = Room { available, whole, at_limit: false };
        let mut events = 0;
        for group in &self.groups {
            events += hits(group);
            let Some((limit, used)) = limit(group, whole) else { continue };
            room.whole = room.whole.min(limit);
            let mut left = limit.saturating_sub(used);
            if left < 4 * room.margin() {
                left = left.saturating_add(cached(group)).min(limit);
            }
            room.available = room.available.min(left);
        }
        room.at_limit = self.events.is_some_and(|before| events > before);
        self.events = Some(events);
        room
    }

    /// The time until the next look: before half of the margin could be gone.
    #[must_use]
    pub fn next_look(&self, room: &Room) -> Duration {
        let spare = room.available.saturating_sub(room.margin() / 2) as f64;
        let rate = (TAKEN * self.cpus as f64).min(TAKEN_BY_ALL);
        Duration::from_secs_f64((spare / rate).min(60.0)).clamp(LOOKS.0, LOOKS.1)
    }
}

impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

/// A new control group with a limit of memory, for tests and measurements. It is removed when this value goes.
#[derive(Debug)]
pub struct Group {
    /// Its folder.
    pub path: PathBuf,
    /// The version of its controller: 1 or 2.
    pub version: u8,
}

impl Group {
    /// Makes it, of the version that has the controller here.
    ///
    /// # Errors
    /// The system's, where none can be made.
    pub fn new(name: &str, bytes: u64) -> std::io::Result<Group> {
        Group::under("/sys/fs/cgroup".as_ref(), name, bytes)
    }

    fn under(root: &Path, name: &str, bytes: u64) -> std::io::Result<Group> {
        let beside = root.join("unified");
        let (version, folder, limit) = if root.join("memory/memory.limit_in_bytes").exists() {
            (1, root.join("memory"), "memory.limit_in_bytes")
        } else if beside.join("cgroup.procs").exists() {
            (2, beside, "memory.max")
        } else {
            (2, root.to_owned(), "memory.max")
        };
        let path = folder.join(format!("cachewise-{name}-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        let group = Group { path, version };
        std::fs::write(group.path.join(limit), bytes.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were ended a moment ago are in it still.
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The number behind a name.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    })
}

/// The limit of a control group and what it uses, in version 2 or 1; `None` if it has none below the machine's.
fn limit(group: &Path, machine: u64) -> Option<(u64, u64)> {
    let read = |name: &str| text(&group.join(name)).trim().parse::<u64>().ok();
    let limits =
        ["memory.max", "memory.high", "memory.limit_in_bytes"].into_iter().filter_map(read);
    let limit = limits.min().filter(|limit| *limit < machine)?;
    Some((limit, read("memory.current").or_else(|| read("memory.usage_in_bytes"))?))
}

/// Bytes of files that a control group would give up before it refuses memory.
fn cached(group: &Path) -> u64 {
    let text = text(&group.join("memory.stat"));
    let of = |name: &str| value(&text, &format!("total_{name}")).or_else(|| value(&text, name));
    of("inactive_file").unwrap_or(0) + of("active_file").unwrap_or(0)
}

/// The number of times that a control group was at its own limit.
fn hits(group: &Path) -> u64 {
    let events = text(&group.join("memory.events.local"));
    let of = |name| value(&events, name).unwrap_or(0);
    let old = text(&group.join("memory.failcnt")).trim().parse::<u64>().unwrap_or(0);
    of("max") + of("high") + of("oom") + old
}

fn opened(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let _ = rustix::io::pread(&file, &mut [0; 512], 0);
    Some(file)
}

/// A trigger of pressure stall information: a twentieth of half a second, or what a user without privilege may ask for.
fn trigger(path: &Path) -> Option<OwnedFd> {
    [c"some 25000 500000", c"some 100000 2000000"].into_iter().find_map(|text| {
        let file = opened(path, OFlags::RDWR)?;
        rustix::io::write(&file, text.to_bytes_with_nul()).ok()?;
        Some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a directory");
        write(folder.path(), files);
        folder
    }

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_lowest_limit_counts_and_what_it_would_give_up() {
        let proc = folder(&[(
            "meminfo",
            "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n",
        )]);
        let mut host = Host::of(proc.path(), Vec::new(), 2);
        let room = host.look();
        assert_eq!((room.available, room.whole), (4 << 30, 8 << 30));
        assert_eq!((room.margin(), room.missing()), (256 * MIB, 0));
        // A second's worth of two CPUs and more: the longest pause.
        assert!(host.next_look(&room) > Duration::from_millis(100));
        // Version 2 inside version 1, as far as a container sees it.
        let inner = folder(&[
            ("memory.max", "629145600\n"),
            ("memory.high", "max\n"),
            ("memory.current", "624951296\n"),
            ("memory.stat", "anon 5\ninactive_file 2097152\nactive_file 1048576\n"),
            ("memory.events.local", "low 0\nhigh 0\nmax 4\noom 0\n"),
        ]);
        let outer = folder(&[
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "1\n"),
            ("memory.failcnt", "7\n"),
        ]);
        let groups = [&inner, &outer].map(|folder| folder.path().to_owned()).to_vec();
        let mut host = Host::of(proc.path(), groups, 2);
        let room = host.look();
        assert_eq!((room.available, room.whole, room.at_limit), (7 * MIB, 600 * MIB, false));
        assert_eq!(room.missing(), room.margin() - 7 * MIB);
        assert_eq!(host.next_look(&room), LOOKS.0);
        assert!(!host.look().at_limit);
        write(inner.path(), &[("memory.events.local", "low 0\nhigh 0\nmax 5\noom 0\n")]);
        assert!(host.look().at_limit);
        write(outer.path(), &[("memory.failcnt", "8\n")]);
        assert!(host.look().at_limit);
    }

    #[test]
    fn a_group_is_made_by_the_version_that_has_the_controller() {
        let layouts = [
            ("memory", "memory.limit_in_bytes", (1, "memory", "memory.limit_in_bytes")),
            ("unified", "cgroup.procs", (2, "unified", "memory.max")),
            ("", "cgroup.procs", (2, "", "memory.max")),
        ];
        for (inside, file, (version, folder, limit)) in layouts {
            let root = tempfile::tempdir().expect("a directory");
            std::fs::create_dir_all(root.path().join(inside)).expect("made");
            write(&root.path().join(inside), &[(file, "")]);
            let group = Group::under(root.path(), "test", 64 * MIB).expect("made");
            assert_eq!(
                (group.version, group.path.parent()),
                (version, Some(&*root.path().join(folder)))
            );
            write(
                &group.path,
                &[("memory.current", "1048576"), ("memory.usage_in_bytes", "1048576")],
            );
            let mut host = Host::of("/nonexistent".as_ref(), vec![group.path.clone()], 1);
            let room = host.look();
            assert_eq!((room.available, room.whole), (63 * MIB, 64 * MIB), "{inside}");
            // Unlike the system's, these files have to go first.
            for name in [limit, "memory.current", "memory.usage_in_bytes"] {
                std::fs::remove_file(group.path.join(name)).expect("written before");
            }
            let path = group.path.clone();
            drop(group);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_never_short() {
        let mut host = Host::of("/nonexistent".as_ref(), vec!["/nonexistent".into()], 1);
        let room = host.look();
        assert_eq!((room.missing(), room.at_limit), (0, false));
        assert_eq!(host.watched().count(), 0);
    }

    #[test]
    fn this_machine_says_how_much_it_has() {
        let room = Host::new().look();
        assert!(room.available > 0 && room.whole >= room.available, "{room:?}");
    }
}
