//! A program's processes while they run: the files that are mapped, the process that does the work, and whether a setting
//! reaches it.

use crate::executable::{exports, variables_inside};
use crate::lists;
use crate::settings::{ALLOCATORS, Candidate, Malloc};
use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A variable of every run: if the process that does the work lacks it, no setting reaches that process.
pub const MARK: &str = "CACHEWISE_QUIET";

/// One process, as it was seen last.
#[derive(Clone, Debug, Default)]
struct Process {
    name: String,
    /// Seconds that its threads had a CPU, and that they waited for one.
    worked: f64,
    delay: f64,
    /// Looks that found it with this environment.
    looks: usize,
    /// Its environment; `None` where it cannot be read, or where the program has written over it (a title).
    environment: Option<Vec<String>>,
    /// Its command line.
    line: String,
    files: BTreeSet<PathBuf>,
}

/// Observations of a program's processes.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    processes: BTreeMap<i32, Process>,
    programs: BTreeSet<PathBuf>,
    /// Most threads of one of them.
    pub threads: usize,
}

/// Why a setting is not in force where the work is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInForce {
    /// The process's name.
    pub process: String,
    /// Variable or library that it lacks.
    pub what: String,
}

/// Processes of a tree, from its root on.
pub fn tree(root: i32) -> Vec<i32> {
    let (mut left, mut found) = (vec![root], Vec::new());
    while let Some(pid) = left.pop() {
        found.push(pid);
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    found
}

/// Seconds that the threads of a process had a CPU and waited for one (proc(5), `schedstat`), and their number.
fn scheduled(pid: i32) -> (f64, f64, usize) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut sum = (0.0, 0.0, 0);
    for task in tasks {
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let mut fields = text.split_whitespace().map(|field| field.parse().unwrap_or(0.0));
        let mut next = || fields.next().unwrap_or(0.0) * 1e-9;
        sum = (sum.0 + next(), sum.1 + next(), sum.2 + 1);
    }
    sum
}

impl Watched {
    /// Looks at a process and at those that descend from it.
    pub fn look(&mut self, pid: Pid) {
        for pid in tree(pid.as_raw_nonzero().get()) {
            let place = PathBuf::from(format!("/proc/{pid}"));
            // It may have ended meanwhile.
            let Ok(name) = fs::read_to_string(place.join("comm")) else { continue };
            let environment =
                fs::read(place.join("environ")).ok().and_then(|text| environment(&text));
            // Read later: while something is mapped, the environment was its own.
            let maps = fs::read_to_string(place.join("maps")).unwrap_or_default();
            if maps.is_empty() {
                continue;
            }
            let process = self.processes.entry(pid).or_default();
            name.trim().clone_into(&mut process.name);
            process.looks = if process.environment == environment { process.looks + 1 } else { 1 };
            process.environment = environment;
            let line = fs::read(place.join("cmdline")).unwrap_or_default();
            process.line = String::from_utf8_lossy(&line).replace('\0', " ");
            let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
            process.files.extend(files.map(PathBuf::from));
            let (worked, delay, threads) = scheduled(pid);
            process.worked = process.worked.max(worked);
            process.delay = process.delay.max(delay);
            self.programs.extend(fs::read_link(place.join("exe")).ok());
            self.threads = self.threads.max(threads);
        }
    }

    /// Seconds that all of them waited for a CPU.
    #[must_use]
    pub fn delay(&self) -> f64 {
        self.processes.values().map(|process| process.delay).sum()
    }

    /// The process with the most CPU time.
    fn worker(&self) -> Option<&Process> {
        self.processes.values().max_by(|one, other| one.worked.total_cmp(&other.worked))
    }

