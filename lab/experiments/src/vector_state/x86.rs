//! The measuring part of `vector-state`, for x86-64.

use super::{BARE, BREAK_EVEN, Held, REGISTERS, SAVE_RESTORE, WORK_AFTER};
use crate::prelude::*;
use crate::xstate::{self, AVX, AVX512, Area, SSE, Save, Support, X87};
use std::cell::Cell as Shared;
use std::rc::Rc;

pub(super) fn run(setting: &mut Setting) -> Result {
    let Some(support) = Support::detect() else {
        return nothing("this CPU has no XSAVE, or the operating system does not enable it");
    };
    for save in Save::ALL.into_iter().filter(|save| !support.has(*save)) {
        setting.out.note(format!("skipped {}: this CPU lacks it", save.name()))?;
    }
    let vectors = |kernel: &Kernel| match kernel.registers {
        RegisterClass::Gpr => matches!(kernel.technique(), "gpr64" | "rep.movsb" | "rep.stosb"),
        _ => is_plain(kernel) && !kernel.is_non_temporal() || kernel.technique() == "mmx",
    };
    let operations = [Operation::Copy, Operation::Zero, Operation::Compare];
    let mut fields = fields(setting, operations, vectors)?;
    // libc's own routines use vector registers; the integer kernel is the reference here.
    fields.iter_mut().for_each(|routines| drop(routines.remove(0)));
    fields.retain(|routines| !routines.is_empty());
    let sizes = sizes(setting);
    let masks = masks(&support, setting.options.quick);
    setting.begin((3 * masks.len() + fields.len() * (sizes.len() + 1)) as f64);
    for &components in &masks {
        for state in Held::ALL {
            save_restore(setting, &support, components, state)?;
            let text = format!("{} {}", component_names(components), state.name());
            setting.out.advance(&text, 1.0);
        }
    }
    for routines in &fields {
        let operation = routines[0].function.operation();
        for &size in &sizes {
            beside(setting, &support, routines, size)?;
            setting.out.advance(&format!("{operation} {}", bytes(size)), 1.0);
        }
    }
    for routines in &fields {
        let operation = routines[0].function.operation();
        after(setting, routines)?;
        setting.out.advance(&format!("what runs after {operation}"), 1.0);
    }
    Ok(())
}

fn sizes(setting: &Setting) -> Vec<usize> {
    let last = if setting.options.quick { 16 } else { 20 };
    let mut sizes = setting.sizes_or((4..=last).map(|power| 1 << power));
    sizes.sort_unstable();
    sizes
}

/// Sets of components, each enabled here, each once, smallest first.
fn masks(support: &Support, quick: bool) -> Vec<u64> {
    let all = support.components;
    let mut masks = vec![X87, SSE, X87 | SSE, X87 | SSE | AVX, all];
    if !quick {
        masks.extend([AVX, SSE | AVX, AVX512]);
    }
    masks.retain(|mask| mask & all == *mask);
    masks.sort_unstable();
    masks.dedup();
    masks
}

/// One set of components in one state: every instruction there is, in turns.
fn save_restore(setting: &mut Setting, support: &Support, components: u64, state: Held) -> Result {
    let instructions: Vec<Save> = Save::ALL.into_iter().filter(|save| support.has(*save)).collect();
    // SAFETY: the components are enabled.
    let modify = move || unsafe { xstate::modify(components) };
    let cycle = |&save: &Save| {
        let owner = Owner { support, save, components, state };
        match state {
            Held::Dirty => owner.calls(save.name(), modify, |_| ()),
            _ => owner.calls(save.name(), || (), |_| ()),
        }
    };
    let (mut calls, held): (Vec<Call<'_>>, Vec<_>) = instructions.iter().map(cycle).unzip();
    if state == Held::Dirty {
        calls.push(Call::new("dirtying alone", move |places: &[Place]| {
            places.iter().for_each(|_| modify());
        }));
    }
    let label = format!("{REGISTERS}{}", state.name());
    // The operands are not used.
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::reused(label) };
    let task = setting.task(Operation::Zero, 64, cell);
    let Some(found) = setting.measure(&task, &mut each(&mut calls))? else { return Ok(()) };
    let alone = found.result.candidates.get(instructions.len());
    for (index, save) in instructions.iter().enumerate() {
        let mut row = at(found.row(index, 0), &[(COMPONENTS, components as f64)]);
        SAVE_RESTORE.clone_into(&mut row.cell.operation);
        row.cell.size = support.bytes(components) as u64;
        row.candidate = format!("{} + xrstor", save.name());
        row.reference = format!("{} + xrstor", instructions[0].name());
        let zeros = vec![0.0; row.operation_ns.len()];
        let alone = alone.map_or(&zeros, |samples| &samples.operation_ns);
        let net = net(&row.operation_ns, alone);
        setting.out.row(row.with(&[(NET_NS, net), (HELD, held[index].get() as f64)]))?;
    }
    Ok(())
}

/// Median of the differences of two candidates' rounds, never below 0.
fn net(ours: &[f64], theirs: &[f64]) -> f64 {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    stats::median(&differences).max(0.0)
}

/// Owner of registers that are saved before every call and restored afterwards.
struct Owner<'s> {
    support: &'s Support,
    save: Save,
    components: u64,
    /// Their contents when a sample begins; saving and restoring keeps them.
    state: Held,
}

