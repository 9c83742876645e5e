//! Description of this computer: everything a reader of a record needs to judge its figures.
//!
//! Text comes from `/proc` and `/sys` below a root, so that tests can describe machines nobody
//! has; on x86-64 CPUID overrules it, because user-mode emulators show the host's `/proc/cpuinfo`.

use crate::caches::{self, CacheAnswer, Caches};
use crate::cpu::Cpu;
use crate::units::{bytes, counted};
use cachewise_host::{Meminfo, Tree, cpus_in_list};
use cachewise_kernels::Features;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine, as records carry it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: Cpu,
    /// Its caches, per core complex.
    pub caches: Caches,
    pub logical_cpus: usize,
    /// Memory in bytes, as the kernel counts it (`MemTotal`).
    pub memory_bytes: u64,
    /// Bytes of a base page.
    pub page_size: usize,
    /// Transparent huge page mode: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Frequency governor of the first CPU; guests have none.
    pub governor: Option<String>,
    /// Name of the hypervisor underneath, where one shows.
    pub hypervisor: Option<String>,
    /// Operating system, release and architecture.
    pub kernel: String,
    /// The C library in this process: the reference of every ratio.
    pub libc: Libc,
    /// The Rust compiler that built this program.
    pub compiler: String,
    /// The emulator, when this CPU is software (its timings mean nothing).
    pub emulated: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libc {
    /// `glibc`, `musl` or `unknown`.
    pub name: String,
    pub version: String,
    /// The `x86_*` rows of `ld.so --list-tunables` in force in this environment, by their last
    /// name: `x86_non_temporal_threshold`, `x86_rep_movsb_threshold` and so on.
    pub tunables: BTreeMap<String, String>,
}

/// Facts from CPUID; absent on other architectures and in tests.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuidFacts {
    vendor: String,
    brand: String,
    family: u32,
    model: u32,
    stepping: u32,
    /// Signature of the hypervisor leaf 4000_0000, trimmed.
    hypervisor: Option<String>,
    caches: Option<CacheAnswer>,
}

impl Machine {
    /// Describes the machine this runs on. Takes a few milliseconds: it asks the dynamic loader
    /// for its tunables.
    pub fn describe() -> Machine {
        #[cfg(target_arch = "x86_64")]
        let cpuid = Some(ask_cpuid());
        #[cfg(not(target_arch = "x86_64"))]
        let cpuid = None::<CpuidFacts>;
        let mut machine = Machine::from_sources(Path::new("/"), cpuid.as_ref());
        machine.cpu.features = Features::detect().to_string();
        machine.libc = libc_here();
        machine.page_size = rustix::param::page_size();
        machine
    }

    /// Describes a machine from its files below `root` and its CPUID answers. What can only be
    /// asked of the running machine (features, C library) stays empty.
    pub(crate) fn from_sources(root: &Path, cpuid: Option<&CpuidFacts>) -> Machine {
        let tree = Tree::at(root);
        let info = CpuInfo::read(&tree);
        let emulated = emulator(&tree, &info, cpuid);
        let mut cpu = info.cpu(cpuid);
        if cpuid.is_none() && info.is_of_another_architecture() {
            // The host's, of which nothing holds here.
            let model_name = format!("emulated {}", std::env::consts::ARCH);
            cpu = Cpu { vendor: "unknown".to_owned(), model_name, ..Cpu::default() };
        }
        let online = tree.text("sys/devices/system/cpu/online");
        let logical_cpus = online.as_deref().and_then(cpus_in_list);
        let logical_cpus = logical_cpus.unwrap_or_else(|| info.processors.max(1));
        let by_cpuid = cpuid.and_then(|facts| facts.caches);
        let caches = caches::reconcile(by_cpuid, caches::from_sysfs(&tree), &cpu, logical_cpus);
        Machine {
            emulated,
            hypervisor: hypervisor(&tree, &info, cpuid),
            cpu,
            caches,
            logical_cpus,
            memory_bytes: Meminfo::read(&tree).bytes("MemTotal").unwrap_or(0),
            page_size: 4096,
            thp: tree.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
            governor: tree.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            kernel: kernel(&tree),
            libc: Libc { name: "unknown".to_owned(), ..Libc::default() },
            compiler: env!("CACHEWISE_COMPILER").to_owned(),
        }
    }

