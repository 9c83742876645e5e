//! The hot path as machine code: no call at all, so none of a library function that a preload
//! library would answer with this very code; no stack; it ends in returns and indirect jumps.
//!
//! For an optimised build without debug assertions (`cargo test --release -p cachewise`): assertions
//! call the functions that report their failure.
#![cfg(target_arch = "x86_64")]

use cachewise::raw;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use std::collections::BTreeSet;

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
                assert!(distance < 4096, "a jump to another function: {text}");
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
    println!("{name}: {} instructions", code.len());
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
