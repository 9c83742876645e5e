//! A control group of one's own, of version 1 or 2: processes that start in it have so much memory and no more.

use crate::{Groups, Tree};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Attempts to remove a group that is not empty yet.
const TRIES: u32 = 50;

/// The group; it is removed when this is dropped, with what is left in it.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// A group below this process's, or beside it, with that limit on memory and swap together.
    ///
    /// # Errors
    /// None can be made here: of version 2 it takes a group that is delegated to the user, of version 1 root.
    pub fn with_limit(bytes: u64) -> io::Result<Group> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("cachewise-{}-{number}", std::process::id());
        let mut error =
            io::Error::new(ErrorKind::NotFound, "no control group has a limit on memory");
        for base in Groups::of_process().memory_folders() {
            match Group::below(&Path::new("/").join(base), &name, bytes) {
                Ok(group) => return Ok(group),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    fn below(base: &Path, name: &str, bytes: u64) -> io::Result<Group> {
        let unified = base.join("cgroup.controllers");
        if let Ok(controllers) = fs::read_to_string(unified) {
            let has = |text: &str| text.split_whitespace().any(|one| one == "memory");
            if !has(&controllers) {
                return Err(io::Error::new(
                    ErrorKind::NotFound,
                    "its group has no limit on memory",
                ));
            }
            let below = base.join("cgroup.subtree_control");
            if !has(&fs::read_to_string(&below)?) && fs::write(&below, "+memory").is_err() {
                // A group with processes has no groups with controllers: this one goes a step down.
                let own = base.join("cachewise");
                fs::create_dir_all(&own)?;
                fs::write(own.join("cgroup.procs"), "0")?;
                fs::write(&below, "+memory")?;
            }
        }
        let group = Group(base.join(name));
        fs::create_dir(&group.0)?;
        let limit = bytes.to_string();
        let files = ["memory.max", "memory.limit_in_bytes"];
        let named = files.iter().map(|file| group.0.join(file)).find(|file| file.exists());
        fs::write(named.ok_or(ErrorKind::NotFound)?, &limit)?;
        // Without an account of swap there are none.
        for (file, value) in [("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", &*limit)] {
            let _ = fs::write(group.0.join(file), value);
        }
        Ok(group)
    }

    /// The file to which a process that goes into the group writes `0`.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// The number of its processes that were killed for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"];
        let mut counts =
            files.iter().filter_map(|file| Tree::default().line(self.0.join(file), "oom_kill"));
        counts.next().unwrap_or(0)
    }

    /// The most memory that it had at a time, cached files included.
    pub fn peak(&self) -> Option<u64> {
        let files = ["memory.peak", "memory.max_usage_in_bytes"];
        files.iter().find_map(|file| Tree::default().number(self.0.join(file)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.0) {
                Err(error) if error.raw_os_error() == Some(16) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}