    /// One line for humans: CPU, CPUs, caches per core complex, memory, pages, system.
    pub fn summary_line(&self) -> String {
        let Caches { l1d, l2, llc, .. } = &self.caches;
        let memory = match self.memory_bytes {
            0 => "unknown".to_owned(),
            known => bytes(known),
        };
        let [l1d, l2, llc] = [l1d, l2, llc].map(|level| bytes(level.bytes as u64));
        let mut line = format!(
            "{} ({}; L1d {l1d}, L2 {l2}, LLC {llc} per complex; {memory} memory; THP {}; {}; {} {})",
            self.cpu.model_name,
            counted(self.logical_cpus, "CPU"),
            self.thp.as_deref().unwrap_or("unknown"),
            self.kernel,
            self.libc.name,
            self.libc.version,
        );
        if let Some(hypervisor) = &self.hypervisor {
            line.push_str(&format!(", guest of {hypervisor}"));
        }
        if let Some(emulator) = &self.emulated {
            line.push_str(&format!(", emulated by {emulator}"));
        }
        line
    }
}

fn kernel(tree: &Tree) -> String {
    let named = tree.text("proc/sys/kernel/ostype").zip(tree.text("proc/sys/kernel/osrelease"));
    let (kind, release) = named.unwrap_or_else(|| {
        let name = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        (text(name.sysname()), text(name.release()))
    });
    format!("{kind} {release} {}", std::env::consts::ARCH)
}

/// `/proc/cpuinfo` of the first processor.
struct CpuInfo {
    fields: BTreeMap<String, String>,
    processors: usize,
}

impl CpuInfo {
    fn read(tree: &Tree) -> CpuInfo {
        let text = tree.text("proc/cpuinfo").unwrap_or_default();
        let mut fields = BTreeMap::new();
        let mut processors = 0;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if key == "processor" {
                processors += 1;
            }
            fields.entry(key).or_insert(value);
        }
        CpuInfo { fields, processors }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn number(&self, key: &str) -> Option<u32> {
        let value = self.get(key)?;
        match value.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => value.split_whitespace().next()?.parse().ok(),
        }
    }

    fn cpu(&self, cpuid: Option<&CpuidFacts>) -> Cpu {
        let pvr = self.get("revision").filter(|_| self.is_of_power()).and_then(pvr_in);
        let (vendor, model_name, [family, model, stepping]) = match (cpuid, pvr) {
            (Some(facts), _) => {
                let numbers = [facts.family, facts.model, facts.stepping];
                (Some(&*facts.vendor), Some(&*facts.brand), numbers)
            }
            (None, Some(pvr)) => {
                (Some("IBM"), self.get("cpu"), [pvr >> 16, pvr >> 12 & 0xF, pvr & 0xFFF])
            }
            (None, None) => {
                let first = |names: &[&str]| names.iter().find_map(|name| self.get(name));
                let number =
                    |a: &str, b: &str| self.number(a).or_else(|| self.number(b)).unwrap_or(0);
                let vendor = first(&["vendor_id", "CPU implementer"]);
                let numbers = [
                    number("cpu family", "CPU architecture"),
                    number("model", "CPU part"),
                    number("stepping", "CPU revision"),
                ];
                let model_name = first(&["model name", "cpu", "CPU part"]);
                (vendor.or(self.is_of_power().then_some("IBM")), model_name, numbers)
            }
        };
        Cpu {
            vendor: vendor.unwrap_or("unknown").to_owned(),
            model_name: model_name.unwrap_or("unknown").to_owned(),
            family,
            model,
            stepping,
            microcode: self.get("microcode").map(str::to_owned),
            ..Cpu::default()
        }
    }

    fn is_of_power(&self) -> bool {
        self.get("cpu").is_some_and(|name| name.starts_with("POWER"))
    }

    /// Returns whether it describes a CPU that could not run this program.
    fn is_of_another_architecture(&self) -> bool {
        let is_of_x86 =
            self.fields.contains_key("vendor_id") && self.fields.contains_key("cpu family");
        // On x86-64 CPUID is asked instead.
        !cfg!(target_arch = "x86_64")
            && (is_of_x86
                || (self.fields.contains_key("CPU implementer")
                    && cfg!(not(target_arch = "aarch64")))
                || (self.is_of_power() && cfg!(not(target_arch = "powerpc64"))))
    }
}

/// The processor version register in `2.2 (pvr 004e 1202)`.
fn pvr_in(revision: &str) -> Option<u32> {
    let (_, rest) = revision.split_once("(pvr ")?;
    let digits: String = rest.chars().filter(char::is_ascii_hexdigit).collect();
    u32::from_str_radix(&digits, 16).ok()
}

/// The name behind a hypervisor leaf's signature (Linux `arch/x86/kernel/cpu/hypervisor.c`).
fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "bhyve bhyve" => "bhyve",
        "ACRNACRNACRN" => "ACRN",
        "VBoxVBoxVBox" => "VirtualBox",
        "" => "unnamed",
        other => other,
    }
}

