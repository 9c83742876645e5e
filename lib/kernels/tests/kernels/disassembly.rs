//! The machine code of the Arm and POWER kernels, as the binutils disassemble this very executable:
//! that a kernel contains the instructions it is named after and none its row does not admit, that
//! integer kernels touch no vector register, and that nothing outside the crate is called.
//!
//! Without a disassembler for this architecture the tests are skipped, and say so. The text in `docs/golden/`
//! is of the POWER8 pre-check path (seed 004.5): `CACHEWISE_BLESS=1` rewrites it.

use crate::runner::{is_asked_for, say};
use cachewise_kernels::{Kernel, Prefetch, RegisterClass, StoreKind, TABLE};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Names of binutils' disassembler, natively and as a cross tool on an emulating host.
const DISASSEMBLERS: &[&str] = if cfg!(target_arch = "aarch64") {
    &["aarch64-linux-gnu-objdump", "objdump"]
} else {
    &["powerpc64le-linux-gnu-objdump", "objdump"]
};

/// Part of the names of the crate's functions, whichever way they are mangled.
const CRATE: &str = "cachewise_kernels";

/// One instruction: mnemonic, and operands with spaces taken out.
#[derive(Clone, Debug)]
struct Code {
    mnemonic: String,
    operands: String,
}

struct Symbol {
    name: String,
    code: Vec<Code>,
}

/// The executable's functions by address.
struct Image {
    symbols: BTreeMap<u64, Symbol>,
    bias: u64,
}

impl Image {
    /// `None` where no disassembler knows this architecture.
    fn of_this_process() -> Option<Image> {
        /// Around the table's functions, for those that they call.
        const MARGIN: u64 = 128 << 10;
        let path = std::env::current_exe().expect("the path of this executable");
        let bytes = std::fs::read(&path).expect("this executable is readable");
        let entry = bytes.get(24..32).and_then(|entry| entry.try_into().ok());
        let entry = u64::from_le_bytes(entry.expect("an ELF header"));
        // SAFETY: getauxval reads a table that the system passed to the process, and takes any key.
        let loaded = unsafe { libc::getauxval(libc::AT_ENTRY) };
        let bias = loaded.wrapping_sub(entry);
        let places =
            TABLE.iter().map(|kernel| (kernel.function.address().addr() as u64).wrapping_sub(bias));
        let first = places.clone().min().unwrap_or(0).saturating_sub(MARGIN);
        let last = places.max().unwrap_or(0) + MARGIN;
        let around = [format!("--start-address={first}"), format!("--stop-address={last}")];
        let found =
            DISASSEMBLERS.iter().find_map(|tool| Some((tool, disassembled(tool, &around, &path)?)));
        let Some((tool, text)) = found else {
            say(&format!("disassembly: SKIPPED, none of {} runs here", DISASSEMBLERS.join(", ")));
            return None;
        };
        let mut symbols = BTreeMap::new();
        read(&text, &mut symbols);
        // Functions called seldom lie elsewhere; those that they call in turn do so too.
        for _ in 0..3 {
            for name in absent(&symbols) {
                let one = [format!("--disassemble={name}")];
                read(&disassembled(tool, &one, &path).unwrap_or_default(), &mut symbols);
            }
        }
        Some(Image { symbols, bias })
    }

    /// A kernel's instructions, with those of the crate's own functions that it calls or jumps to.
    fn routine(&self, kernel: &Kernel) -> Result<Vec<&Code>, String> {
        let start = (kernel.function.address().addr() as u64).wrapping_sub(self.bias);
        let (mut seen, mut left, mut found) = (BTreeSet::new(), vec![start], Vec::new());
        while let Some(at) = left.pop() {
            if !seen.insert(at) {
                continue;
            }
            let symbol = self.symbols.get(&at).ok_or_else(|| format!("no function at {at:#x}"))?;
            for code in &symbol.code {
                found.push(code);
                let Some(name) = callee(code).filter(|name| *name != symbol.name) else { continue };
                if !name.contains(CRATE) {
                    return Err(format!("{} {}", code.mnemonic, code.operands));
                }
                // A call of a function by its local entry point is 8 bytes into it.
                let callee = self.symbols.iter().find(|(_, symbol)| symbol.name == name);
                left.push(*callee.ok_or_else(|| format!("no function {name}"))?.0);
            }
        }
        Ok(found)
    }
}

