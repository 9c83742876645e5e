//! The file: what it asks of others, what it offers, and that no call leads back to itself.

use crate::support::{library, statistics_library};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use std::collections::{BTreeMap, BTreeSet};

const EXPORTED: [&str; 15] = [
    "__explicit_bzero_chk",
    "__memcpy_chk",
    "__memmove_chk",
    "__mempcpy_chk",
    "__memset_chk",
    "__memset_explicit_chk",
    "bcmp",
    "bzero",
    "explicit_bzero",
    "memcmp",
    "memcpy",
    "memmove",
    "mempcpy",
    "memset",
    "memset_explicit",
];

/// Functions of libc that it may call: nothing that allocates, takes a lock on the way of a call, or copies.
const IMPORTED: [&str; 9] = [
    "__errno_location",
    "abort",
    "environ",
    "getauxval",
    "getenv",
    "mmap",
    "munmap",
    "strlen",
    "syscall",
];

/// Functions that the counting library may call beside those, at the start and at the end.
const STATISTICS: [&str; 1] = ["madvise"];

/// Symbols that the counting library exports beside the operations: it counts blocks, passes them on, and reports.
const COUNTED: [&str; 6] = ["_Exit", "_exit", "calloc", "cw_copied_bytes", "malloc", "realloc"];

fn bytes() -> Vec<u8> {
    std::fs::read(library()).expect("the library is read")
}

/// Programs with a C library of their own are started by programs that have another one.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn it_runs_on_glibc_2_28_and_later() {
    for library in [library(), statistics_library()] {
        let mut nm = std::process::Command::new("nm");
        let told = nm.args(["-D", "--undefined-only"]).arg(library).output().expect("nm runs");
        let told = String::from_utf8(told.stdout).expect("UTF-8");
        let versions =
            told.lines().filter_map(|line| line.split_once("@GLIBC_")?.1.split(' ').next());
        let number = |version: &str| -> Vec<u32> {
            version.split('.').map(|part| part.parse().expect("a number")).collect()
        };
        let versions: Vec<_> = versions.map(number).collect();
        assert!(told.contains(" U mmap"), "{told}");
        assert!(versions.iter().all(|version| version[..] <= [2, 28][..]), "{told}");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn it_needs_libc_alone_and_offers_what_it_says() {
    // It names no library, so that a program of another C library can load it.
    needs_and_offers(library(), &IMPORTED, &EXPORTED);
    let offers = [&EXPORTED[..], &COUNTED].concat();
    needs_and_offers(statistics_library(), &[&IMPORTED[..], &STATISTICS].concat(), &offers);
}

fn needs_and_offers(library: &std::path::Path, may_import: &[&str], exports: &[&str]) {
    let bytes = std::fs::read(library).expect("the library is read");
    let file = object::File::parse(&*bytes).expect("an object file");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut exported, mut imported) = (BTreeSet::new(), BTreeSet::new());
    for symbol in file.dynamic_symbols() {
        let name = text(symbol.name_bytes().expect("a name"));
        if symbol.is_undefined() && !symbol.is_weak() {
            imported.insert(name);
        } else if symbol.is_definition() {
            exported.insert(name);
        }
    }
    assert_eq!(exported, exports.iter().map(|&name| name.to_owned()).collect());
    let foreign: Vec<_> =
        imported.iter().filter(|name| !may_import.contains(&name.as_str())).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(imported.is_disjoint(&exported), "undefined, and defined here");
    let dynamic = file.section_by_name(".dynamic").expect("it is").data().expect("its bytes");
    // Tag 1, `DT_NEEDED`.
    let needed = dynamic.chunks_exact(16).filter(|entry| entry[..8] == 1_u64.to_le_bytes());
    assert_eq!(needed.count(), 0);
    // Static TLS is what `LD_AUDIT` and `dlopen` run out of.
    let local = file.sections().filter(|section| {
        matches!(section.kind(), object::SectionKind::Tls | object::SectionKind::UninitializedTls)
    });
    assert_eq!(local.map(|section| section.size()).sum::<u64>(), 0, "thread-local storage");
}

/// The functions by address, with their code.
struct Code<'a> {
    text: &'a [u8],
    start: u64,
    functions: BTreeMap<u64, (u64, String)>,
    plt: Vec<std::ops::Range<u64>>,
}

impl<'a> Code<'a> {
    fn of(file: &object::File<'a>) -> Code<'a> {
        let section = file.section_by_name(".text").expect(".text");
        let functions = file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text);
        let functions = functions.filter(|symbol| symbol.is_definition()).map(|symbol| {
            let name = String::from_utf8_lossy(symbol.name_bytes().expect("a name")).into_owned();
            (symbol.address(), (symbol.size(), name))
        });
        let plt = file
            .sections()
            .filter(|section| section.name_bytes().is_ok_and(|name| name.starts_with(b".plt")));
        Code {
            text: section.data().expect("its bytes"),
            start: section.address(),
            functions: functions.collect(),
            plt: plt.map(|section| section.address()..section.address() + section.size()).collect(),
        }
    }

    fn function_at(&self, address: u64) -> Option<(u64, &str)> {
        let (start, (size, name)) = self.functions.range(..=address).next_back()?;
        (address < start + (*size).max(1)).then_some((*start, name))
    }

    /// The instructions of a function, by its symbol's size.
    fn instructions(&self, function: u64) -> Vec<Instruction> {
        let (size, name) = &self.functions[&function];
        assert!(*size > 0, "{name} has no size");
        let from = (function - self.start) as usize;
        let code = &self.text[from..from + *size as usize];
        Decoder::with_ip(64, code, function, DecoderOptions::NONE).into_iter().collect()
    }