    /// Looks for a setting in the process that does the work: its variables in the environment, its library among the mapped
    /// files. Without a setting, for the mark of every run. `None` where it is in force, or where that cannot be seen.
    #[must_use]
    pub fn lacks(&self, setting: Option<&Candidate>) -> Option<NotInForce> {
        let worker = self.worker()?;
        let not = |what: String| Some(NotInForce { process: worker.name.clone(), what });
        // One look may fall between a fork and the program's own beginning.
        if let Some(environment) = worker.environment.as_ref().filter(|_| worker.looks > 1) {
            let value = |name: &str| {
                let mut pairs = environment.iter().filter_map(|pair| pair.split_once('='));
                pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
            };
            if value(MARK).is_none() {
                return not("its caller's variables".to_owned());
            }
            for (name, wanted) in setting.into_iter().flat_map(|one| &one.variables) {
                match value(name) {
                    None => return not(name.clone()),
                    Some(value) if !lists::has(name, value, wanted) => {
                        return not(format!("{name}={wanted}"));
                    }
                    Some(_) => {}
                }
            }
            let unset = setting.into_iter().flat_map(|one| &one.unset);
            if let Some(name) = unset.into_iter().find(|name| value(name).is_some()) {
                return not(format!("{name} being unset"));
            }
        }
        let preloads = setting.into_iter().flat_map(|one| &one.variables);
        let library = preloads.into_iter().find(|(name, _)| name == "LD_PRELOAD");
        let library = library.and_then(|(_, value)| value.split([':', ' ']).next())?;
        // The dynamic linker maps it before the C library: once that is there, nothing is still to come.
        let maps = |part: &str| {
            let name = |file: &PathBuf| {
                file.file_name().unwrap_or_default().to_string_lossy().into_owned()
            };
            worker.files.iter().any(|file| name(file).starts_with(part))
        };
        let has_libc = maps("libc.so") || maps("libc-") || maps("ld-musl");
        let stem = Path::new(library).file_name()?.to_string_lossy().into_owned();
        let stem = stem.split(".so").next().unwrap_or_default().to_owned();
        if has_libc && !maps(&stem) { not(library.to_owned()) } else { None }
    }

    /// Returns true if any of its programs is one.
    pub fn is_any(&self, is_one: impl Fn(&Path) -> bool) -> bool {
        self.programs.iter().any(|program| is_one(program))
    }

    /// Returns true if any word of its processes' command lines and variables is one.
    #[must_use]
    pub fn has_word(&self, is_one: impl Fn(&str) -> bool) -> bool {
        let all = self.processes.values();
        let texts = all.flat_map(|one| one.environment.iter().flatten().chain([&one.line]));
        texts.flat_map(|text| text.split([' ', '='])).any(is_one)
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.processes.values().flat_map(|process| &process.files)
    }

    /// The library among the mapped files that has its `malloc`, with its version.
    #[must_use]
    pub fn allocator(&self) -> String {
        cachewise_measure::surroundings::allocator(self.files().cloned())
    }

    /// The names of the files that were mapped.
    #[must_use]
    pub fn mapped(&self) -> Vec<String> {
        let name = |file: &PathBuf| Some(file.file_name()?.to_string_lossy().into_owned());
        let names: BTreeSet<String> = self.files().filter_map(name).collect();
        names.into_iter().collect()
    }

    /// Variables of allocators inside of what was mapped.
    #[must_use]
    pub fn inside(&self) -> Vec<String> {
        let files: BTreeSet<&PathBuf> = self.files().collect();
        let all: BTreeSet<String> =
            files.into_iter().flat_map(|file| variables_inside(file)).collect();
        all.into_iter().collect()
    }

    /// Source of the program's `malloc`.
    #[must_use]
    pub fn malloc(&self, program: &Path) -> Malloc {
        let has = |file: &Path| exports(file, "malloc");
        if self.programs.iter().map(PathBuf::as_path).chain([program]).any(has) {
            return Malloc::Own;
        }
        let name =
            |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = |file: &&PathBuf| ALLOCATORS.iter().any(|of| name(file).contains(of.name));
        match self.files().filter(known).find(|file| has(file)) {
            Some(file) => Malloc::Library(name(file)),
            None => Malloc::Libc,
        }
    }
}

