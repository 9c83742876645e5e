//! The measuring part of `vector-state`, for x86-64.

use super::{COMPONENTS, HELD, NET_NS, net, verdicts};
use crate::LabError;
use crate::bench::{Contest, Entrant, Spot};
use crate::experiments::support::{at_least_one, field, is_plain, key};
use crate::experiments::{Experiment, Finish, Setting, short_bytes};
use crate::routines::Routine;
use crate::xstate::{self, AVX, AVX512, Area, SSE, Save, Support, X87};
use cachewise_kernels::{Function, Kernel, Operation, RegisterClass, find};
use cachewise_measure::{Contents, PagePolicy, Place, Row};
use std::cell::Cell;
use std::rc::Rc;

/// What the registers hold when they are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Dirty,
    Unmodified,
    Clean,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Dirty => "dirty",
            State::Unmodified => "unmodified",
            State::Clean => "clean",
        }
    }
}

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let Some(support) = Support::detect() else {
        return Err(LabError::Nothing {
            why: "this CPU has no XSAVE, or the operating system does not enable it".to_owned(),
        });
    };
    if !setting.options.placements.is_empty() {
        return Err(LabError::OptionRefused {
            option: "--residency",
            experiment: experiment.name,
            why: "one pair of buffers is used over and over",
        });
    }
    for save in Save::ALL.into_iter().filter(|save| !support.has(*save)) {
        (setting.notes)(format!("skipped {}: this CPU lacks it", save.name()))?;
    }
    let vectors = |kernel: &Kernel| {
        kernel.registers == RegisterClass::Gpr
            && matches!(kernel.technique(), "gpr64" | "rep.movsb" | "rep.stosb")
            || is_plain(kernel)
                && !kernel.is_non_temporal()
                && kernel.registers != RegisterClass::Gpr
            || kernel.technique() == "mmx"
    };
    let mut fields = Vec::new();
    for operation in [Operation::Copy, Operation::Zero, Operation::Compare] {
        let mut routines = field(setting, operation, vectors)?;
        // libc's own routines use vector registers; the integer kernel is the reference here.
        routines.remove(0);
        fields.push((operation, routines));
    }
    at_least_one(&fields.iter().map(|(_, routines)| routines.as_slice()).collect::<Vec<_>>())?;
    fields.retain(|(_, routines)| !routines.is_empty());
    let sizes = sizes(setting);
    let masks = masks(&support, setting.options.quick);
    setting.observer.begin(experiment.name, (3 * masks.len() + fields.len() * sizes.len()) as f64);
    let mut rows = Vec::new();
    let finish = measure(experiment, setting, &support, &masks, &fields, &sizes, &mut rows)?;
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(finish)
}

fn measure(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    support: &Support,
    masks: &[u64],
    fields: &[(Operation, Vec<Routine>)],
    sizes: &[usize],
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    for &components in masks {
        for state in [State::Dirty, State::Unmodified, State::Clean] {
            if save_restore(experiment, setting, support, components, state, rows)?
                == Finish::Interrupted
            {
                return Ok(Finish::Interrupted);
            }
            setting
                .observer
                .advance(&format!("{} {}", xstate::names(components), state.name()), 1.0);
        }
    }
    for (operation, routines) in fields {
        for &size in sizes {
            if beside(experiment, setting, support, *operation, routines, size, rows)?
                == Finish::Interrupted
            {
                return Ok(Finish::Interrupted);
            }
            setting.observer.advance(&format!("{operation} {}", short_bytes(size)), 1.0);
        }
    }
    Ok(Finish::Complete)
}

