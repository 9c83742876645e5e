//! Disturbances of a measurement, each with its cause and a command that removes it.
//!
//! Two snapshots, before and after, tell what happened in between (stolen time, swapping,
//! preemption); the later one and the machine tell what was so all along (huge page mode,
//! governor, virtualisation). Everything is read below a root, so that tests can make noise.

use crate::{Machine, Reporting};
use cachewise_host::{Groups, Meminfo, Tree, cpus, cpus_in_list};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A short name that stays the same: `steal`, `governor`.
    pub id: String,
    /// The disturbance and its effect on figures.
    pub cause: String,
    /// A command that removes it, or what else would.
    pub remedy: String,
    /// The figure it rests on, with its unit.
    pub figure: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}); remedy: {}", self.cause, self.figure, self.remedy)
    }
}

/// The counters and switches of the system at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoiseSnapshot {
    /// Clock ticks per CPU since boot: (busy, idle, stolen).
    cpus: Vec<CpuTicks>,
    /// Clock ticks of this process and of the children it has waited for, user and system.
    own_ticks: u64,
    runnable: Option<u64>,
    load: Option<f64>,
    preempted: Option<u64>,
    swapped_pages: u64,
    swap_used: u64,
    memory: Option<(u64, u64)>,
    /// CPUs' worth of time the control group may use.
    quota: Option<f64>,
    throttled: u64,
    thp: Option<String>,
    governor: Option<String>,
    turbo: Option<bool>,
    smt_siblings: Vec<usize>,
    clocksource: Option<String>,
    reporting: Reporting,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl NoiseSnapshot {
    /// The system now. A few file reads, about a millisecond.
    pub fn take() -> NoiseSnapshot {
        NoiseSnapshot::take_at(Path::new("/"), rustix::thread::sched_getcpu())
    }

    /// The system whose files are below `root`, with this process on CPU `cpu`.
    fn take_at(root: &Path, cpu: usize) -> NoiseSnapshot {
        let tree = Tree::at(root);
        let vmstat = |name: &str| tree.line("proc/vmstat", name).unwrap_or(0);
        let meminfo = Meminfo::read(&tree);
        let groups = Groups::of(&tree, "self");
        let load = tree.text("proc/loadavg");
        let swap_free = meminfo.bytes("SwapFree").unwrap_or(0);
        NoiseSnapshot {
            cpus: cpu_ticks(&tree.text("proc/stat").unwrap_or_default()),
            own_ticks: own_ticks(&tree.text("proc/self/stat").unwrap_or_default()),
            runnable: tree.line("proc/stat", "procs_running"),
            load: load.and_then(|text| text.split_whitespace().next()?.parse().ok()),
            preempted: tree.line("proc/self/status", "nonvoluntary_ctxt_switches"),
            swapped_pages: vmstat("pswpin") + vmstat("pswpout"),
            swap_used: meminfo.bytes("SwapTotal").unwrap_or(0).saturating_sub(swap_free),
            memory: meminfo.bytes("MemAvailable").zip(meminfo.bytes("MemTotal")),
            quota: groups.cpu_quota(),
            throttled: groups.throttled(),
            thp: tree.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
            governor: tree.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            turbo: match tree.number("sys/devices/system/cpu/intel_pstate/no_turbo") {
                Some(off) => Some(off == 0),
                None => tree.number("sys/devices/system/cpu/cpufreq/boost").map(|on| on == 1),
            },
            smt_siblings: smt_siblings(&tree, cpu),
            clocksource: tree
                .text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            reporting: Reporting::at(root),
        }
    }

    /// The work of others since a snapshot, where it leaves this process and its children to wait for a CPU: at least half a CPU
    /// by others, and a quarter of all CPUs' time idle at most.
    pub fn busy_since(&self, before: &NoiseSnapshot) -> Option<String> {
        let (from, to) = (before.total(), self.total());
        let difference = |a: u64, b: u64| b.saturating_sub(a) as f64;
        let (busy, idle) = (difference(from.busy, to.busy), difference(from.idle, to.idle));
        let elapsed = busy + idle + difference(from.stolen, to.stolen);
        let others = (busy - difference(before.own_ticks, self.own_ticks)) / elapsed
            * self.cpus.len() as f64;
        // A tick is 10 ms: shares of less than a fifth of a second would be noise about noise.
        (elapsed >= 20.0 && others >= 0.5 && idle <= 0.25 * elapsed).then(|| {
            let load = self.load.map_or(String::new(), |load| format!(", load {load:.1}"));
            format!("{others:.1} CPUs used by others{load}")
        })
    }

    fn total(&self) -> CpuTicks {
        self.cpus.iter().fold(CpuTicks::default(), |sum, cpu| CpuTicks {
            busy: sum.busy + cpu.busy,
            idle: sum.idle + cpu.idle,
            stolen: sum.stolen + cpu.stolen,
        })
    }
}