/// The pairs of an environment; `None` where its memory holds something else. glibc before 2.39 ends each setting of
/// `GLIBC_TUNABLES` in place, so that all but the first stand there as variables of their own.
fn environment(text: &[u8]) -> Option<Vec<String>> {
    let mut pairs: Vec<String> = Vec::new();
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    for part in text.split(|byte| *byte == 0).filter(|_| !text.is_empty()) {
        let part = String::from_utf8_lossy(part);
        match pairs.last_mut() {
            Some(last) if last.starts_with("GLIBC_TUNABLES=") && part.starts_with("glibc.") => {
                last.push_str(&format!(":{part}"));
            }
            _ => pairs.push(part.into_owned()),
        }
    }
    let is_pair = |pair: &String| pair.split_once('=').is_some_and(|(name, _)| !name.contains(' '));
    pairs.iter().all(is_pair).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Acts, Kind};

    fn watched(environment: Option<&[&str]>, files: &[&str]) -> Watched {
        let environment =
            environment.map(|all| all.iter().map(|pair| (*pair).to_owned()).collect());
        let files = files.iter().map(PathBuf::from).collect();
        let worker = Process {
            name: "worker".to_owned(),
            worked: 1.0,
            delay: 0.0,
            looks: 2,
            environment,
            line: "java -XX:+UseG1GC Work".to_owned(),
            files,
        };
        let idle =
            Process { name: "sh".to_owned(), environment: Some(vec![]), ..Process::default() };
        Watched { processes: [(2, worker), (9, idle)].into(), ..Watched::default() }
    }

    #[test]
    fn a_setting_is_looked_for_where_the_work_is_done() {
        let preload = Candidate::new(
            "x",
            Kind::Allocator,
            Acts::Blocks,
            &[("LD_PRELOAD", "/l/libjemalloc.so.2"), ("A", "1")],
        );
        let marked = &["CACHEWISE_QUIET=1", "A=1", "LD_PRELOAD=/x.so:/l/libjemalloc.so.2"][..];
        let (libc, jemalloc) = ("/lib/libc.so.6", "/l/libjemalloc.so.2");
        for (environment, files, setting, lacks) in [
            (Some(marked), &[libc, jemalloc][..], Some(&preload), None),
            (Some(marked), &[libc], Some(&preload), Some("/l/libjemalloc.so.2")),
            // Too early to say.
            (Some(marked), &[], Some(&preload), None),
            (Some(&marked[..2]), &[libc, jemalloc], Some(&preload), Some("LD_PRELOAD")),
            // A wrapper has another value of its own.
            (Some(&[marked[0], "A=12", marked[2]]), &[], Some(&preload), Some("A=1")),
            (Some(&marked[..1]), &[], None, None),
            (Some(&["HOME=/"]), &[], None, Some("its caller's variables")),
            (Some(&[]), &[], None, Some("its caller's variables")),
            (None, &[], None, None),
        ] {
            let found = watched(environment, files).lacks(setting);
            assert_eq!(
                found.as_ref().map(|not| not.what.as_str()),
                lacks,
                "{environment:?} {files:?}"
            );
            assert!(found.is_none_or(|not| not.process == "worker"));
        }
        let unset = Candidate { unset: vec!["A".to_owned()], variables: vec![], ..preload.clone() };
        assert!(watched(Some(marked), &[]).lacks(Some(&unset)).is_some());
        let chosen = |word: &'static str| watched(None, &[]).has_word(|one| one == word);
        assert!(chosen("-XX:+UseG1GC") && !chosen("-XX:+UseSerialGC"));
        assert_eq!(environment(b"A=1\0B=2\0"), Some(vec!["A=1".to_owned(), "B=2".to_owned()]));
        assert_eq!(environment(b"postgres: writer process   \0"), None);
        // A title elsewhere, and zeros where the variables were, as Redis has it; and no variables at all.
        assert_eq!(environment(&[0; 64]), None);
        assert_eq!(environment(b""), Some(Vec::new()));
    }

    #[test]
    fn libc_has_a_malloc_and_this_program_has_none() {
        let tunables =
            environment(b"A=1\0GLIBC_TUNABLES=glibc.a=1\0glibc.b=2\0C=3\0").expect("pairs");
        assert_eq!(tunables, ["A=1", "GLIBC_TUNABLES=glibc.a=1:glibc.b=2", "C=3"]);
        let own = std::env::current_exe().expect("a path");
        let mut watched = Watched::default();
        watched.look(rustix::process::getpid());
        let libc = watched.files().find(|file| file.to_string_lossy().contains("/libc.so"));
        assert!(libc.is_some_and(|libc| exports(libc, "malloc")), "{:?}", watched.mapped());
        assert!(watched.threads >= 1 && watched.malloc(&own) == Malloc::Libc);
    }
}