    /// Addresses where a function can go on: calls, jumps out of it, and addresses it takes of functions.
    fn leads_to(&self, function: u64) -> BTreeSet<u64> {
        let mut targets = BTreeSet::new();
        for instruction in self.instructions(function) {
            let target = match instruction.flow_control() {
                FlowControl::Call
                | FlowControl::UnconditionalBranch
                | FlowControl::ConditionalBranch => instruction.near_branch_target(),
                _ if instruction.is_ip_rel_memory_operand()
                    && (0..instruction.op_count())
                        .any(|operand| instruction.op_kind(operand) == OpKind::Memory) =>
                {
                    instruction.ip_rel_memory_address()
                }
                _ => continue,
            };
            if self.plt.iter().any(|range| range.contains(&target)) {
                targets.insert(target);
            } else if let Some((start, _)) = self.function_at(target)
                && start != function
            {
                targets.insert(start);
            }
        }
        targets
    }
}

/// Follows every way out of each exported function. Up to the first-call initialisation, which is
/// counted as an end here, none may lead to an exported function or into the procedure linkage
/// table, through which the dynamic linker would lead back to one.
///
/// What the tables of kernels hold is not a way out that code shows; kernels are checked as such:
/// no function of the kernels' crate leads to an exported one either.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn no_exported_function_leads_back_to_itself() {
    let bytes = bytes();
    let file = object::File::parse(&*bytes).expect("an object file");
    let code = Code::of(&file);
    let named = |name: &str| {
        let mut all = code.functions.iter().filter(|(_, (_, known))| known == name);
        *all.next().unwrap_or_else(|| panic!("{name} is not there")).0
    };
    let exported: BTreeSet<u64> = EXPORTED.iter().map(|name| named(name)).collect();
    // Runs once, and may copy: a baseline kernel serves it. And what ends the program.
    let is_end = |name: &str| {
        ["6source4init", "8overflow", "9panicking", "8panicked"]
            .iter()
            .any(|end| name.contains(end))
    };
    let is_kernel = |name: &str| name.contains("cachewise_kernels4arch");

    let mut todo: Vec<u64> = exported.iter().copied().collect();
    todo.extend(code.functions.iter().filter(|(_, (_, name))| is_kernel(name)).map(|(at, _)| *at));
    let kernels = todo.len() - exported.len();
    assert!(kernels > 50, "only {kernels} functions of kernels were found");
    let mut seen = BTreeSet::new();
    while let Some(function) = todo.pop() {
        if !seen.insert(function) {
            continue;
        }
        let name = &code.functions[&function].1;
        for target in code.leads_to(function) {
            assert!(
                !code.plt.iter().any(|range| range.contains(&target)),
                "{name} calls through the procedure linkage table"
            );
            let (start, target_name) = code.function_at(target).expect("a function");
            // After the room is checked, a function is the other, by a jump that nothing can
            // redirect.
            let checked = *name == format!("__{target_name}_chk");
            assert!(checked || !exported.contains(&start), "{name} leads to {target_name}");
            if !is_end(target_name) {
                todo.push(start);
            }
        }
    }
    assert!(seen.len() > kernels + exported.len(), "nothing was followed");
}

/// Each exported function is the operation itself, from the comparison of the size on, or from the one with the entry's number
/// that comes before it in fills and comparisons. Where the room is checked, that comes first and a jump to the operation second; `mempcpy` tests the size
/// first of all.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn an_exported_function_begins_with_the_comparison_of_its_size() {
    let bytes = bytes();
    let file = object::File::parse(&*bytes).expect("an object file");
    let code = Code::of(&file);
    let is_size = |one: &Instruction| {
        one.mnemonic() == Mnemonic::Cmp
            && matches!(one.op0_register(), Register::RDX | Register::RSI)
    };
    let mut seen = 0;
    for (address, (_, name)) in &code.functions {
        if !EXPORTED.contains(&name.as_str()) {
            continue;
        }
        seen += 1;
        let all = code.instructions(*address);
        if name.ends_with("_chk") {
            let (compared, branch, jump) = (&all[0], &all[1], &all[2]);
            assert_eq!(compared.mnemonic(), Mnemonic::Cmp, "{name}: the room");
            assert_eq!(branch.mnemonic(), Mnemonic::Jb, "{name}: the room");
            let target = code.function_at(jump.near_branch_target()).map(|(_, name)| name);
            assert_eq!(target.map(|target| format!("__{target}_chk")).as_ref(), Some(name));
        } else if name == "mempcpy" {
            assert!(
                is_size(&all[1]) && matches!(all[1].try_immediate(1), Ok(64)),
                "{name}: {}",
                all[1]
            );
        } else {
            let copies = matches!(name.as_str(), "memcpy" | "memmove");
            assert_eq!(all[0].is_ip_rel_memory_operand(), !copies, "{name}: {}", all[0]);
            let first = if copies { 0 } else { 2 };
            if !copies {
                assert_eq!(all[0].mnemonic(), Mnemonic::Cmp, "{name}: the entry's number");
                assert_eq!(all[1].mnemonic(), Mnemonic::Ja, "{name}: the entry's number");
            }
            let size = first + usize::from(all[first].mnemonic() == Mnemonic::Mov);
            assert!(is_size(&all[size]), "{name}: {}", all[size]);
            assert_eq!(all[size + 1].mnemonic(), Mnemonic::Ja, "{name}");
        }
    }
    assert_eq!(seen, EXPORTED.len());
}