/// `cpuN user nice system idle iowait irq softirq steal guest guest_nice` (proc(5)); guest time is
/// in user already.
fn cpu_ticks(stat: &str) -> Vec<CpuTicks> {
    let ticks = |line: &str| {
        let numbered = line.strip_prefix("cpu")?.split_once(|c: char| !c.is_ascii_digit());
        let (_, rest) = numbered.filter(|(number, _)| !number.is_empty())?;
        let mut fields = [0; 8];
        for (field, text) in fields.iter_mut().zip(rest.split_whitespace()) {
            *field = text.parse().unwrap_or(0);
        }
        let [user, nice, system, idle, waiting, irq, softirq, stolen] = fields;
        Some(CpuTicks { busy: user + nice + system + irq + softirq, idle: idle + waiting, stolen })
    };
    stat.lines().filter_map(ticks).collect()
}

/// Fields 14 to 17 of `/proc/self/stat` (proc_pid_stat(5): utime, stime, cutime, cstime), counted
/// after the parenthesised name.
fn own_ticks(stat: &str) -> u64 {
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0 };
    rest.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Other hardware threads of the core that `cpu` belongs to.
fn smt_siblings(tree: &Tree, cpu: usize) -> Vec<usize> {
    let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = tree.text(&file).unwrap_or_default();
    if cpus_in_list(&list).is_none_or(|count| count > 64) {
        return Vec::new();
    }
    cpus(&list).into_iter().flatten().flatten().filter(|sibling| *sibling != cpu).collect()
}

/// Lists disturbances, past or to come, of measurements on this machine between two snapshots, gravest
/// first as far as that can be said. With the same snapshot twice only what is so all along.
pub fn warnings(before: &NoiseSnapshot, after: &NoiseSnapshot, machine: &Machine) -> Vec<Warning> {
    let mut all = Vec::new();
    if let Some(emulator) = &machine.emulated {
        warn(&mut all, "emulation", emulator)
            .cause("this CPU is software: times say nothing about any hardware")
            .remedy("run on the hardware itself; use emulation for correctness only");
    }
    during(before, after, &mut all);
    host_memory(before, after, &mut all);
    standing(before, after, machine, &mut all);
    all
}

/// One more, by its name and the figure it rests on.
fn warn<'w>(all: &'w mut Vec<Warning>, id: &str, figure: impl Into<String>) -> &'w mut Warning {
    let (id, figure) = (id.to_owned(), figure.into());
    all.push_mut(Warning { id, cause: String::new(), remedy: String::new(), figure })
}

impl Warning {
    fn cause(&mut self, cause: &str) -> &mut Warning {
        cause.clone_into(&mut self.cause);
        self
    }

    fn remedy(&mut self, remedy: &str) {
        remedy.clone_into(&mut self.remedy);
    }
}

/// Adds disturbances that happened between the snapshots.
fn during(before: &NoiseSnapshot, after: &NoiseSnapshot, all: &mut Vec<Warning>) {
    let (from, to) = (before.total(), after.total());
    let difference = |a: u64, b: u64| b.saturating_sub(a) as f64;
    let stolen = difference(from.stolen, to.stolen);
    let busy = difference(from.busy, to.busy);
    let elapsed = stolen + busy + difference(from.idle, to.idle);
    // A tick is 10 ms: shares of less than half a second would be noise about noise.
    if elapsed >= 50.0 {
        let share = stolen / elapsed;
        if share > 0.002 {
            warn(all, "steal", format!("{:.1} % of CPU time", share * 100.0))
                .cause("the hypervisor ran someone else on this CPU while it was wanted here")
                .remedy(
                    "use a dedicated host or dedicated vCPUs; meanwhile measure again and compare",
                );
        }
        let others = busy - difference(before.own_ticks, after.own_ticks);
        let cpus_used = others / (elapsed / after.cpus.len().max(1) as f64);
        if cpus_used > 0.1 {
            warn(all, "others", format!("{cpus_used:.2} CPUs used by others"))
                .cause("other processes ran meanwhile: they share the last-level cache and the memory bus")
                .remedy("top -d 1 -o %CPU   # then stop what it shows");
        }
        let siblings = sibling_share(before, after);
        if siblings > 0.05 {
            warn(all, "sibling", format!("{:.0} % busy", siblings * 100.0))
                .cause("another hardware thread of the same core was busy: it shares L1, L2 and the core")
                .remedy("echo off | sudo tee /sys/devices/system/cpu/smt/control");
        }
    }
    if let (Some(first), Some(last)) = (before.preempted, after.preempted)
        && last.saturating_sub(first) > 100
    {
        warn(all, "preempted", format!("{} times", last - first))
            .cause("this process was interrupted for others on its own CPU")
            .remedy("nice -n -10 or chrt -f 10 before the command, and taskset -c to an idle CPU");
    }
    if after.swapped_pages > before.swapped_pages {
        warn(all, "swapping", format!("{} pages", after.swapped_pages - before.swapped_pages))
            .cause(
                "memory was swapped meanwhile: pages may be read from disk inside a timed interval",
            )
            .remedy("sudo swapoff -a");
    }
    if after.throttled > before.throttled {
        warn(all, "throttled", format!("{} times", after.throttled - before.throttled))
            .cause("the control group's CPU quota stopped this process")
            .remedy("raise or remove the quota: systemctl set-property UNIT CPUQuota=");
    }
}

