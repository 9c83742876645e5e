//! Whole programs that hang, or that somebody wants to stop.

use crate::CHILDREN;
use cachewise_measure::whole::{self, Ended};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn run(script: &str, place: &Path, limit: Duration, stop: &AtomicBool) -> io::Result<Ended> {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place);
    whole::run(&mut command, place, limit, stop, &mut |_| (), true)
}

/// The number of what it started, once that is written down.
fn started(place: &Path) -> Option<String> {
    let number = fs::read_to_string(place.join("child")).ok()?;
    number.strip_suffix('\n').map(str::to_owned)
}

fn is_alive(number: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn what_hangs_or_is_stopped_is_killed_with_all_that_it_started() {
    let _alone = CHILDREN.lock();
    let place = tempfile::tempdir().expect("a directory");
    let (place, long, go) = (place.path(), Duration::from_secs(600), AtomicBool::new(false));
    let ended = run("echo out; echo err >&2; exit 3", place, long, &go);
    let Ok(Ended::Run(ran)) = ended else { panic!("it ends by itself: {ended:?}") };
    assert_eq!((ran.status.code(), &*ran.output, &*ran.told), (Some(3), &b"out\n"[..], "err"));
    let sleeps = "sleep 900 & echo $! >child; wait";
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while started(place).is_none() && !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let ended = run(sleeps, place, long, &stop);
        over.store(true, Ordering::Relaxed);
        ended
    });
    assert!(matches!(ended, Ok(Ended::Stopped)), "{ended:?}");
    let number = started(place).expect("its number");
    let begun = Instant::now();
    while is_alive(&number) {
        assert!(begun.elapsed() < long, "what it started lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Long enough that how often it is looked has grown to its bound many times.
    let short = Duration::from_secs(5);
    let ended = run("sleep 900", place, short, &go);
    assert!(matches!(ended, Ok(Ended::TooLong)), "{ended:?}");
}

/// Output beyond what is kept counts in the digest alone.
#[test]
fn long_output_is_compared_whole_and_not_kept() {
    let _alone = CHILDREN.lock();
    let place = tempfile::tempdir().expect("a directory");
    let (long, go) = (Duration::from_secs(600), AtomicBool::new(false));
    let found = ["a", "b", "b"].map(|last| {
        let script = format!("head -c 30M /dev/zero; echo {last}");
        let Ok(Ended::Run(ran)) = run(&script, place.path(), long, &go) else { panic!("{last}") };
        assert_eq!(ran.output.len() as u64, whole::KEPT);
        ran.digest
    });
    assert!(found[0] != found[1] && found[1] == found[2], "{found:?}");
}

/// A program of some 20 ms that shares its CPU: what it does not work it waits for the CPU, to its end.
#[test]
fn a_short_program_beside_another_waited_for_a_cpu() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    if fs::read("/proc/self/schedstat").is_err() {
        return eprintln!("this kernel does not tell how long a thread waited for a CPU");
    }
    let _alone = CHILDREN.lock();
    let place = tempfile::tempdir().expect("a directory");
    let all = sched_getaffinity(None).expect("CPUs");
    let mut one = CpuSet::new();
    one.set((0..).find(|cpu| all.is_set(*cpu)).expect("a CPU"));
    sched_setaffinity(None, &one).expect("one of its own");
    let mut neighbour = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let mut command = Command::new("sh");
    command.args(["-c", "i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done"]);
    let (long, go) = (Duration::from_secs(600), AtomicBool::new(false));
    let mut accounted = || {
        let ended = whole::run(&mut command, place.path(), long, &go, &mut |_| (), false);
        let Ok(Ended::Run(ran)) = ended else { panic!("{ended:?}") };
        ((ran.cpu + ran.delay) / ran.seconds, ran.delay / ran.seconds)
    };
    let found: Vec<(f64, f64)> = (0..20).map(|_| accounted()).collect();
    neighbour.kill().and_then(|()| neighbour.wait()).expect("ended");
    let is_told = |(all, delay): &&(f64, f64)| (0.8..1.2).contains(all) && *delay > 0.2;
    assert!(found.iter().filter(is_told).count() >= 10, "{found:?}");
}

/// A program that waits for a signal which nobody sends, and one that prints without an end: neither is waited for until
/// its time is over, and the disk is not filled.
#[test]
fn what_stops_itself_or_prints_without_an_end_is_ended_early() {
    let _alone = CHILDREN.lock();
    let place = tempfile::tempdir().expect("a directory");
    let (place, long, go) = (place.path(), Duration::from_secs(600), AtomicBool::new(false));
    for signal in ["STOP", "TSTP", "TTIN", "TTOU"] {
        // The shell's group has no terminal and no parent within its session: only STOP is not ignored there.
        let ended = run(&format!("kill -{signal} $$"), place, long, &go);
        match ended {
            Ok(Ended::Suspended) => {}
            Ok(Ended::Run(ran)) if signal != "STOP" => assert!(ran.status.success(), "{ran:?}"),
            ended => panic!("{signal}: {ended:?}"),
        }
    }
    for to in ["1", "2"] {
        let script =
            format!("exec yes 'a line of some length, so that it takes few writes' >&{to}");
        let ended = run(&script, place, long, &go);
        assert!(matches!(ended, Ok(Ended::TooMuch)), "{to}: {ended:?}");
    }
    // One that a signal lets go on in time ends by itself.
    let script = "(sleep 0.5; kill -CONT $$) & kill -STOP $$; wait; echo on";
    let ended = run(script, place, long, &go);
    let Ok(Ended::Run(ran)) = ended else { panic!("it goes on: {ended:?}") };
    assert_eq!(&*ran.output, b"on\n");
}