fn sizes(setting: &Setting<'_>) -> Vec<usize> {
    if !setting.options.sizes.is_empty() {
        let mut sizes = setting.options.sizes.clone();
        sizes.sort_unstable();
        return sizes;
    }
    let last = if setting.options.quick { 16 } else { 20 };
    (4..=last).map(|power| 1 << power).collect()
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
fn save_restore(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    support: &Support,
    components: u64,
    state: State,
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    let instructions: Vec<Save> = Save::ALL.into_iter().filter(|save| support.has(*save)).collect();
    let held: Vec<Rc<Cell<u64>>> = instructions.iter().map(|_| Rc::default()).collect();
    let mut entrants: Vec<Entrant<'_>> = instructions
        .iter()
        .zip(&held)
        .map(|(&save, held)| cycling(support, save, components, state, Rc::clone(held)))
        .collect();
    if state == State::Dirty {
        entrants.push(Entrant::new("dirtying alone", move |places: &[Place]| {
            for _ in places {
                // SAFETY: the components are enabled.
                unsafe { xstate::modify(components) };
            }
        }));
    }
    let contest = Contest {
        size: 64,
        destination: Spot { level: None, offset: 0 },
        source: None,
        distance: 0,
        pages: PagePolicy::Huge,
        contents: Contents::Kept,
        plan: setting.plan(false),
        write_source: None,
        entrants: &mut entrants,
    };
    let found = setting.bench.hold(contest, setting.observer)?;
    if found.interrupted() {
        return Ok(Finish::Interrupted);
    }
    for (index, save) in instructions.iter().enumerate() {
        let label = format!("registers {}", state.name());
        let size = support.bytes(components);
        let cell =
            key("save-restore", size, (None, None), &label, &[(COMPONENTS, components as f64)]);
        let mut row = found.row(experiment.name, cell, index, 0);
        row.candidate = format!("{} + xrstor", save.name());
        row.reference = format!("{} + xrstor", instructions[0].name());
        let ours = &found.samples(index).operation_ns;
        let alone = found.result.candidates.get(instructions.len());
        let zeros = vec![0.0; ours.len()];
        let net = net(ours, alone.map_or(&zeros, |samples| &samples.operation_ns));
        row.extra.insert(NET_NS.into(), net);
        row.extra.insert(HELD.into(), held[index].get() as f64);
        (setting.rows)(&row)?;
        rows.push(row);
    }
    Ok(Finish::Complete)
}

/// Save and restore, over and over, with the registers in a state.
fn cycling<'e>(
    support: &Support,
    save: Save,
    components: u64,
    state: State,
    held: Rc<Cell<u64>>,
) -> Entrant<'e> {
    let mut area = Area::new(support);
    let begun = Rc::new(Cell::new(false));
    let begin = Rc::clone(&begun);
    let calls = move |places: &[Place]| {
        if begun.replace(false) {
            establish(&mut area, components, state);
        }
        if state == State::Dirty {
            for _ in places {
                // SAFETY: the components are enabled.
                unsafe { xstate::modify(components) };
                // SAFETY: the instruction exists, the components are enabled.
                unsafe { area.save(save, components) };
                // SAFETY: as above, and just saved.
                unsafe { area.restore(components) };
            }
        } else {
            for _ in places {
                // SAFETY: as above.
                unsafe { area.save(save, components) };
                // SAFETY: as above.
                unsafe { area.restore(components) };
            }
        }
        held.set(area.held() & components);
    };
    Entrant::new(save.name(), calls).arranged(move |_| begin.set(true))
}

/// Puts the registers into a state that saving and restoring keeps.
fn establish(area: &mut Area, components: u64, state: State) {
    match state {
        // SAFETY: the components are enabled.
        State::Dirty | State::Unmodified => unsafe { xstate::modify(components) },
        // SAFETY: the components are enabled; nothing is kept in vector registers here.
        State::Clean => unsafe { area.initialise(components) },
    }
}