/// A disassembler's text of the executable; `None` where it does not know the architecture.
fn disassembled(tool: &str, which: &[String], path: &Path) -> Option<String> {
    let output = Command::new(tool)
        .args(["-d", "--no-show-raw-insn"])
        .args(which)
        .arg(path)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Adds the functions that objdump's `text` lists.
fn read(text: &str, symbols: &mut BTreeMap<u64, Symbol>) {
    let mut current = None;
    for line in text.lines() {
        if let Some((address, name)) =
            line.strip_suffix(">:").and_then(|head| head.split_once(" <"))
        {
            let address = u64::from_str_radix(address, 16).expect("objdump's address");
            current = Some(address);
            symbols.insert(address, Symbol { name: name.to_owned(), code: Vec::new() });
        } else if let Some((_, code)) = line.split_once(":\t")
            && let Some(symbol) = current.and_then(|at| symbols.get_mut(&at))
        {
            let (mnemonic, operands) = code.trim().split_once(['\t', ' ']).unwrap_or((code, ""));
            let operands = operands.split("//").next().unwrap_or_default();
            symbol.code.push(Code {
                mnemonic: mnemonic.trim().to_owned(),
                operands: operands.split_whitespace().collect(),
            });
        }
    }
}

/// The crate's functions that the crate's functions call and that were not read yet.
fn absent(symbols: &BTreeMap<u64, Symbol>) -> BTreeSet<String> {
    let ours = |name: &str| name.contains(CRATE);
    let mut called = BTreeSet::new();
    for symbol in symbols.values().filter(|symbol| ours(&symbol.name)) {
        called.extend(symbol.code.iter().filter_map(callee).filter(|name| ours(name)));
    }
    for symbol in symbols.values() {
        called.remove(symbol.name.as_str());
    }
    called.into_iter().map(str::to_owned).collect()
}

/// The function that a branch leads to, as far as objdump names one.
fn callee(code: &Code) -> Option<&str> {
    let (_, target) = code.operands.split_once('<')?;
    let name = target.trim_end_matches('>').split('+').next()?;
    is_branch(code).then_some(name)
}

fn is_branch(code: &Code) -> bool {
    code.mnemonic.starts_with('b')
        || matches!(code.mnemonic.as_str(), "cbz" | "cbnz" | "tbz" | "tbnz")
}

/// Returns whether it names a register of that class.
fn uses(code: &Code, class: RegisterClass) -> bool {
    let named = |letter: char| {
        let mut operands = code.operands.split([',', '[', ']', '{', '}', '-']);
        operands.any(|operand| {
            let number = operand.strip_prefix(letter).map(|rest| rest.split(['.', '/']).next());
            number.flatten().is_some_and(|number| number.parse::<u8>().is_ok())
        })
    };
    match class {
        RegisterClass::Q => named('q') || named('v') || named('d') || named('s'),
        // Not `v`, which only its instructions' names say: operands are `v0` in both notations.
        RegisterClass::Vmx => {
            matches!(code.mnemonic.as_str(), "lvx" | "stvx" | "lvsr" | "vperm")
                || code.mnemonic.starts_with("vcmp")
        }
        RegisterClass::Vsx => code.mnemonic.starts_with("lxv") || code.mnemonic.starts_with("stxv"),
        _ => false,
    }
}

fn check(kernel: &Kernel, routine: &[&Code], complain: &mut dyn FnMut(String)) {
    let any = |what: &dyn Fn(&Code) -> bool| routine.iter().any(|code| what(code));
    let mut claim = |claimed: bool, what: &str, found: bool| {
        if claimed != found {
            complain(format!("{} {what}", if claimed { "lacks" } else { "contains" }));
        }
    };
    let is = |mnemonics: &'static [&'static str]| {
        move |code: &Code| mnemonics.contains(&code.mnemonic.as_str())
    };
    let block_zero = any(&|code: &Code| {
        code.mnemonic == "dcbz" || (code.mnemonic == "dc" && code.operands.starts_with("zva"))
    });
    claim(kernel.store == StoreKind::BlockZero, "dcbz or dc zva", block_zero);
    claim(kernel.store == StoreKind::NonTemporal, "stnp", any(&is(&["stnp"])));
    let touches = |mnemonic: &'static str, kind: &'static str| {
        any(&|code: &Code| code.mnemonic == mnemonic && code.operands.starts_with(kind))
    };
    // The same instructions by their longer names (a touch of type 0).
    let load = any(&is(&["dcbt", "dcbtct"])) || touches("prfm", "pldl1keep");
    let store = any(&is(&["dcbtst", "dcbtstct"])) || touches("prfm", "pstl1keep");
    claim(matches!(kernel.prefetch, Prefetch::Load(_)), "a touch of the source", load);
    claim(matches!(kernel.prefetch, Prefetch::Store(_)), "a touch of the destination", store);
    claim(
        matches!(kernel.prefetch, Prefetch::Stream(_)),
        "a streaming touch",
        touches("prfm", "pldl1strm"),
    );
    // Both vector families of POWER share registers and integer-free helpers, so that a VSX kernel
    // has VMX instructions too, but never the other way round.
    let has = |class| any(&|code: &Code| uses(code, class));
    let class = kernel.registers;
    let vectors = [RegisterClass::Q, RegisterClass::Vmx, RegisterClass::Vsx];
    for vector in vectors {
        if vector == class {
            claim(true, vector.name(), has(vector));
        } else if class == RegisterClass::Gpr
            || (class == RegisterClass::Vmx && vector == RegisterClass::Vsx)
        {
            claim(false, vector.name(), has(vector));
        }
    }
}

