//! The entries as machine code: no call at all, so none of a library function that a preload
//! library would answer with this very code; no stack; each ends in returns, indirect jumps, and
//! jumps to another operation's entry.
//!
//! For an optimised build without debug assertions (`cargo test --release -p cachewise`):
//! assertions call the functions that report their failure.
#![cfg(target_arch = "x86_64")]

mod costs;
mod steps;

use cachewise::{entry, raw};
use cachewise_kernels::Operation;
use iced_x86::{
    Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};
use std::collections::{BTreeMap, BTreeSet};

/// Addresses of the functions that fill the table.
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
                // The functions that fill the table run once, and call.
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

/// Reads an entry: what of it may run.
#[cfg(not(debug_assertions))]
fn check(name: &str, entry: *const u8, others: &[u64]) -> Vec<Instruction> {
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
    code
}

/// From Skylake to Cascade Lake a jump that lies across a multiple of 32 bytes or ends there, or is fused with
/// a test that does, is decoded anew each time (Intel, Mitigations for Jump Conditional Code Erratum, 2019). None
/// of these instructions from an entry on is such a jump.
fn no_jump_across_32_bytes(code: &[Instruction], entry: u64) {
    let mut before: Option<&Instruction> = None;
    for one in code {
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

/// Instructions that a call of that size runs up to its return. Of the branches that ask neither for the size nor for the stub
/// none is taken: buffers are equal and do not end at a page's end.
fn run_by(from: u64, n: u64, stub: u8) -> Vec<Instruction> {
    let (mut code, mut at, mut compared): (Vec<Instruction>, _, _) = (Vec::new(), from, None);
    loop {
        let one = decoded(at);
        code.push(one);
        assert!(code.len() < 100, "{n} bytes: no return");
        let taken = match one.flow_control() {
            FlowControl::Return => return code,
            FlowControl::ConditionalBranch => {
                compared.is_some_and(|(what, with): (u64, u64)| match one.mnemonic() {
                    Mnemonic::Ja => what > with,
                    Mnemonic::Jae => what >= with,
                    Mnemonic::Jb => what < with,
                    Mnemonic::Jbe => what <= with,
                    Mnemonic::Jne => what != with,
                    _ => false,
                })
            }
            FlowControl::UnconditionalBranch => true,
            _ => false,
        };
        if one.mnemonic() == Mnemonic::Cmp {
            let is_size =
                matches!(one.op0_register().full_register(), Register::RDX | Register::RSI);
            let is_stub =
                one.ip_rel_memory_address().wrapping_sub((&raw const entry::CHOSEN).addr() as u64)
                    < 6;
            let with = one.try_immediate(1).ok();
            let what = if is_size { Some(n) } else { is_stub.then_some(u64::from(stub)) };
            compared = what.zip(with);
        } else if one.rflags_modified() != 0 {
            compared = None;
        }
        at = if taken { one.near_branch_target() } else { one.next_ip() };
    }
}

/// Compares the table of costs with the code that runs, class by class.
#[test]
#[cfg_attr(target_feature = "avx2", ignore = "no number is asked in this build")]
fn every_class_costs_what_the_table_says() {
    let mut looks = InstructionInfoFactory::new();
    let mut wrong = Vec::new();
    for (function, operation) in exported() {
        for class in costs::CLASSES.iter().filter(|of| of.operations.contains(&operation)) {
            for n in [class.first, class.last] {
                let stub = class.entry.unwrap_or(entry::AVX2);
                let code = run_by(function, n as u64, stub);
                let mut found = costs::Class { loads: 0, stores: 0, jumps: 0, lines: 0, ..*class };
                let mut lines = BTreeSet::new();
                for (one, next) in code.iter().zip(code[1..].iter().map(Some).chain([None])) {
                    lines.extend([one.ip() / 64, (one.next_ip() - 1) / 64]);
                    let jumps = next.is_some_and(|next| next.ip() != one.next_ip());
                    found.jumps += usize::from(jumps);
                    let returns = one.flow_control() == FlowControl::Return;
                    if returns || one.is_ip_rel_memory_operand() || one.mnemonic() == Mnemonic::Nop
                    {
                        continue;
                    }
                    for used in looks.info(one).used_memory() {
                        match used.access() {
                            // Under a mask as well.
                            OpAccess::Read | OpAccess::CondRead => found.loads += 1,
                            OpAccess::Write | OpAccess::CondWrite => found.stores += 1,
                            _ => {}
                        }
                    }
                }
                found.lines = lines.len();
                if found != *class {
                    wrong.push(format!("{operation}, {n} bytes: {found:?}; table: {class:?}"));
                }
            }
        }
        // No gap and no overlap from 0 bytes on, whatever the entry.
        for name in ["avx2", "avx512vl"] {
            let mut next = 0;
            for class in costs::classes(operation, name) {
                assert_eq!(class.first, next, "{operation} {name}");
                next = class.last + 1;
            }
            assert!(next > 256, "{operation} {name}: to {next}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn decoded(at: u64) -> Instruction {
    // SAFETY: the code of a function of this program; a page beyond it is mapped or not read, since one
    // instruction is decoded.
    let code = unsafe { std::slice::from_raw_parts(at as *const u8, 15) };
    Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode()
}

fn exported() -> [(u64, Operation); 6] {
    [
        (raw::copy_nonoverlapping as *const (), Operation::Copy),
        (raw::copy as *const (), Operation::Move),
        (raw::fill as *const (), Operation::Fill),
        (raw::zero as *const (), Operation::Zero),
        (raw::compare as *const (), Operation::Compare),
        (raw::equal_int as *const (), Operation::Equal),
    ]
    .map(|(function, operation)| (function as u64, operation))
}

/// Returns whether the entry is asked for before anything else: that of copies and moves is the same up to 64 bytes.
fn asks_first(operation: Operation) -> bool {
    !matches!(operation, Operation::Copy | Operation::Move)
}

/// Place of a function's first instruction that does its work.
fn working(function: u64) -> u64 {
    let first = decoded(function);
    if first.is_ip_rel_memory_operand() { decoded(first.next_ip()).next_ip() } else { function }
}

/// Address of what follows the sizes up to 64 bytes of a function: the first jump by the size leads there, of comparisons
/// the second.
fn large(function: u64, operation: Operation) -> u64 {
    let jump = |from: u64, within: u64| {
        let mut at = from;
        loop {
            let one = decoded(at);
            if one.mnemonic() == Mnemonic::Ja {
                return one.near_branch_target();
            }
            assert!(at - from < within, "no jump by the size");
            at = one.next_ip();
        }
    };
    match operation {
        // Between them is the test of the first 32 bytes.
        Operation::Compare | Operation::Equal => jump(jump(working(function), 32), 64),
        _ => jump(working(function), 32),
    }
}

/// Target of the jump behind a comparison of the operation's number with that of `avx2`, at that place.
fn choice(at: u64, operation: Operation, jump: Mnemonic) -> u64 {
    let number = decoded(at);
    assert_eq!(number.mnemonic(), Mnemonic::Cmp, "{operation}");
    let chosen = (&raw const entry::CHOSEN).addr() + entry::place(operation);
    assert_eq!(number.memory_size(), iced_x86::MemorySize::UInt8, "{operation}");
    assert_eq!(number.ip_rel_memory_address(), chosen as u64, "{operation}: its number");
    assert_eq!(number.try_immediate(1).ok(), Some(u64::from(entry::AVX2)), "{operation}");
    let one = decoded(number.next_ip());
    assert_eq!(one.mnemonic(), jump, "{operation}");
    one.near_branch_target()
}

/// The address of a stub, by its number.
fn stub(operation: Operation, number: u8) -> u64 {
    entry::variants(operation)[usize::from(number)].function.address() as u64
}

/// That two pieces of code are the same instructions and lead from each to the same, jump by jump, up to where both
/// `end`. Where they lie, and so how long their jumps are, is not compared.
fn assert_same(one: u64, other: u64, end: Option<(u64, u64)>, what: &str) {
    let (mut todo, mut seen) = (vec![(one, other)], BTreeSet::from_iter(end));
    while let Some((mut left, mut right)) = todo.pop() {
        loop {
            let [mut a, mut b] = [decoded(left), decoded(right)];
            for instruction in [&mut a, &mut b] {
                while instruction.mnemonic() == Mnemonic::Nop {
                    *instruction = decoded(instruction.next_ip());
                }
            }
            if !seen.insert((a.ip(), b.ip())) {
                break;
            }
            assert!(seen.len() < 1000, "{what}: no end in sight");
            assert_eq!(a.mnemonic(), b.mnemonic(), "{what}: {a:?} {b:?}");
            assert_eq!(a.op_count(), b.op_count(), "{what}: {a:?} {b:?}");
            let branches = a.is_jcc_short_or_near() || a.is_jmp_short_or_near();
            if branches {
                let targets = (a.near_branch_target(), b.near_branch_target());
                // The same address is somewhere outside both.
                if targets.0 != targets.1 {
                    todo.push(targets);
                }
            } else {
                // Addresses that are relative to the instruction are absolute in it, so that data is the same.
                let operand = |of: &Instruction, at| {
                    let memory = (
                        of.memory_base(),
                        of.memory_index(),
                        of.memory_index_scale(),
                        of.memory_displacement64(),
                    );
                    match of.op_kind(at) {
                        OpKind::Register => format!("{:?}", of.op_register(at)),
                        OpKind::Memory => format!("{memory:?} {:?}", of.memory_size()),
                        _ => format!("{:?}", of.try_immediate(at)),
                    }
                };
                for at in 0..a.op_count() {
                    assert_eq!(operand(&a, at), operand(&b, at), "{what}: {a:?} {b:?}");
                }
                assert_eq!(a.op_mask(), b.op_mask(), "{what}: {a:?} {b:?}");
            }
            if !matches!(a.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) {
                break;
            }
            (left, right) = (a.next_ip(), b.next_ip());
        }
    }
    assert!(seen.len() > 30, "{what}: {} instructions", seen.len());
}

/// Small sizes are the same in the exported function and in every stub, but that fills and comparisons go to `avx512vl` first
/// of all. Behind them the exported function compares the stub's number and nothing else before it is in that stub's code: of
/// `avx2`, which follows, and of the others.
#[test]
#[cfg_attr(target_feature = "avx2", ignore = "no number is asked in this build")]
fn one_number_leads_to_the_code_of_its_stub() {
    // So that the flags of a comparison with that of `avx2` tell all of them apart.
    let numbers = [entry::SSE2, entry::AVX2, entry::AVX512VL];
    assert!(numbers.is_sorted());
    for (function, operation) in exported() {
        let names = numbers.map(|number| entry::variants(operation)[usize::from(number)].name);
        assert_eq!(names, ["sse2", "avx2", "avx512vl"]);
        let stubs = numbers.map(|number| stub(operation, number));
        // `avx512vl` has classes of its own.
        for small in stubs.into_iter().take(2) {
            let ends = (large(function, operation), large(small, operation));
            assert_same(working(function), small, Some(ends), &format!("{operation}, small"));
        }
        let [sse2, avx2, avx512vl] = stubs;
        let behind_small = large(function, operation);
        let others = choice(behind_small, operation, Mnemonic::Jne);
        let follows = decoded(decoded(behind_small).next_ip()).next_ip();
        assert_same(follows, large(avx2, operation), None, &format!("{operation} avx2"));
        if asks_first(operation) {
            assert_eq!(choice(function, operation, Mnemonic::Ja), avx512vl, "{operation}");
            assert_eq!(others, sse2, "{operation}");
            continue;
        }
        assert_eq!(working(function), function, "{operation}: nothing is asked first");
        let below = decoded(others);
        assert_eq!(below.mnemonic(), Mnemonic::Jb, "{operation}");
        // Behind the instruction that says what is returned: `mempcpy` comes with another.
        assert_eq!(decoded(sse2).mnemonic(), Mnemonic::Mov, "{operation}");
        assert_eq!(below.near_branch_target(), decoded(sse2).next_ip(), "{operation}");
        assert_same(
            below.next_ip(),
            large(avx512vl, operation),
            None,
            &format!("{operation} avx512vl"),
        );
    }
}

/// On every way through a stub, also those that calls seldom take: what the caller keeps in registers is not written,
/// the direction is not changed, and where it ends or jumps away no upper half of ymm0 to ymm15 is in use, which would slow
/// down the SSE instructions of others; nor does one of its own run meanwhile.
#[test]
fn on_every_way_through_a_stub_registers_are_left_as_callers_need_them() {
    let mut looks = InstructionInfoFactory::new();
    let mut in_use_somewhere = 0;
    for (function, operation) in exported() {
        let all: BTreeMap<u64, Instruction> = reachable(function, &beside(operation))
            .into_iter()
            .map(|one| (one.ip(), one))
            .collect();
        let (mut todo, mut seen) = (vec![(function, false)], BTreeSet::new());
        while let Some((at, uppers)) = todo.pop() {
            if !seen.insert((at, uppers)) {
                continue;
            }
            // Somewhere else, or what fills the table.
            let Some(one) = all.get(&at) else {
                assert!(!uppers, "{operation}: upper halves in use at a jump to {at:x}");
                continue;
            };
            let text = format!(
                "{operation}: {one:?} at {at:x}, {:#x} behind the start",
                at.wrapping_sub(function)
            );
            assert_eq!(one.rflags_modified() & RflagsBits::DF, 0, "{text}: the direction");
            let mut uppers = uppers;
            let flow = one.flow_control();
            // The upper half of a register that is written as one of 16 bytes becomes zero, or stays as it is.
            let zeroes = one.op0_register().is_xmm();
            for used in looks.info(one).used_registers() {
                let register = used.register();
                let written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
                let kept = matches!(
                    register.full_register(),
                    Register::RBX
                        | Register::RBP
                        | Register::RSP
                        | Register::R12
                        | Register::R13
                        | Register::R14
                        | Register::R15
                );
                assert!(!kept || !written || flow == FlowControl::Return, "{text}: the caller's");
                let low = register.is_vector_register() && register.number() < 16;
                let sse = low && one.encoding() == EncodingKind::Legacy;
                assert!(!sse || !uppers, "{text}: upper halves in use");
                uppers |= low && written && !zeroes && one.mnemonic() != Mnemonic::Vzeroupper;
            }
            uppers &= one.mnemonic() != Mnemonic::Vzeroupper;
            in_use_somewhere += u32::from(uppers);
            match flow {
                FlowControl::Next => todo.push((one.next_ip(), uppers)),
                FlowControl::ConditionalBranch => {
                    todo.push((one.next_ip(), uppers));
                    todo.push((one.near_branch_target(), uppers));
                }
                FlowControl::UnconditionalBranch => todo.push((one.near_branch_target(), uppers)),
                _ => assert!(!uppers, "{text}: upper halves in use"),
            }
        }
    }
    let least = if cfg!(target_feature = "avx512vl") { 0 } else { 100 };
    assert!(in_use_somewhere >= least, "{in_use_somewhere} instructions of avx2 were looked at");
}

/// Bytes beside a destination may be another thread's: a store of a whole vector that puts back what it found there
/// would undo what that thread has stored meanwhile. So a stub that stores never loads from its destination: what it
/// loads is the source's, by rsi, or the table's.
#[test]
fn no_stub_loads_from_its_destination() {
    let others = exported().map(|(function, _)| function);
    let mut looks = InstructionInfoFactory::new();
    for (function, operation) in exported() {
        if matches!(operation, Operation::Compare | Operation::Equal) {
            continue;
        }
        let copies = matches!(operation, Operation::Copy | Operation::Move);
        let mut stores = 0;
        for one in reachable(function, &others) {
            if matches!(one.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
                || one.is_ip_rel_memory_operand()
            {
                continue;
            }
            let is_table = (one.memory_base(), one.memory_index()) == (Register::R8, Register::RCX);
            let by_source = [one.memory_base(), one.memory_index()].contains(&Register::RSI);
            let returns = one.flow_control() == FlowControl::Return;
            for used in looks.info(&one).used_memory() {
                let loads = !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite);
                let allowed = is_table || returns || copies && by_source;
                assert!(!loads || allowed, "{operation}: {one:?}");
                stores += u32::from(!loads);
            }
        }
        assert!(stores > 30, "{operation}: {stores} stores");
    }
}

/// Up to 128 bytes by the exported function, and by `avx512vl` from where it goes there.
#[test]
#[cfg_attr(target_feature = "avx2", ignore = "no number is asked in this build")]
fn no_jump_of_a_small_call_lies_across_32_bytes() {
    for (function, operation) in exported() {
        assert_eq!(
            function % 64,
            0,
            "{operation}: distances from it are not those from a line's beginning"
        );
        let mut returns = BTreeSet::new();
        for n in 0..=128 {
            let code = run_by(function, n, entry::AVX2);
            returns.extend(code.last().map(Instruction::ip));
            no_jump_across_32_bytes(&code, function);
        }
        assert!(returns.len() > 1, "{operation}: every size has the same return");
        let (avx512vl, from) = if asks_first(operation) {
            (stub(operation, entry::AVX512VL), 0)
        } else {
            (choice(large(function, operation), operation, Mnemonic::Jne), 65)
        };
        for n in from..=128 {
            no_jump_across_32_bytes(&run_by(avx512vl, n, entry::AVX512VL), avx512vl);
        }
    }
}

/// Debug assertions add calls: `cargo test --release`.
#[cfg(not(debug_assertions))]
#[test]
fn every_entry_calls_nothing_and_keeps_off_the_stack() {
    let exported = exported();
    for (function, operation) in exported {
        let mut others = beside(operation);
        others.extend(exported.map(|(function, _)| function));
        for way in entry::variants(operation) {
            let name = format!("{operation} {}", way.name);
            let code = check(&name, way.function.address(), &others);
            let has = |wanted: fn(Register) -> bool| {
                code.iter().any(|one| (0..one.op_count()).any(|at| wanted(one.op_register(at))))
            };
            assert_eq!(
                has(Register::is_zmm),
                way.name == "avx512vl",
                "{name}: vectors of 64 bytes"
            );
            // Above the sizes that all entries do alike; with vectors of 64 bytes there need be none of 32.
            let wide = has(Register::is_ymm) || has(Register::is_zmm);
            assert_eq!(wide, way.name != "sse2", "{name}: vectors of 32 bytes or more");
        }
        // The code of small sizes up to the first return is one line, or two where bytes are compared.
        let code = reachable(function, &others);
        let small = code.iter().find(|one| one.flow_control() == FlowControl::Return);
        let bytes = small.expect("small sizes return").next_ip() - function;
        let compares = matches!(operation, Operation::Compare | Operation::Equal);
        assert!(bytes <= if compares { 128 } else { 64 }, "{operation}: {bytes} bytes");
    }
}