fn hypervisor(tree: &Tree, info: &CpuInfo, cpuid: Option<&CpuidFacts>) -> Option<String> {
    if let Some(facts) = cpuid {
        return facts.hypervisor.as_deref().map(|name| hypervisor_name(name).to_owned());
    }
    let flagged = info
        .get("flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    tree.text("sys/hypervisor/type")
        .or_else(|| tree.text("proc/device-tree/hypervisor/compatible"))
        .or_else(|| {
            let vendor = tree.text("sys/class/dmi/id/sys_vendor")?;
            let guest = ["QEMU", "VMware", "Xen", "Amazon EC2", "Google", "innotek"];
            guest.iter().any(|name| vendor.contains(name)).then_some(vendor)
        })
        .or_else(|| flagged.then(|| "unnamed".to_owned()))
}

/// Emulators betray themselves: TCG by its hypervisor leaf or brand, Bochs by its brand or
/// firmware, Rosetta by its vendor, and a user-mode emulator by a `/proc/cpuinfo` of an architecture
/// that this program is not for.
fn emulator(tree: &Tree, info: &CpuInfo, cpuid: Option<&CpuidFacts>) -> Option<String> {
    let CpuidFacts { vendor, brand, hypervisor, .. } = cpuid.cloned().unwrap_or_default();
    let signature = hypervisor.unwrap_or_default();
    let product = tree.text("sys/class/dmi/id/product_name").unwrap_or_default();
    // Implementer 0 is reserved for software (Arm ARM, MIDR_EL1); QEMU's `max` CPU has it.
    let invented = info.get("CPU implementer") == Some("0x00");
    let known = [
        ("QEMU TCG", signature.starts_with("TCGTCG") || brand.contains("QEMU TCG")),
        ("Rosetta", vendor == "VirtualApple" || brand.contains("VirtualApple")),
        ("Bochs", brand.to_ascii_lowercase().contains("bochs") || product.contains("Bochs")),
        // It passes the host's files on.
        ("a user-mode emulator (QEMU)", info.is_of_another_architecture() || invented),
    ];
    known.iter().find(|(_, shows)| *shows).map(|(name, _)| (*name).to_owned())
}

/// Rows like `glibc.cpu.x86_rep_movsb_threshold: 0x840 (min: 0x100, max: 0xff)`.
fn tunables_of(listing: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let short = name.trim().rsplit('.').next()?;
        let value = rest.split_whitespace().next()?;
        short.starts_with("x86_").then(|| (short.to_owned(), value.to_owned()))
    };
    listing.lines().filter_map(row).collect()
}

impl Libc {
    /// The glibc of a dynamic linker's file, with what is in force under these tunables.
    ///
    /// # Errors
    /// Loader that cannot be run, or is none of glibc's.
    pub fn of_loader(loader: &Path, tunables: &str) -> io::Result<Libc> {
        let asked = |option: &str| {
            let mut command = Command::new(loader);
            let output = command.arg(option).env("GLIBC_TUNABLES", tunables).output()?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        // `ld.so (Debian GLIBC 2.41-12) stable release version 2.41.`
        let first = asked("--version")?;
        let version = first.lines().next().unwrap_or_default().rsplit("version ").next();
        let version = version.unwrap_or_default().trim_end_matches('.').to_owned();
        let libc = Libc { name: "glibc".to_owned(), version, tunables: BTreeMap::new() };
        if libc.release().is_none() {
            return Err(io::Error::other(
                "expected glibc's dynamic linker, found a file that names no version",
            ));
        }
        Ok(Libc { tunables: tunables_of(&asked("--list-tunables")?), ..libc })
    }

    /// The dynamic linker of this process; `None` in a static program, and with another C library.
    pub fn loader() -> Option<PathBuf> {
        #[cfg(target_env = "gnu")]
        return loader_path().map(PathBuf::from);
        #[cfg(not(target_env = "gnu"))]
        None
    }

    /// The numbers of glibc's release; `None` for other libraries.
    pub fn release(&self) -> Option<(u32, u32)> {
        let mut numbers = self.version.split('.').map(str::parse::<u32>);
        let release = numbers.next()?.ok().zip(numbers.next()?.ok());
        release.filter(|_| self.name == "glibc")
    }
}

fn libc_here() -> Libc {
    let mut here = Libc { name: "unknown".to_owned(), ..Libc::default() };
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it takes nothing.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: glibc documents that this is a static, NUL-terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(version) };
        here.name = "glibc".to_owned();
        here.version = version.to_string_lossy().into_owned();
        let list = |loader| Command::new(loader).arg("--list-tunables").output();
        if let Some(Ok(output)) = loader_path().map(list) {
            here.tunables = tunables_of(&String::from_utf8_lossy(&output.stdout));
        }
    }
    #[cfg(target_env = "musl")]
    {
        here.name = "musl".to_owned();
    }
    here
}