#[test]
fn instructions_are_those_the_table_claims() {
    let Some(image) = Image::of_this_process() else { return };
    let mut complaints = Vec::new();
    let (mut kernels, mut instructions) = (0, 0);
    for kernel in TABLE.iter().filter(|kernel| is_asked_for(kernel)) {
        match image.routine(kernel) {
            Err(what) => complaints.push(format!("{}: {what}", kernel.name)),
            Ok(routine) => {
                kernels += 1;
                instructions += routine.len();
                let mut complain = |what| complaints.push(format!("{}: {what}", kernel.name));
                check(kernel, &routine, &mut complain);
            }
        }
    }
    say(&format!("machine code: {kernels} kernels, {instructions} instructions read"));
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// The path that a comparison takes whose first 64 bytes differ: the kernel's beginning, its loop,
/// and what follows the loop up to the branch to the verdict. Branch targets are left out, since
/// they move with every other kernel.
#[cfg(target_arch = "powerpc64")]
#[test]
fn the_precheck_of_power8_is_as_printed() {
    let golden =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/golden/compare.vmx.pre64.powerpc64le.s");
    let Some(image) = Image::of_this_process() else { return };
    let kernel = cachewise_kernels::find("compare.vmx.pre64").expect("a row");
    let routine = image.routine(kernel).expect("its instructions");
    let begin = routine.iter().position(|code| code.mnemonic == "bdnz").expect("a loop") + 1;
    let verdict = routine[begin..].iter().position(|code| is_branch(code)).expect("a verdict");
    let mut text = String::new();
    for code in &routine[..=begin + verdict] {
        let operands = if is_branch(code) {
            let mut parts: Vec<&str> = code.operands.split(',').collect();
            parts.pop();
            parts.push("...");
            parts.join(",")
        } else {
            code.operands.clone()
        };
        text.push_str(format!("{:<8}{operands}", code.mnemonic).trim_end());
        text.push('\n');
    }
    if std::env::var_os("CACHEWISE_BLESS").is_some() {
        std::fs::write(golden, &text).expect("docs/golden is writable");
    }
    let blessed = std::fs::read_to_string(golden).unwrap_or_default();
    assert_eq!(
        text, blessed,
        "the machine code is not that of docs/golden; CACHEWISE_BLESS=1 accepts it"
    );
}