/// What a register class makes its owner save.
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
fn beside(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    support: &Support,
    operation: Operation,
    routines: &[Routine],
    size: usize,
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    let class = |routine: &Routine| {
        find(&routine.name).map_or(RegisterClass::Gpr, |kernel| kernel.registers)
    };
    let mut integers: Vec<Routine> =
        routines.iter().filter(|routine| class(routine) == RegisterClass::Gpr).cloned().collect();
    if integers.is_empty() {
        integers.extend(find(&format!("{operation}.gpr64")).map(Routine::from));
    }
    let mut entrants: Vec<Entrant<'_>> = integers.iter().map(Entrant::plain).collect();
    let mut held: Vec<Option<Rc<Cell<u64>>>> = integers.iter().map(|_| None).collect();
    for routine in routines {
        let components = needed(class(routine));
        if components == 0 || components & support.components != components {
            continue;
        }
        let mut bare = Entrant::plain(routine);
        bare.name = format!("{}, bare", routine.name);
        entrants.push(bare);
        held.push(None);
        for state in [State::Clean, State::Dirty] {
            let cell = Rc::new(Cell::new(0));
            held.push(Some(Rc::clone(&cell)));
            entrants.push(saving(support, routine, components, state, cell));
        }
    }
    let compares = operation == Operation::Compare;
    let contest = Contest {
        size,
        destination: Spot { level: None, offset: 0 },
        source: (operation != Operation::Zero).then_some(Spot { level: None, offset: 512 }),
        distance: 0,
        pages: PagePolicy::Huge,
        contents: if compares { Contents::Equal } else { Contents::Overwritten },
        plan: setting.plan(false),
        write_source: None,
        entrants: &mut entrants,
    };
    let found = setting.bench.hold(contest, setting.observer)?;
    if found.interrupted() {
        return Ok(Finish::Interrupted);
    }
    let time = |index: usize| cachewise_measure::stats::median(&found.samples(index).operation_ns);
    let reference = (0..integers.len()).min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap_or(0);
    for (index, held) in held.iter().enumerate() {
        let cell = key(operation.name(), size, (None, None), "break-even", &[]);
        let mut row = found.row(experiment.name, cell, index, reference);
        if let Some(held) = held {
            row.extra.insert(HELD.into(), held.get() as f64);
        }
        (setting.rows)(&row)?;
        rows.push(row);
    }
    Ok(Finish::Complete)
}

/// A kernel between saving the registers it uses and restoring them.
fn saving<'e>(
    support: &Support,
    routine: &Routine,
    components: u64,
    state: State,
    held: Rc<Cell<u64>>,
) -> Entrant<'e> {
    let mut area = Area::new(support);
    let save = support.honest();
    let function = routine.function;
    let begun = Rc::new(Cell::new(false));
    let begin = Rc::clone(&begun);
    let calls = move |places: &[Place]| {
        if begun.replace(false) {
            establish(&mut area, components, state);
        }
        macro_rules! between {
            ($place:ident => $call:expr) => {
                for $place in places {
                    // SAFETY: the instruction exists, the components are enabled.
                    unsafe { area.save(save, components) };
                    // SAFETY: places are valid for n bytes, and this CPU runs the kernel.
                    std::hint::black_box(unsafe { $call });
                    // SAFETY: as above, and just saved.
                    unsafe { area.restore(components) };
                }
            };
        }
        match function {
            Function::Copy(f) => between!(p => f(p.dst, p.src, p.n)),
            Function::Zero(f) => between!(p => f(p.dst, p.n)),
            Function::Compare(f) => between!(p => f(p.dst, p.src, p.n)),
            other => crate::bench::run_all(other, places),
        }
        held.set(area.held() & components);
    };
    let name = format!("{} + {}, {}", routine.name, save.name(), state.name());
    Entrant::new(name, calls).arranged(move |_| begin.set(true)).judged(move |place| {
        // SAFETY: n initialised bytes, unwritten meanwhile.
        let ours = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
        // SAFETY: as above.
        let theirs = unsafe { std::slice::from_raw_parts(place.src, place.n) };
        let right = match function {
            Function::Copy(_) => ours == theirs,
            Function::Zero(_) => ours.iter().all(|byte| *byte == 0),
            // A comparison writes nothing; its answers are checked on the bare kernel.
            _ => true,
        };
        if right {
            Ok(())
        } else {
            Err(format!("{} bytes are not right between save and restore", place.n))
        }
    })
}
