//! Places of a program's memory, from one run with its load, before any race: the four numbers, the word for them, what comes
//! back when it is idle, and the price of a trim.

use crate::load::Load;
use crate::parts::{LOADS, Parts, Word, mib};
use crate::probe::{Probe, Trimmed};
use crate::program::{Programs, Sample};
use crate::watched::tree;
use cachewise_measure::held::processes;
use cachewise_measure::units::{counted, time};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// The part of a run without a load from which on it is asked, again and again: the last answer counts, and this run may
/// be shorter than the one before.
const FROM: f64 = 0.3;
/// The part from which on the answer is good enough to have it trimmed, too.
const LATE: f64 = 0.85;
/// Memory that differs from the plain run's at its end by more than this part of it is that of another moment: a program
/// that is setting up, or taking down what it had before it exits.
const OTHER: f64 = 0.3;
/// A trim that returns this part of the level is worth its line of code.
const WORTH: f64 = 0.1;

/// Findings of one run with its loads.
#[derive(Clone, Debug)]
pub struct Look {
    /// Memory after the last load and the time to settle.
    pub parts: Parts,
    /// Live memory after each load.
    pub lives: Vec<f64>,
    /// The word for it.
    pub word: Word,
    /// The level at the end of the last load, after the time to settle, and after one more request.
    pub idle: Option<[f64; 3]>,
    /// Seconds of that time.
    settle: f64,
    /// Bytes that a trim returned, and the part of its time that the next load takes; or why there was none.
    pub trim: Result<Trim, String>,
    /// The line that finds the stacks of a leak.
    tool: String,
}

/// A trim, with its price.
#[derive(Clone, Debug)]
pub struct Trim {
    /// The calls.
    pub calls: Vec<Trimmed>,
    /// Bytes by which the level fell.
    pub returned: f64,
    /// The next load's time over the others'; NaN without a load.
    pub next: f64,
}

/// Runs the plain program with the probe, under its load if it has one; `None` where the user stops it, or where it ends
/// before it could be asked.
///
/// # Errors
/// The program does not run any more, or the system fails.
pub fn look(
    programs: &mut Programs,
    library: &Path,
    plain: &Sample,
    loads: usize,
    is_python: bool,
) -> anyhow::Result<Option<Look>> {
    let folder = tempfile::tempdir_in(programs.directory.path())?;
    let mut probe = Probe::new(folder.path())?;
    let more = probe.variables(library);
    let words = programs.arms[0].words.iter().map(|word| word.to_string_lossy().into_owned());
    let line = crate::settings::command(&words.collect::<Vec<_>>());
    let mut found = match programs.conditions.load.clone() {
        Some(load) => under_load(programs, &load, &mut probe, &more, loads)?,
        None => match alone(programs, &mut probe, &more, [plain.wall, plain.level])? {
            // It took less time than the run before; reading a large file's symbols may have outlasted it.
            (found, now) if found.as_ref().is_none_or(|look| look.trim.is_err()) => {
                let plain = [now.min(plain.wall), plain.level];
                alone(programs, &mut probe, &more, plain)?.0.or(found)
            }
            (found, _) => found,
        },
    };
    if let Some(look) = &mut found {
        look.word = look.parts.word(&look.lives);
        look.tool = match is_python {
            true => format!(
                "memray run --native -o leak.bin {line}; memray flamegraph --leaks leak.bin"
            ),
            false => format!("heaptrack {line}; or perf record -e page-faults -g -- {line}"),
        };
    }
    Ok(found)
}

/// A program that ends by itself, whose plain run took so many seconds and had so much memory at its end: asked in the last
/// part of its run, and then trimmed. With its seconds.
fn alone(
    programs: &mut Programs,
    probe: &mut Probe,
    more: &[(&str, std::ffi::OsString)],
    [seconds, level]: [f64; 2],
) -> anyhow::Result<(Option<Look>, f64)> {
    let (mut found, mut due): (Option<Look>, f64) = (None, FROM * seconds);
    let own = processes(std::process::id().cast_signed(), None);
    let others: BTreeSet<i32> = own.into_iter().collect();
    probe.tries = 1;
    let begun = Instant::now();
    let mut ask = |program: Pid| {
        let now = begun.elapsed().as_secs_f64();
        if now < due || found.as_ref().is_some_and(|look| look.trim.is_ok()) {
            return;
        }
        let all = processes(program.as_raw_nonzero().get(), Some(&others));
        let parts = Parts::of_all(&all, probe);
        let cost = begun.elapsed().as_secs_f64() - now;
        due = now + cost.max(0.02 * seconds);
        let is_worse = found.as_ref().is_some_and(|look| is_worse(&parts, &look.parts, level));
        if parts.processes == 0 || is_worse {
            return;
        }
        let is_early = now < LATE * seconds || is_other(&parts, level);
        let trim = match is_early || unknown(&parts) > 0.5 * parts.level() {
            true => Err("it ended before it could be trimmed".to_owned()),
            false => trimmed(probe, &all, parts.level()),
        };
        found = Some(Look::of(parts, Vec::new(), None, 0.0, trim));
    };
    let ended = programs.watched_run(more, &mut ask)?;
    Ok((if ended { found } else { None }, begun.elapsed().as_secs_f64()))
}

