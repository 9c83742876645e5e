//! The hot path as machine code: no call at all, so none of a library function that a preload
//! library would answer with this very code; no stack; it ends in returns and indirect jumps. And
//! it is the code in `docs/golden/`, so that nobody changes what every call runs without seeing it:
//! `CACHEWISE_BLESS=1` writes the files anew, for a commit that says why.
//!
//! For an optimised build without debug assertions (`cargo test --release -p cachewise`): assertions
//! call the functions that report their failure.
#![cfg(target_arch = "x86_64")]

use cachewise::raw;
use iced_x86::{Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, Register};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Every instruction that can be reached from an entry without leaving through it.
fn reachable(entry: u64) -> Vec<Instruction> {
    let (mut todo, mut seen, mut found) = (vec![entry], BTreeSet::new(), Vec::new());
    while let Some(start) = todo.pop() {
        // SAFETY: the code of a function of this program; a page beyond it is mapped or not read,
        // since the decoder is asked one instruction at a time and stops at the first jump away.
        let code = unsafe { std::slice::from_raw_parts(start as *const u8, 4096) };
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        loop {
            let instruction = decoder.decode();
            if !seen.insert(instruction.ip()) {
                break;
            }
            assert!(!instruction.is_invalid(), "at {:x}", instruction.ip());
            assert!(seen.len() < 2000, "no end in sight: a jump to another function?");
            found.push(instruction);
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::ConditionalBranch => todo.push(instruction.near_branch_target()),
                FlowControl::UnconditionalBranch => {
                    todo.push(instruction.near_branch_target());
                    break;
                }
                _ => break,
            }
        }
    }
    found
}

fn check(name: &str, entry: *const (), may_call_kernel: bool) {
    let code = reachable(entry as u64);
    let (mut jumps, mut returns) = (0, 0);
    for instruction in &code {
        let text = format!("{name}: {instruction:?}");
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => {}
            FlowControl::UnconditionalBranch => {
                let distance = instruction.near_branch_target().abs_diff(entry as u64);
                assert!(distance < 1 << 20, "a jump far away: {text}");
            }
            FlowControl::IndirectBranch => jumps += 1,
            FlowControl::IndirectCall if may_call_kernel => jumps += 1,
            FlowControl::Return => returns += 1,
            other => panic!("{other:?}: {text}"),
        }
        if !may_call_kernel {
            assert_ne!(instruction.memory_base(), Register::RSP, "the stack: {text}");
        }
    }
    assert!(jumps > 0 && returns > 0, "{name}: {jumps} indirect jumps, {returns} returns");
    golden(name, &code);
}

/// The instructions in the order of their addresses, with labels for addresses.
fn listing(code: &[Instruction]) -> String {
    let code: BTreeMap<u64, Instruction> = code.iter().map(|found| (found.ip(), *found)).collect();
    let targets: BTreeSet<u64> = code
        .values()
        .filter(|one| one.is_jcc_short_or_near() || one.is_jmp_short_or_near())
        .map(Instruction::near_branch_target)
        .collect();
    let label = |at: u64| targets.iter().position(|target| *target == at).map(|n| n + 1);
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    let (mut text, mut one) = (String::new(), String::new());
    for (at, instruction) in &code {
        if let Some(label) = label(*at) {
            let _ = writeln!(text, "{label}:");
        }
        one.clear();
        formatter.format(instruction, &mut one);
        if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() {
            let mnemonic = one.split(' ').next().unwrap_or_default();
            one = format!("{mnemonic} {}", label(instruction.near_branch_target()).unwrap_or(0));
        } else if instruction.is_ip_rel_memory_operand() {
            // Where the linker put the data is no business of this listing.
            let (open, close) = (one.find('['), one.find(']'));
            if let (Some(open), Some(close)) = (open, close) {
                one.replace_range(open..=close, "[rip+data]");
            }
        }
        let _ = writeln!(text, "    {one}");
    }
    text
}

fn golden(name: &str, code: &[Instruction]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/golden/{name}.s"));
    let found = listing(code);
    if std::env::var_os("CACHEWISE_BLESS").is_some() {
        std::fs::write(&path, &found).expect("docs/golden is writable");
    }
    let blessed = std::fs::read_to_string(&path).unwrap_or_default();
    let line = found.lines().zip(blessed.lines()).position(|(found, blessed)| found != blessed);
    assert!(
        found == blessed,
        "{name}: the machine code is not that of docs/golden/{name}.s from line {} on; \
         CACHEWISE_BLESS=1 accepts it\n{found}",
        line.map_or(0, |line| line + 1)
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "debug assertions add calls; run with --release")]
fn the_hot_path_calls_nothing() {
    check("copy_nonoverlapping", raw::copy_nonoverlapping as *const (), false);
    check("copy", raw::copy as *const (), false);
    check("fill", raw::fill as *const (), false);
    check("zero", raw::zero as *const (), false);
    check("compare", raw::compare as *const (), false);
    check("equal_int", raw::equal_int as *const (), false);
}
