//! The entries as machine code: no call at all, so none of a library function that a preload
//! library would answer with this very code; no stack; each ends in returns, indirect jumps, and
//! jumps to another operation's entry. And what small sizes run is the code in `docs/golden/`, so
//! that nobody changes what every call runs without seeing it: `CACHEWISE_BLESS=1` writes the files
//! anew, for a commit that says why.
//!
//! For an optimised build without debug assertions (`cargo test --release -p cachewise`):
//! assertions call the functions that report their failure.
#![cfg(target_arch = "x86_64")]

use cachewise::{entry, raw};
use cachewise_kernels::Operation;
use iced_x86::{
    Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, Mnemonic, Register,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// What fills the table, by its address.
fn boots() -> [u64; 6] {
    use cachewise::entry::boots::{COMPARE, COPY, EQUAL, FILL, MOVE, ZERO};
    [
        COPY as *const () as u64,
        MOVE as *const () as u64,
        FILL as *const () as u64,
        ZERO as *const () as u64,
        COMPARE as *const () as u64,
        EQUAL as *const () as u64,
    ]
}

/// Every instruction that can be reached from an entry without leaving through it, and through no
/// jump to one of the `others`.
fn reachable(from: u64, others: &[u64]) -> Vec<Instruction> {
    let (mut todo, mut seen, mut found) = (vec![from], BTreeSet::new(), Vec::new());
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
                // What fills the table runs once, and calls.
                FlowControl::ConditionalBranch
                    if boots().contains(&instruction.near_branch_target())
                        || others.contains(&instruction.near_branch_target()) => {}
                FlowControl::ConditionalBranch => todo.push(instruction.near_branch_target()),
                FlowControl::UnconditionalBranch => {
                    let target = instruction.near_branch_target();
                    if !others.contains(&target) {
                        todo.push(target);
                    }
                    break;
                }
                _ => break,
            }
        }
    }
    found
}

/// Reads an entry; what its small sizes run.
fn check(name: &str, entry: *const u8, others: &[u64]) -> String {
    let code = reachable(entry as u64, others);
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
            FlowControl::Return => returns += 1,
            other => panic!("{other:?}: {text}"),
        }
        assert_ne!(instruction.memory_base(), Register::RSP, "the stack: {text}");
    }
    assert!(jumps > 0 && returns > 0, "{name}: {jumps} indirect jumps, {returns} returns");
    // The first branch upwards is that of larger sizes, whose code follows that of the small ones.
    let mut in_order: Vec<Instruction> = code;
    in_order.sort_by_key(Instruction::ip);
    let upwards = |one: &&Instruction| matches!(one.mnemonic(), Mnemonic::Ja | Mnemonic::Jae);
    let larger = in_order.iter().find(upwards);
    let larger = larger.expect("sizes are told apart").near_branch_target();
    let mut in_order = reachable(entry as u64, &[others, &[larger]].concat());
    in_order.sort_by_key(Instruction::ip);
    in_order.retain(|one| one.ip() >= entry as u64 && one.ip() < larger);
    listing(&in_order)
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
            let mnemonic = one.split(' ').next().unwrap_or_default().to_owned();
            let target = instruction.near_branch_target();
            one = match label(target).filter(|_| code.contains_key(&target)) {
                Some(label) => format!("{mnemonic} {label}"),
                None => format!("{mnemonic} elsewhere"),
            };
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

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/golden/{name}.s"));
    if std::env::var_os("CACHEWISE_BLESS").is_some() {
        std::fs::write(&path, found).expect("docs/golden is writable");
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

/// From Skylake to Cascade Lake a jump that lies across a multiple of 32 bytes or ends there, or is fused with
/// a test that does, is decoded anew each time (Intel, Mitigations for Jump Conditional Code Erratum, 2019). None
/// of those that small calls make does, in the exported function or in `avx2`, which it jumps to.
fn no_jump_across_32_bytes(code: &[Instruction], entry: u64) {
    let small = code.iter().take_while(|one| one.flow_control() != FlowControl::Return);
    let with_return = small.clone().count() + 1;
    let mut before = None;
    for one in &code[..with_return] {
        let fused = |test: &&Instruction| {
            let is_test = matches!(test.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
            is_test && !test.is_ip_rel_memory_operand() && one.is_jcc_short_or_near()
        };
        let start = before.filter(fused).map_or(one.ip(), Instruction::ip) - entry;
        let end = one.next_ip() - entry;
        let jumps = one.flow_control() != FlowControl::Next;
        assert!(!jumps || start / 32 == end / 32, "{one:?} at {start:#x} to {end:#x}");
        before = Some(one);
    }
}

/// The entries of all other operations: to one of these an operation leaves what is not its own.
fn beside(operation: Operation) -> Vec<u64> {
    use Operation::{Compare, Copy, Equal, Fill, Move, Zero};
    let others = [Copy, Move, Fill, Zero, Compare, Equal].into_iter().filter(|of| *of != operation);
    others.flat_map(entry::variants).map(|entry| entry.function.address() as u64).collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "debug assertions add calls; run with --release")]
fn every_entry_calls_nothing_and_small_sizes_run_what_was_agreed_on() {
    let exported: [(*const (), Operation); 6] = [
        (raw::copy_nonoverlapping as *const (), Operation::Copy),
        (raw::copy as *const (), Operation::Move),
        (raw::fill as *const (), Operation::Fill),
        (raw::zero as *const (), Operation::Zero),
        (raw::compare as *const (), Operation::Compare),
        (raw::equal_int as *const (), Operation::Equal),
    ];
    for (function, operation) in exported {
        let mut others = beside(operation);
        others.extend(exported.map(|(function, _)| function as u64));
        let mut text = String::new();
        for way in entry::variants(operation) {
            let name = format!("{operation} {}", way.name);
            let code = check(&name, way.function.address(), &others);
            let _ = write!(text, "{}:\n{code}", way.name);
            if way.name == "avx2" {
                let entry = way.function.address();
                no_jump_across_32_bytes(&reachable(entry as u64, &others), entry as u64);
            }
            assert!(!code.contains("ymm") || !way.name.contains("512") || !code.contains("vzero"));
        }
        golden(operation.name(), &text);
        // The exported function: which entry, and what small sizes of `avx512vl` run.
        let code = reachable(function as u64, &others);
        let choice = [Mnemonic::Cmp, Mnemonic::Jne, Mnemonic::Mov, Mnemonic::Cmp, Mnemonic::Jae];
        assert!(code.iter().take(5).map(Instruction::mnemonic).eq(choice), "{operation}");
        no_jump_across_32_bytes(&code, function as u64);
        let small = code.iter().find(|one| one.flow_control() == FlowControl::Return);
        let bytes = small.expect("small sizes return").next_ip() - function as u64;
        // What masks do for a copy has a line of its own.
        let copies = matches!(operation, Operation::Copy | Operation::Move);
        assert!(copies || bytes <= 64, "{operation}: {bytes} bytes, more than a line");
    }
}