fn unknown(parts: &Parts) -> f64 {
    parts.unknown.values().sum()
}

/// Returns whether an answer is of another moment than the end of a run with this level.
pub(crate) fn is_other(parts: &Parts, level: f64) -> bool {
    (parts.own() - level).abs() > OTHER * level
}

/// Returns whether an earlier answer is the better one, for a program of this level at its end. While threads are at work a
/// lock is often held; an answer is better than none.
fn is_worse(now: &Parts, before: &Parts, level: f64) -> bool {
    match [now, before].map(|parts| is_other(parts, level)) {
        [true, false] => true,
        [false, true] => false,
        _ => unknown(before) < unknown(now),
    }
}

/// A server: asked after each load; trimmed after the last one and the time to settle, and loaded once more.
fn under_load(
    programs: &mut Programs,
    load: &Load,
    probe: &mut Probe,
    more: &[(&str, std::ffi::OsString)],
    loads: usize,
) -> anyhow::Result<Option<Look>> {
    let mut command = programs.plain_command(more);
    let settle = programs.conditions.settle;
    let (folder, limit) = (programs.directory.path().to_owned(), programs.limit);
    let stop = std::sync::Arc::clone(&programs.stop);
    let (mut lives, mut times) = (Vec::new(), Vec::new());
    let server = |server: Pid| -> anyhow::Result<Option<Look>> {
        let root = server.as_raw_nonzero().get();
        let mut at_once = Parts::default();
        for _ in 0..loads.max(1) {
            let Some(seconds) = load.once(&folder, limit, &stop)? else { return Ok(None) };
            times.push(seconds);
            at_once = Parts::of_all(&tree(root), probe);
            lives.push(at_once.live);
        }
        std::thread::sleep(Duration::from_secs_f64(settle));
        let parts = Parts::of_all(&tree(root), probe);
        let after = match load.touch(limit, &stop) {
            true => Parts::of_all(&tree(root), probe).level(),
            false => f64::NAN,
        };
        let idle = Some([at_once.level(), parts.level(), after]);
        let mut trim = trimmed(probe, &tree(root), parts.level());
        if let Ok(trim) = &mut trim {
            let warm = cachewise_measure::stats::median(&times[usize::from(times.len() > 1)..]);
            let next = load.once(&folder, limit, &stop)?;
            trim.next = next.map_or(f64::NAN, |next| next / warm);
        }
        Ok(Some(Look::of(parts, std::mem::take(&mut lives), idle, settle, trim)))
    };
    let ran = load.with(&mut command, programs.directory.path(), limit, &programs.stop, server)?;
    ran.map_or(Ok(None), |(look, _)| look)
}

/// Trims all processes, and reads them again.
fn trimmed(probe: &mut Probe, processes: &[i32], level: f64) -> Result<Trim, String> {
    let mut calls = Vec::new();
    let mut why = "no allocator of it can be asked".to_owned();
    for process in processes {
        match probe.trim(*process) {
            Ok(done) => calls.extend(done),
            Err(reason) => why = reason,
        }
    }
    if calls.is_empty() {
        return Err(why);
    }
    let returned = (level - Parts::of_all(processes, probe).level()).max(0.0);
    Ok(Trim { calls, returned, next: f64::NAN })
}

impl Look {
    fn of(
        parts: Parts,
        lives: Vec<f64>,
        idle: Option<[f64; 3]>,
        settle: f64,
        trim: Result<Trim, String>,
    ) -> Look {
        Look { parts, lives, word: Word::Unknown, idle, settle, trim, tool: String::new() }
    }