/// Free memory that the host takes back: all along, and how much meanwhile where the kernel counts it.
fn host_memory(before: &NoiseSnapshot, after: &NoiseSnapshot, all: &mut Vec<Warning>) {
    if after.reporting.is_on {
        let figure = match after.reporting.since(&before.reporting) {
            Some(kib) => format!("free page reporting on, {} MiB meanwhile", kib >> 10),
            None => "free page reporting on".to_owned(),
        };
        warn(all, "host-memory", figure)
            .cause("the host takes free memory back: the first touch of it can take ten times as long")
            .remedy("hold memory before you time faults (`cachewise scrubd`), or a balloon without reporting");
    }
}

/// The busiest sibling's share of time.
fn sibling_share(before: &NoiseSnapshot, after: &NoiseSnapshot) -> f64 {
    let share = |cpu: &usize| {
        let (from, to) = (before.cpus.get(*cpu)?, after.cpus.get(*cpu)?);
        let busy = to.busy.saturating_sub(from.busy) as f64;
        let idle = to.idle.saturating_sub(from.idle) as f64;
        (busy + idle > 0.0).then(|| busy / (busy + idle))
    };
    after.smt_siblings.iter().filter_map(share).fold(0.0, f64::max)
}

/// Adds disturbances that last all along. The load is that of the beginning: later it has what is measured in it.
fn standing(
    before: &NoiseSnapshot,
    now: &NoiseSnapshot,
    machine: &Machine,
    all: &mut Vec<Warning>,
) {
    let cpus = machine.logical_cpus.max(1) as f64;
    let others = now.runnable.unwrap_or(1).saturating_sub(1);
    let load = before.load.unwrap_or(0.0);
    if load > 0.5 * cpus || others > 0 {
        warn(all, "load", format!("load {load:.2}, {others} others runnable, {cpus} CPUs"))
            .cause("other work is running or was within the last minute")
            .remedy("uptime; top -d 1   # wait for it, or stop it");
    }
    if let Some(mode @ ("never" | "always")) = now.thp.as_deref() {
        let cause = match mode {
            "never" => {
                "no huge pages: lines of a buffer collide in the caches by luck, and TLB misses are \
                 part of every figure beyond the L2"
            }
            _ => {
                "huge pages for everyone: buffers meant to have small pages get them only by advice, \
                 and khugepaged may move pages meanwhile"
            }
        };
        let remedy = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
        warn(all, "thp", mode).cause(cause).remedy(remedy);
    }
    if let Some(governor) = now.governor.as_deref().filter(|name| *name != "performance") {
        warn(all, "governor", governor)
            .cause("the core's frequency follows the load, so early samples run slower")
            .remedy("sudo cpupower frequency-set -g performance");
    }
    if now.turbo == Some(true) {
        warn(all, "turbo", "on")
            .cause("the core's frequency follows temperature and neighbours")
            .remedy("echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost   # intel_pstate: echo 1 into no_turbo");
    }
    if let Some(quota) = now.quota.filter(|quota| *quota < cpus) {
        warn(all, "quota", format!("{quota:.2} of {cpus} CPUs"))
            .cause(
                "a control group limits CPU time: the process is stopped when it has used its part",
            )
            .remedy("run outside the container, or raise its quota (docker: --cpus)");
    }
    if now.swap_used > 0 {
        warn(all, "swap", format!("{} MiB in use", now.swap_used >> 20))
            .cause("some memory of programs is in swap: it may be read from disk while times are taken")
            .remedy("sudo swapoff -a && sudo swapon -a");
    }
    if let Some((available, total)) = now.memory
        && available < (total / 4).min(1 << 30)
    {
        warn(all, "memory", format!("{} of {} MiB available", available >> 20, total >> 20))
            .cause("little memory is free: large buffers will be refused or push others out")
            .remedy("free -m; ps aux --sort=-rss | head   # then stop what is large");
    }
    if let Some(source) = now.clocksource.as_deref().filter(|name| *name != "tsc")
        && cfg!(target_arch = "x86_64")
    {
        warn(all, "clocksource", source)
            .cause("the kernel does not trust this machine's TSC")
            .remedy("cat /sys/devices/system/clocksource/clocksource0/available_clocksource; dmesg | grep -i tsc");
    }
    if let Some(hypervisor) = &machine.hypervisor {
        warn(all, "virtual", hypervisor)
            .cause("a guest shares caches, memory bus and cores with guests it cannot see")
            .remedy("repeat at other times of day, or use a dedicated or bare-metal instance");
    }
    if !machine.caches.notes.is_empty() {
        warn(all, "caches", machine.caches.notes.join("; "))
            .cause("the machine's own account of its caches was corrected")
            .remedy("lscpu -C   # compare with the CPU's data sheet; proofs of residency tell which is right");
    }
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
