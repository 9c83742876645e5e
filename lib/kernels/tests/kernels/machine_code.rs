//! Reads the kernels' instructions in this very executable and holds them against the table:
//! that a kernel contains the instructions it is named after and none its row does not admit, that
//! every path fences, ends MMX and ends AVX before it returns, and that none calls anything
//! outside this crate, `memcpy` least of all.
//!
//! Each kernel is walked from its entry along all jumps, and into the crate's own helpers along
//! calls. It needs no CPU feature, so it covers the kernels that this CPU cannot run.

mod image;
mod walk;

use crate::runner::{is_asked_for, say};
use cachewise_kernels::{Features, Kernel, Prefetch, RegisterClass, StoreKind, TABLE};
use iced_x86::{
    CpuidFeature, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use image::Image;
use walk::{Routine, State};

#[test]
fn instructions_are_those_the_table_claims() {
    let image = Image::of_this_process();
    let mut complaints = Vec::new();
    let mut instructions = 0;
    for kernel in TABLE.iter().filter(|kernel| is_asked_for(kernel)) {
        let mut complain = |what: String| complaints.push(format!("{}: {what}", kernel.name));
        match Routine::walk(&image, kernel.function.address()) {
            Err(what) => complain(what),
            Ok(routine) => {
                instructions += routine.instructions().count();
                check(kernel, &routine, &mut complain);
            }
        }
    }
    say(&format!("machine code: {} kernels, {instructions} instructions read", TABLE.len()));
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn check(kernel: &Kernel, routine: &Routine, complain: &mut dyn FnMut(String)) {
    let any = |what: &dyn Fn(&Instruction) -> bool| routine.instructions().any(what);
    let has = |mnemonic| any(&|code| code.mnemonic() == mnemonic);
    let fenced = has(Mnemonic::Sfence);

    // The store that the name promises, and no other non-temporal one.
    match kernel.store {
        StoreKind::NonTemporal => {
            if !any(&|code| is_nt_store(code, Some(kernel.registers))) {
                let class = kernel.registers.name();
                complain(format!("no non-temporal store of a {class} register"));
            }
        }
        StoreKind::CacheLineZero => {
            if !has(Mnemonic::Clzero) {
                complain("no clzero".into());
            }
        }
        StoreKind::String => {
            if !any(&is_rep_string) {
                complain("no rep movs or rep stos".into());
            }
        }
        StoreKind::None => {
            if let Some(code) = routine.instructions().find(|code| stores_beside_the_stack(code)) {
                complain(format!("a comparison stores: {}", walk::show(code)));
            }
        }
        StoreKind::BlockZero => complain("no such store on this architecture".into()),
        StoreKind::Temporal => {}
    }
    if kernel.is_non_temporal() && !fenced {
        complain("no sfence".into());
    }
    if !kernel.is_non_temporal() && any(&|code| is_nt_store(code, None)) {
        complain("a non-temporal store in a kernel that is not".into());
    }
    if kernel.store != StoreKind::CacheLineZero && has(Mnemonic::Clzero) {
        complain("clzero in a kernel that does not claim it".into());
    }

    // The registers that carry the data, and the state they leave.
    let carries = |class| any(&|code| moves_memory_through(code, class));
    match kernel.registers {
        RegisterClass::X87 if !(has(Mnemonic::Fild) && has(Mnemonic::Fistp)) => {
            complain("no fild and fistp".into());
        }
        RegisterClass::Mmx if !has(Mnemonic::Emms) => complain("no emms".into()),
        RegisterClass::Ymm | RegisterClass::Zmm if !has(Mnemonic::Vzeroupper) => {
            complain("no vzeroupper".into());
        }
        _ => {}
    }
    // An immediate, a string instruction or clzero does the work of integer registers too.
    if kernel.registers != RegisterClass::Gpr && !carries(kernel.registers) {
        complain(format!("no {} register meets memory", kernel.registers.name()));
    }
    let at_return = routine.state_at_return();
    for (state, what) in [
        (State::UNFENCED, "can return with non-temporal stores unfenced"),
        (State::MMX, "can return without emms"),
        (State::UPPER, "can return without vzeroupper"),
        (State::BACKWARD, "can return with the direction flag set"),
    ] {
        if at_return.contains(state) {
            complain(what.into());
        }
    }

    // The prefetch that the name promises, at its distance, and no other.
    let prefetch = |mnemonic| any(&|code| code.mnemonic() == mnemonic);
    let promised = match kernel.prefetch {
        Prefetch::Nta(distance) => Some((Mnemonic::Prefetchnta, distance)),
        Prefetch::T0(distance) => Some((Mnemonic::Prefetcht0, distance)),
        Prefetch::T1(distance) => Some((Mnemonic::Prefetcht1, distance)),
        _ => None,
    };
    for mnemonic in [
        Mnemonic::Prefetchnta,
        Mnemonic::Prefetcht0,
        Mnemonic::Prefetcht1,
        Mnemonic::Prefetcht2,
        Mnemonic::Prefetchw,
    ] {
        let expected = promised.is_some_and(|(promised, _)| promised == mnemonic);
        if prefetch(mnemonic) != expected {
            let verb = if expected { "lacks" } else { "contains" };
            complain(format!("{verb} {mnemonic:?}"));
        }
    }
    if let Some((mnemonic, distance)) = promised {
        let at_distance = |code: &Instruction| {
            code.mnemonic() == mnemonic && code.memory_displacement64() == u64::from(distance)
        };
        if !any(&at_distance) {
            complain(format!("no {mnemonic:?} {distance} bytes ahead"));
        }
    }

    // Nothing the CPU was not asked for.
    for code in routine.instructions() {
        for &feature in code.cpuid_features() {
            if !admits(kernel.requires, code, feature) {
                complain(format!(
                    "requires {} but contains {} ({feature:?})",
                    kernel.requires,
                    walk::show(code)
                ));
                return;
            }
        }
    }
}

/// Returns whether it stores non-temporally, from a register of that class if one is given.
fn is_nt_store(code: &Instruction, class: Option<RegisterClass>) -> bool {
    use Mnemonic::{
        Maskmovdqu, Maskmovq, Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss,
        Vmaskmovdqu, Vmovntdq, Vmovntpd, Vmovntps,
    };
    let stores = matches!(
        code.mnemonic(),
        Maskmovdqu
            | Maskmovq
            | Movntdq
            | Movnti
            | Movntpd
            | Movntps
            | Movntq
            | Movntsd
            | Movntss
            | Vmaskmovdqu
            | Vmovntdq
            | Vmovntpd
            | Vmovntps
    );
    stores && class.is_none_or(|class| is_of(code.op1_register(), class))
}

fn is_of(register: Register, class: RegisterClass) -> bool {
    match class {
        RegisterClass::Gpr => register.is_gpr(),
        RegisterClass::X87 => register.is_st(),
        RegisterClass::Mmx => register.is_mm(),
        RegisterClass::Xmm => register.is_xmm(),
        RegisterClass::Ymm => register.is_ymm(),
        RegisterClass::Zmm => register.is_zmm(),
        _ => false,
    }
}

fn is_rep_string(code: &Instruction) -> bool {
    use Mnemonic::{Movsb, Movsd, Movsq, Movsw, Stosb, Stosd, Stosq, Stosw};
    let string = [Movsb, Movsw, Movsd, Movsq, Stosb, Stosw, Stosd, Stosq];
    code.has_rep_prefix() && string.contains(&code.mnemonic())
}

/// Returns whether one operand is memory and another a register of that class.
fn moves_memory_through(code: &Instruction, class: RegisterClass) -> bool {
    let kinds = || (0..code.op_count()).map(|at| (at, code.op_kind(at)));
    // FILD and FISTP name no register.
    let implied =
        class == RegisterClass::X87 && matches!(code.mnemonic(), Mnemonic::Fild | Mnemonic::Fistp);
    kinds().any(|(_, kind)| kind == OpKind::Memory)
        && (implied
            || kinds()
                .any(|(at, kind)| kind == OpKind::Register && is_of(code.op_register(at), class)))
}

fn stores_beside_the_stack(code: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    factory.info(code).used_memory().iter().any(|memory| {
        let writes = matches!(
            memory.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        writes && !matches!(memory.base(), Register::RSP | Register::RBP)
    })
}

/// Returns whether a kernel with that requirement may contain an instruction of that CPUID feature.
fn admits(requires: Features, code: &Instruction, feature: CpuidFeature) -> bool {
    match feature {
        // Every x86-64 CPU.
        CpuidFeature::INTEL8086
        | CpuidFeature::INTEL186
        | CpuidFeature::INTEL286
        | CpuidFeature::INTEL386
        | CpuidFeature::INTEL486
        | CpuidFeature::X64
        | CpuidFeature::CMOV
        | CpuidFeature::CPUID
        | CpuidFeature::MULTIBYTENOP
        | CpuidFeature::FPU
        | CpuidFeature::MMX
        | CpuidFeature::SSE
        | CpuidFeature::SSE2 => true,
        // BSF with the prefix that older CPUs ignore; compilers write it where the operand is not
        // zero, and the results agree there.
        CpuidFeature::BMI1 => code.mnemonic() == Mnemonic::Tzcnt,
        CpuidFeature::AVX => requires.contains(Features::AVX),
        CpuidFeature::AVX2 => requires.contains(Features::AVX2),
        CpuidFeature::AVX512F => requires.contains(Features::AVX512F),
        CpuidFeature::AVX512BW => requires.contains(Features::AVX512BW),
        CpuidFeature::AVX512VL => requires.contains(Features::AVX512VL),
        CpuidFeature::CLZERO => requires.contains(Features::CLZERO),
        _ => false,
    }
}