    /// All of it, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let when = if self.lives.is_empty() { "at its end" } else { "after the load" };
        let many = match self.parts.processes {
            1 => String::new(),
            many => format!(", in {}", counted(many, "process")),
        };
        let mut lines = vec![format!("{when}: {} resident{many}", mib(self.parts.level()))];
        lines.extend(self.parts.lines());
        lines.push(self.said());
        if let Some([at_once, settled, touched]) = self.idle {
            let back = |to: f64| mib((at_once - to).max(0.0));
            let mut line =
                format!("idle: {} came back by itself in {} s", back(settled), self.settle);
            if touched.is_finite() {
                line.push_str(&format!(", {} with one more request", back(touched)));
            }
            lines.push(line);
        }
        match &self.trim {
            Ok(trim) => lines.extend(trim.lines(self.parts.level())),
            Err(why) => lines.push(format!("a trim was not tried: {why}")),
        }
        lines
    }

    fn said(&self) -> String {
        let loads = self.lives.len();
        let flat = match loads {
            0 | 1 => "whether live memory grows takes a load that is repeated: --load".to_owned(),
            2 => "two loads tell nothing of growth: --loads 3".to_owned(),
            _ => format!("live memory does not grow over {loads} loads"),
        };
        match self.word {
            Word::Leaked => {
                let first = self.lives.first().copied().unwrap_or(0.0);
                let last = self.lives.last().copied().unwrap_or(0.0);
                let each = mib((last - first) / (loads - 1) as f64);
                format!("leaked: each load adds {each} to what is live; its stacks: {}", self.tool)
            }
            Word::Held if loads >= LOADS => format!("held, not leaked: {flat}"),
            Word::Held => format!("held: freed, and kept by the allocator; {flat}"),
            Word::Needed => format!("needed: little is held; {flat}"),
            Word::Unknown => {
                "cannot tell: more cannot be asked for than is live or held".to_owned()
            }
        }
    }
}

impl Trim {
    fn lines(&self, level: f64) -> Vec<String> {
        let seconds: f64 = self.calls.iter().map(|call| call.seconds).sum();
        let mut line =
            format!("a trim now: returns {} in {}", mib(self.returned), time(seconds * 1e9));
        if self.next.is_finite() {
            line.push_str(&format!("; the next load takes {:.2} of its time", self.next));
        }
        let mut lines = vec![line];
        let names: BTreeSet<&str> = self.calls.iter().map(|call| call.name.as_str()).collect();
        if self.returned >= WORTH * level {
            lines.extend(names.into_iter().filter_map(code));
        }
        lines
    }
}

/// The call that gives memory back, as programs write it.
fn code(allocator: &str) -> Option<String> {
    let (name, prefix) = allocator.split_once(" (").unwrap_or((allocator, ""));
    let prefix = prefix.trim_end_matches(')');
    let call = match name {
        "glibc" => {
            "C malloc_trim(0);  Rust unsafe { libc::malloc_trim(0) };  Python ctypes.CDLL(None).malloc_trim(0)"
                .to_owned()
        }
        "jemalloc" => {
            format!("C {prefix}mallctl(\"arena.4096.purge\", NULL, NULL, NULL, 0)")
        }
        "mimalloc" => {
            "C mi_collect(true), in each thread;  Rust unsafe { libmimalloc_sys::mi_collect(true) }".to_owned()
        }
        "tcmalloc" => "C MallocExtension_ReleaseFreeMemory()".to_owned(),
        _ => return None,
    };
    Some(format!("  in code: {call}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_counts_unless_it_knows_less_or_is_of_another_moment() {
        let parts = |live: f64, unknown: f64| Parts {
            live,
            unknown: [("why".to_owned(), unknown)].into(),
            ..Parts::default()
        };
        for (now, before, is_less) in [
            (parts(100.0, 0.0), parts(95.0, 0.0), false),
            (parts(60.0, 40.0), parts(95.0, 5.0), true),
            // It sets up, or takes down what it had.
            (parts(20.0, 0.0), parts(90.0, 10.0), true),
            (parts(60.0, 40.0), parts(20.0, 0.0), false),
        ] {
            assert_eq!(is_worse(&now, &before, 100.0), is_less, "{now:?} {before:?}");
        }
        assert!(!is_worse(&parts(9.0, 0.0), &parts(90.0, 0.0), f64::NAN));
    }
}
