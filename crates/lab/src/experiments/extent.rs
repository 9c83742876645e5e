//! `extent`: zeroing and copying as one call over a large extent against page by page.
//!
//! Seed 003: "zeroing large consecutive areas of memory is more efficient than zeroing page size
//! chunks". Two causes are told apart: what each call costs (pages in ascending order), and what a
//! free list's order costs (the same pages shuffled). All four ways of one kernel take turns on the
//! same extent and are compared with its one call.

use super::prelude::*;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Speed by the bytes of one call";
    vec![Figure::curve(title, CHUNK, "gbps").by(&[SHUFFLED, "size"])]
}

#[derive(Clone, Copy, PartialEq)]
struct Way {
    chunk: usize,
    shuffled: bool,
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let vector = widest_class(setting.bench.features);
    let quick = setting.options.quick;
    let wanted = |kernel: &Kernel| {
        let modern = is_plain(kernel) && kernel.registers == vector;
        let integer = matches!(kernel.technique(), "rep.stosb" | "rep.movsb" | "clzero");
        let period = !quick
            && (matches!(kernel.technique(), "gpr64" | "gpr64.nt")
                || (is_plain(kernel) && kernel.registers == RegisterClass::Xmm));
        modern || integer || period
    };
    let fields = fields(setting, [Operation::Zero, Operation::Copy], wanted)?;
    setting.begin(fields.len() as f64);
    for routines in &fields {
        let operation = routines[0].function.operation();
        for size in sizes(setting, operation)? {
            cover(setting, operation, routines, size)?;
        }
        setting.out.advance(operation.name(), 1.0);
    }
    Ok(())
}

/// 1 GiB per call, or what the budget has for as many operands; less when quick, though always what
/// no cache holds. What was cut is said.
fn sizes(setting: &mut Setting, operation: Operation) -> Result<Vec<usize>> {
    let operands = if operation == Operation::Copy { 2 } else { 1 };
    // Each operand is rounded up to whole huge pages.
    let most =
        (MemoryBudget::process().limit() / operands).saturating_sub(HUGE_PAGE) & !(HUGE_PAGE - 1);
    let asked = &setting.options.sizes;
    if !asked.is_empty() {
        let is_odd = |size: &&usize| !size.is_multiple_of(PAGE_SIZE) || **size < 2 * PAGE_SIZE;
        return match asked.iter().find(is_odd) {
            None => Ok(asked.clone()),
            Some(found) => nothing(format!(
                "an extent of {found} bytes; accepted: two 4096-byte pages or more, whole ones"
            )),
        };
    }
    let dram = setting.bench.machine.caches.dram_bytes().max(64 << 20);
    // Quick: what all operands together need to leave every cache behind.
    let wanted = if setting.options.quick { dram / operands } else { 1 << 30 };
    let size = wanted.min(most);
    if size < wanted {
        setting.out.note(format!(
            "{operation} covers {size} bytes instead of {wanted}: the memory budget has no more (--memory raises it up to a quarter of RAM)"
        ))?;
    }
    Ok(vec![size])
}

fn cover(setting: &mut Setting, operation: Operation, routines: &[Routine], size: usize) -> Result {
    let mut ways = vec![Way { chunk: size, shuffled: false }];
    let smaller = [HUGE_PAGE, PAGE_SIZE].into_iter();
    let smaller = smaller.filter(|chunk| *chunk < size && size.is_multiple_of(*chunk));
    ways.extend(smaller.map(|chunk| Way { chunk, shuffled: false }));
    ways.push(Way { chunk: PAGE_SIZE, shuffled: true });
    let mut order: Vec<u32> = (0..(size / PAGE_SIZE) as u32).collect();
    fastrand::Rng::with_seed(setting.bench.seed).shuffle(&mut order);
    let order = &order;
    let mut calls: Vec<Call<'_>> = routines
        .iter()
        .flat_map(|routine| ways.iter().map(move |way| covering(routine, *way, order)))
        .collect();
    let task = setting.task(operation, size, Cell::reused("extent"));
    let Some(found) = setting.measure(&task, &mut each(&mut calls))? else { return Ok(()) };
    for (nth, routine) in routines.iter().enumerate() {
        let first = nth * ways.len();
        for (which, way) in ways.iter().enumerate() {
            let row = variant(&found, (first + which, first), &routine.name, ", one call");
            let axes = [(CHUNK, way.chunk as f64), (SHUFFLED, flag(way.shuffled))];
            setting.out.row(at(row, &axes))?;
        }
    }
    Ok(())
}

fn covering<'o>(routine: &Routine, way: Way, order: &'o [u32]) -> Call<'o> {
    let function = routine.function;
    let calls = move |places: &[Place]| {
        for place in places {
            let (dst, src) = (place.dst, place.src);
            match function {
                Function::Zero(f) => pieces(place.n, way, order, |at, n| {
                    // SAFETY: pieces lie within the place's n bytes; the CPU runs the kernel.
                    unsafe { f(dst.wrapping_add(at), n) };
                }),
                Function::Copy(f) => pieces(place.n, way, order, |at, n| {
                    // SAFETY: pieces lie within the place's n bytes, the operands do not overlap, and
                    // the CPU runs the kernel.
                    unsafe { f(dst.wrapping_add(at), src.wrapping_add(at), n) };
                }),
                // Not reached: fields are of these two operations.
                other => run_all(other, std::slice::from_ref(place)),
            }
        }
    };
    let name = format!("{} by {}", routine.name, bytes(way.chunk));
    let is_right = if matches!(function, Function::Zero(_)) { is_zeroed } else { is_copied };
    Call::new(name, calls).checked(is_right)
}

/// Calls with offset and length of every piece.
#[inline(always)]
fn pieces(size: usize, way: Way, order: &[u32], mut call: impl FnMut(usize, usize)) {
    if way.shuffled {
        for &page in order {
            call(page as usize * way.chunk, way.chunk);
        }
    } else {
        for at in (0..size).step_by(way.chunk) {
            call(at, way.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_byte_once() {
        for way in [
            Way { chunk: 4 * PAGE_SIZE, shuffled: false },
            Way { chunk: PAGE_SIZE, shuffled: false },
            Way { chunk: PAGE_SIZE, shuffled: true },
        ] {
            let mut seen = vec![0u8; 4 * PAGE_SIZE];
            pieces(seen.len(), way, &[2, 0, 3, 1], |at, n| {
                seen[at..at + n].iter_mut().for_each(|count| *count += 1);
            });
            assert!(seen.iter().all(|count| *count == 1));
        }
    }
}