/// The dynamic loader mapped into this process; `None` in a static program.
#[cfg(target_env = "gnu")]
fn loader_path() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let path = paths.find(|path| {
        let file = path.rsplit('/').next().unwrap_or_default();
        ["ld-linux", "ld64.so", "ld-2."].iter().any(|start| file.starts_with(start))
    })?;
    Some(path.to_owned())
}

#[cfg(target_arch = "x86_64")]
fn ask_cpuid() -> CpuidFacts {
    use core::arch::x86_64::__cpuid;
    let cachewise::cpu::Cpu { signature, name } = cachewise::cpu::Cpu::detect();
    let brand = name.as_str().trim();
    let hypervisor = || {
        let leaf = __cpuid(0x4000_0000);
        let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
        String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned()
    };
    CpuidFacts {
        vendor: signature.vendor.as_str().to_owned(),
        brand: if brand.is_empty() { "unnamed x86-64" } else { brand }.to_owned(),
        family: signature.family,
        model: signature.model,
        stepping: signature.stepping,
        hypervisor: (__cpuid(1).ecx >> 31 == 1).then(hypervisor),
        caches: caches::from_cpuid(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted;

    #[test]
    fn an_arm_guest_without_cache_files() {
        let root = planted(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
                 CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\n",
            ),
            ("proc/meminfo", "MemTotal:        8000000 kB\n"),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/hypervisor/type", "kvm\n"),
        ]);
        let machine = Machine::from_sources(root.path(), None);
        if cfg!(target_arch = "powerpc64") {
            assert!(machine.emulated.is_some(), "a POWER program on an Arm host");
            return;
        }
        assert_eq!((machine.cpu.vendor.as_str(), machine.cpu.model), ("0x41", 0xd0c));
        assert_eq!((machine.logical_cpus, machine.memory_bytes), (2, 8_192_000_000));
        assert_eq!(machine.hypervisor.as_deref(), Some("kvm"));
        assert_eq!(machine.caches.llc.source, "assumed");
        assert_eq!(machine.thp, None);
    }

    #[test]
    fn a_power_host() {
        let root = planted(&[(
            "proc/cpuinfo",
            "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n\
             revision\t: 2.2 (pvr 004e 1202)\n",
        )]);
        let machine = Machine::from_sources(root.path(), None);
        if cfg!(target_arch = "aarch64") {
            assert!(machine.emulated.is_some(), "an Arm program on a POWER host");
            return;
        }
        assert_eq!(machine.cpu.vendor, "IBM");
        assert_eq!((machine.cpu.family, machine.cpu.model, machine.cpu.stepping), (0x4E, 1, 0x202));
        assert!(machine.cpu.model_name.starts_with("POWER9"));
    }

    #[test]
    fn emulation_shows() {
        let root = planted(&[]);
        let tcg = CpuidFacts { hypervisor: Some("TCGTCGTCGTCG".into()), ..CpuidFacts::default() };
        let machine = Machine::from_sources(root.path(), Some(&tcg));
        assert_eq!(machine.emulated.as_deref(), Some("QEMU TCG"));
        let line = machine.summary_line();
        assert!(line.contains("emulated by QEMU TCG"), "{line}");
        assert!(line.contains("(1 CPU; ") && line.contains("; unknown memory; "), "{line}");
        let bare = CpuidFacts { brand: "A CPU".into(), ..CpuidFacts::default() };
        assert_eq!(Machine::from_sources(root.path(), Some(&bare)).emulated, None);
    }

    #[test]
    fn tunables_are_parsed() {
        let rows = tunables_of(
            "glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)\n\
             glibc.cpu.x86_rep_movsb_threshold: 0x840 (min: 0x100, max: 0xff)\n\
             glibc.cpu.x86_ibt:\n",
        );
        assert_eq!(rows.len(), 1);
        assert_eq!(rows["x86_rep_movsb_threshold"], "0x840");
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::describe();
        assert!(machine.logical_cpus >= 1 && machine.page_size >= 4096);
        assert!(machine.caches.l1d.bytes < machine.caches.l2.bytes);
        assert!(machine.caches.l2.bytes <= machine.caches.llc.bytes);
        let text = serde_json::to_string(&machine).expect("JSON");
        let again: Machine = serde_json::from_str(&text).expect("the same");
        assert_eq!(again, machine);
        assert_eq!(machine.summary_line().lines().count(), 1);
    }
}
