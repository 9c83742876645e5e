//! Made-up systems make made-up noise.

use super::*;
use crate::planted;
use cachewise_host::plant;

fn machine() -> Machine {
    let mut machine = Machine::from_sources(Path::new("/nonexistent"), None);
    machine.caches.notes.clear();
    machine.logical_cpus = 2;
    machine
}

const QUIET: &[(&str, &str)] = &[
    (
        "proc/stat",
        "cpu  2000 0 0 8000 0 0 0 0 0 0\ncpu0 1000 0 0 4000 0 0 0 0 0 0\ncpu1 1000 0 0 4000 0 0 0 0 0 0\nprocs_running 1\n",
    ),
    ("proc/self/stat", "7 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 100 20 0 0 20 0 1 0 0 0 0\n"),
    ("proc/self/status", "Name:\tx\nnonvoluntary_ctxt_switches:\t5\n"),
    ("proc/self/cgroup", "0::/a/b\n"),
    ("proc/loadavg", "0.10 0.10 0.10 1/80 100\n"),
    ("proc/vmstat", "pswpin 10\npswpout 20\n"),
    (
        "proc/meminfo",
        "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 100 kB\nSwapFree: 100 kB\n",
    ),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
];

/// The quiet system with some files replaced.
fn snapshot(changes: &[(&str, &str)]) -> NoiseSnapshot {
    let root = planted(QUIET);
    plant(root.path(), changes);
    NoiseSnapshot::take_at(root.path(), 0)
}

fn ids(before: &NoiseSnapshot, after: &NoiseSnapshot, machine: &Machine) -> Vec<String> {
    warnings(before, after, machine).into_iter().map(|warning| warning.id).collect()
}

#[track_caller]
fn only(changes: &[(&str, &str)], id: &str) {
    let after = snapshot(changes);
    assert_eq!(ids(&snapshot(&[]), &after, &machine()), [id]);
}

#[test]
fn a_quiet_system_gives_no_warning() {
    let quiet = snapshot(&[]);
    assert_eq!(quiet.own_ticks, 120);
    assert_eq!(quiet.smt_siblings, [1]);
    assert_eq!(ids(&quiet, &quiet, &machine()), Vec::<String>::new());
}

#[test]
fn what_happened_meanwhile_is_named() {
    let busy_since =
        |cpu0: &str, cpu1: &str| format!("cpu0 {cpu0}\ncpu1 {cpu1}\nprocs_running 1\n");
    let steal = busy_since("1000 0 0 4500 0 0 0 50 0 0", "1000 0 0 4500 0 0 0 0 0 0");
    only(&[("proc/stat", &steal)], "steal");
    let own = ("proc/self/stat", "7 (x) R 1 1 1 0 -1 0 0 0 0 0 600 20 0 0 20 0 1 0 0 0 0\n");
    let ours = busy_since("1500 0 0 4000 0 0 0 0 0 0", "1000 0 0 4500 0 0 0 0 0 0");
    let quiet = snapshot(&[]);
    assert_eq!(ids(&quiet, &snapshot(&[("proc/stat", &ours), own]), &machine()), [""; 0]);
    // A child that takes its turn is no neighbour.
    let child = ("proc/self/stat", "7 (x) R 1 1 1 0 -1 0 0 0 0 0 100 20 400 100 20 0 1 0 0 0 0\n");
    assert_eq!(ids(&quiet, &snapshot(&[("proc/stat", &ours), child]), &machine()), [""; 0]);
    let others = busy_since("1500 0 0 4000 0 0 0 0 0 0", "1400 0 0 4100 0 0 0 0 0 0");
    let found = ids(&quiet, &snapshot(&[("proc/stat", &others), own]), &machine());
    assert_eq!(found, ["others", "sibling"]);
    only(&[("proc/self/status", "nonvoluntary_ctxt_switches:\t500\n")], "preempted");
    only(&[("proc/vmstat", "pswpin 11\npswpout 20\n")], "swapping");
    only(&[("sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 3\n")], "throttled");
}