impl Owner<'_> {
    /// Calls between saving and restoring, each after `before`; and which components the last save found
    /// in another than their initial state.
    fn calls<'c>(
        self,
        name: impl Into<String>,
        before: impl Fn() + 'c,
        call: impl Fn(&Place) + 'c,
    ) -> (Call<'c>, Rc<Shared<u64>>) {
        let Owner { support, save, components, state } = self;
        let mut area = Area::new(support);
        let (held, begun) = (Rc::new(Shared::new(0)), Rc::new(Shared::new(false)));
        let (found, begin) = (Rc::clone(&held), Rc::clone(&begun));
        let calls = move |places: &[Place]| {
            if begun.replace(false) {
                match state {
                    // SAFETY: the components are enabled.
                    Held::Dirty | Held::Unmodified => unsafe { xstate::modify(components) },
                    // SAFETY: the components are enabled; nothing is kept in vector registers here.
                    Held::Clean => unsafe { area.initialise(components) },
                }
            }
            for place in places {
                before();
                // SAFETY: the instruction exists, the components are enabled.
                unsafe { area.save(save, components) };
                call(place);
                // SAFETY: the components are enabled, and just saved.
                unsafe { area.restore(components) };
            }
            found.set(area.held() & components);
        };
        (Call::new(name, calls).set_up(move |_| begin.set(true)), held)
    }
}

fn class(routine: &Routine) -> RegisterClass {
    find(&routine.name).map_or(RegisterClass::Gpr, |kernel| kernel.registers)
}

/// The state that a register class makes its owner save.
fn needed(class: RegisterClass) -> u64 {
    match class {
        RegisterClass::X87 | RegisterClass::Mmx => X87,
        RegisterClass::Xmm => SSE,
        RegisterClass::Ymm => SSE | AVX,
        RegisterClass::Zmm => SSE | AVX | AVX512,
        _ => 0,
    }
}

/// One operation at one size: integer kernels, vector kernels bare and between save and restore.
fn beside(setting: &mut Setting, support: &Support, routines: &[Routine], size: usize) -> Result {
    let operation = routines[0].function.operation();
    let mut integers: Vec<Routine> =
        routines.iter().filter(|routine| class(routine) == RegisterClass::Gpr).cloned().collect();
    if integers.is_empty() {
        integers.extend(find(&format!("{operation}.gpr64")).map(Routine::from));
    }
    let mut calls: Vec<Call<'_>> = integers.iter().map(Call::of).collect();
    let mut held: Vec<Option<Rc<Shared<u64>>>> = vec![None; integers.len()];
    for routine in routines {
        let components = needed(class(routine));
        if components == 0 || components & support.components != components {
            continue;
        }
        let mut bare = Call::of(routine);
        bare.name = format!("{}{BARE}", routine.name);
        calls.push(bare);
        held.push(None);
        for state in [Held::Clean, Held::Dirty] {
            let owner = Owner { support, save: support.honest(), components, state };
            let (call, found) = saving(owner, routine);
            calls.push(call);
            held.push(Some(found));
        }
    }
    let task = setting.task(operation, size, Cell::reused(BREAK_EVEN));
    let Some(found) = setting.measure(&task, &mut each(&mut calls))? else { return Ok(()) };
    let time = |index: &usize| stats::median(&found.result.candidates[*index].operation_ns);
    let reference = (0..integers.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0);
    for (index, held) in held.iter().enumerate() {
        let figure = held.as_ref().map(|held| (HELD, held.get() as f64));
        setting.out.row(found.row(index, reference).with(figure.as_slice()))?;
    }
    Ok(())
}

/// Integer work after a kernel of each register class, each after a time without any. Only the work is timed:
/// what a lower clock costs is in no time of the kernel itself.
fn after(setting: &mut Setting, routines: &[Routine]) -> Result {
    let mut firsts: Vec<(RegisterClass, &Routine)> = Vec::new();
    for routine in routines {
        let class = class(routine);
        if firsts.iter().all(|(known, _)| *known != class) {
            firsts.push((class, routine));
        }
    }
    let reference = firsts.iter().position(|(class, _)| *class == RegisterClass::Gpr);
    let (Some(reference), 2..) = (reference, firsts.len()) else { return Ok(()) };
    let operation = routines[0].function.operation();
    let call = |(_, routine): &(RegisterClass, &Routine)| {
        let (function, work) = (routine.function, |_: &Place| crate::after::work());
        Call::new(&*routine.name, move |places: &[Place]| places.iter().for_each(work))
            .set_up(move |places| crate::after::prepare(|| run_all(function, places)))
            .beside(reference)
    };
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::reused(WORK_AFTER) };
    let task = setting.task(operation, 4096, cell);
    setting.calls(&task, firsts.iter().map(call).collect())
}

/// A kernel between saving the registers it uses and restoring them.
fn saving<'c>(owner: Owner<'_>, routine: &Routine) -> (Call<'c>, Rc<Shared<u64>>) {
    let name = format!("{} + {}, {}", routine.name, owner.save.name(), owner.state.name());
    let function = routine.function;
    let (call, held) = owner.calls(name, || (), move |place| once(function, place));
    let call = call.checked(move |place| match function {
        Function::Copy(_) => is_copied(place),
        Function::Zero(_) => is_zeroed(place),
        // A comparison writes nothing; its answers are checked on the bare kernel.
        _ => Ok(()),
    });
    (call, held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_is_paired_and_not_negative() {
        assert_eq!(net(&[5.0, 9.0, 7.0], &[1.0, 5.0, 4.0]), 4.0);
        assert_eq!(net(&[1.0], &[2.0]), 0.0);
    }
}