#[test]
fn what_is_so_all_along_is_named() {
    let (quiet, loaded) = (snapshot(&[]), snapshot(&[("proc/loadavg", "1.50 1 1 3/80 1\n")]));
    assert_eq!(ids(&loaded, &quiet, &machine()), ["load"]);
    assert_eq!(ids(&quiet, &loaded, &machine()), [""; 0], "a load of one's own");
    only(&[("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")], "thp");
    only(&[("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")], "thp");
    only(&[("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")], "governor");
    only(&[("sys/devices/system/cpu/cpufreq/boost", "1\n")], "turbo");
    only(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")], "turbo");
    only(&[("sys/fs/cgroup/a/cpu.max", "50000 100000\n")], "quota");
    only(&[("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 100000 kB\n")], "memory");
    let swap =
        "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\nSwapTotal: 9000 kB\nSwapFree: 1 kB\n";
    only(&[("proc/meminfo", swap)], "swap");
}

#[test]
fn the_machine_itself_may_be_the_noise() {
    let quiet = snapshot(&[]);
    let mut guest = machine();
    guest.hypervisor = Some("KVM".into());
    guest.emulated = Some("QEMU TCG".into());
    guest.caches.notes.push("LLC is assumed to be 8 MiB".into());
    assert_eq!(ids(&quiet, &quiet, &guest), ["emulation", "virtual", "caches"]);
    for warning in warnings(&quiet, &quiet, &guest) {
        assert!(!warning.cause.is_empty() && !warning.remedy.is_empty());
        assert!(!warning.figure.is_empty());
    }
}

#[test]
fn this_system_can_be_read() {
    let now = NoiseSnapshot::take();
    assert!(!now.cpus.is_empty() && now.memory.is_some());
    let told = warnings(&now, &NoiseSnapshot::take(), &Machine::describe());
    assert!(told.iter().all(|warning| !warning.figure.is_empty()), "{told:?}");
}

#[test]
fn a_busy_machine_is_one_on_which_programs_wait_for_a_cpu() {
    let before = snapshot(&[]);
    let after = |cpu0: &str, cpu1: &str, own: u64| {
        let stat = format!("cpu0 {cpu0}\ncpu1 {cpu1}\nprocs_running 3\n");
        let own = format!("7 (x) R 1 1 1 0 -1 0 0 0 0 0 {own} 20 0 0 20 0 1 0 0 0 0\n");
        snapshot(&[
            ("proc/stat", &stat),
            ("proc/self/stat", &own),
            ("proc/loadavg", "7.00 5 5 1/80 1\n"),
        ])
    };
    let (busy, idle) = ("1500 0 0 4000 0 0 0 0 0 0", "1000 0 0 4500 0 0 0 0 0 0");
    let found = after(busy, busy, 350).busy_since(&before);
    assert_eq!(found.as_deref(), Some("1.5 CPUs used by others, load 7.0"));
    // Its own work, an idle CPU, and too short a time.
    assert_eq!(after(busy, busy, 1050).busy_since(&before), None);
    assert_eq!(after(busy, idle, 100).busy_since(&before), None);
    assert_eq!(before.busy_since(&before), None);
}

#[test]
fn a_host_that_takes_free_memory_back_is_named() {
    let balloon = ("sys/bus/virtio/drivers/virtio_balloon/virtio0/features", "01100101000000\n");
    let counter = "sys/module/page_reporting/parameters/reported_kib";
    only(&[balloon], "host-memory");
    let [before, after] = ["1024\n", "9216\n"].map(|kib| snapshot(&[balloon, (counter, kib)]));
    let warnings = warnings(&before, &after, &machine());
    assert_eq!(warnings[0].figure, "free page reporting on, 8 MiB meanwhile");
}
