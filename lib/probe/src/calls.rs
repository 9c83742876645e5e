//! The calls of allocators, by address; and the system call that the question interrupted.

use crate::control::{Call, Control, kind};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

/// Calls what is asked for.
pub fn one(control: &Control) {
    let of = control.kind.load(Relaxed);
    let done = match of {
        kind::GLIBC => glibc(control),
        kind::JEMALLOC => jemalloc(control),
        kind::MIMALLOC => mimalloc(control),
        kind::TCMALLOC => tcmalloc(control),
        kind::PYTHON => python(control),
        _ => trim(of, control),
    };
    control.refused.store(u32::from(!done), Relaxed);
}

/// A function by its address.
fn at(control: &Control, which: usize) -> *const () {
    ptr::with_exposed_provenance(control.addresses[which].load(Relaxed) as usize)
}

macro_rules! call {
    ($control:expr, $which:expr, $type:ty, $($argument:expr),*) => {{
        // SAFETY: the asker read it from the symbols of the file that is mapped there, under the name of this type.
        let called: $type = unsafe { core::mem::transmute::<*const (), $type>(at($control, $which)) };
        // SAFETY: the arguments are those of the interface; what it does is done to a copy, or is what was asked for.
        unsafe { called($($argument),*) }
    }};
}

/// Text that a function prints into a file.
fn printed(control: &Control, print: impl FnOnce(*mut libc::FILE)) -> bool {
    // SAFETY: nobody else writes there while a question is open.
    let file = crate::memory_file(unsafe { &mut *control.text.get() });
    if file.is_null() {
        return false;
    }
    print(file);
    // SAFETY: open.
    let length = unsafe { libc::ftell(file) }.max(0) as u64;
    // SAFETY: opened above.
    unsafe { libc::fclose(file) };
    answered(control, [length, 0, 0]);
    length > 0
}

fn glibc(control: &Control) -> bool {
    type Info = unsafe extern "C" fn(c_int, *mut libc::FILE) -> c_int;
    printed(control, |file| {
        let _: c_int = call!(control, 0, Info, 0, file);
    })
}

/// Python prints the state of its own allocator for whoever holds its lock; nobody does in a copy of a process that waits.
fn python(control: &Control) -> bool {
    type Ensure = unsafe extern "C" fn() -> c_int;
    type Print = unsafe extern "C" fn(*mut libc::FILE) -> c_int;
    let _: c_int = call!(control, 1, Ensure,);
    printed(control, |file| {
        let _: c_int = call!(control, 0, Print, file);
    })
}

type Mallctl =
    unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

fn jemalloc(control: &Control) -> bool {
    let mut epoch = 1u64;
    let place = ptr::from_mut(&mut epoch).cast();
    let refreshed =
        call!(control, 0, Mallctl, c"epoch".as_ptr(), ptr::null_mut(), ptr::null_mut(), place, 8);
    let figure = |name: &CStr| {
        let (mut value, mut size) = (0usize, size_of::<usize>());
        let place = ptr::from_mut(&mut value).cast();
        let failed =
            call!(control, 0, Mallctl, name.as_ptr(), place, &mut size, ptr::null_mut(), 0);
        (failed == 0).then_some(value as u64)
    };
    let (Some(allocated), Some(resident)) = (figure(c"stats.allocated"), figure(c"stats.resident"))
    else {
        return false;
    };
    let cached = figure(c"stats.arenas.4096.tcache_bytes").unwrap_or(0);
    answered(control, [allocated, resident, cached]);
    refreshed == 0
}

/// An area of a heap: `mi_heap_area_t` as far as it is the same from mimalloc 1.7 on.
#[repr(C)]
struct Area {
    blocks: *const c_void,
    reserved: usize,
    committed: usize,
    used: usize,
    block_size: usize,
}

extern "C" fn visited(
    _: *const c_void,
    area: *const Area,
    _: *mut c_void,
    _: usize,
    sums: *mut c_void,
) -> bool {
    // SAFETY: mimalloc hands on what `mimalloc` below gave it.
    let sums = unsafe { &mut *sums.cast::<[u64; 2]>() };
    // SAFETY: valid while it is visited.
    let area = unsafe { &*area };
    sums[0] += (area.used * area.block_size) as u64;
    sums[1] += area.committed as u64;
    true
}

fn mimalloc(control: &Control) -> bool {
    type Visit = unsafe extern "C" fn(
        *const c_void,
        bool,
        extern "C" fn(*const c_void, *const Area, *mut c_void, usize, *mut c_void) -> bool,
        *mut c_void,
    ) -> bool;
    let mut sums = [0u64; 2];
    let heap = call!(control, 1, unsafe extern "C" fn() -> *const c_void,);
    // Blocks of threads that have ended come to the first thread's heap by it.
    call!(control, 2, unsafe extern "C" fn(bool), true);
    let place = ptr::from_mut(&mut sums).cast();
    let all = call!(control, 0, Visit, heap, false, visited, place);
    answered(control, [sums[0], sums[1], 0]);
    all
}

fn tcmalloc(control: &Control) -> bool {
    type Property = unsafe extern "C" fn(*const c_char, *mut usize) -> c_int;
    let figure = |name: &CStr| {
        let mut value = 0usize;
        (call!(control, 0, Property, name.as_ptr(), &mut value) != 0).then_some(value as u64)
    };
    let (Some(live), Some(heap)) =
        (figure(c"generic.current_allocated_bytes"), figure(c"generic.heap_size"))
    else {
        return false;
    };
    answered(control, [live, heap, figure(c"tcmalloc.pageheap_unmapped_bytes").unwrap_or(0)]);
    true
}

fn answered(control: &Control, numbers: [u64; 3]) {
    for (place, number) in control.numbers.iter().zip(numbers) {
        place.store(number, Relaxed);
    }
}

/// Gives memory back: what the call returned, and how long it took.
fn trim(of: u32, control: &Control) -> bool {
    let begun = now();
    let returned = match of - kind::TRIM {
        kind::GLIBC => call!(control, 0, unsafe extern "C" fn(usize) -> c_int, 0),
        kind::JEMALLOC => {
            let (none, purge) = (ptr::null_mut(), c"arena.4096.purge");
            call!(control, 0, Mallctl, purge.as_ptr(), none, ptr::null_mut(), none, 0)
        }
        kind::MIMALLOC => {
            call!(control, 0, unsafe extern "C" fn(bool), true);
            0
        }
        kind::TCMALLOC => {
            call!(control, 0, unsafe extern "C" fn(),);
            0
        }
        _ => return false,
    };
    answered(control, [returned as u64, now() - begun, 0]);
    true
}

/// Nanoseconds.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: its own place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// True if the thread was interrupted in the call in which it was seen; that is then made again, if the kernel does not do
/// so. Another one, at the same place with the same arguments and the same stack, it cannot be.
pub fn waited(call: &Call, context: *mut c_void) -> bool {
    let [number, arguments @ ..] = call.registers.each_ref().map(|one| one.load(Relaxed));
    let (at, stack) = (call.at.load(Relaxed), call.stack.load(Relaxed));
    if at == 0 || context.is_null() {
        return false;
    }
    // SAFETY: the third argument of a handler with SA_SIGINFO.
    let context = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    registers::waited(context, (number, arguments, at, stack))
}

/// A system call: its number, its arguments, the address behind it, and the stack.
type Made = (u64, [u64; 6], u64, u64);

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::Made;
    use core::ffi::c_int;
    use libc::{REG_R8, REG_R9, REG_R10, REG_RAX, REG_RDI, REG_RDX, REG_RIP, REG_RSI, REG_RSP};

    /// Bytes of the instruction that makes a system call.
    const LENGTH: u64 = 2;

    pub fn waited(context: &mut libc::mcontext_t, (number, arguments, at, stack): Made) -> bool {
        let of = |register: c_int| context.gregs[register as usize] as u64;
        let kept = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9].map(of);
        let is_there = kept == arguments && of(REG_RSP) == stack;
        let result = of(REG_RAX);
        let is_again = of(REG_RIP) == at - LENGTH && result == number;
        let is_failing = of(REG_RIP) == at && result as i64 == -i64::from(libc::EINTR);
        if is_there && is_failing {
            context.gregs[REG_RIP as usize] = (at - LENGTH) as i64;
            context.gregs[REG_RAX as usize] = number as i64;
        }
        // The kernel makes it again by itself, or it is made again here.
        is_there && (is_again || is_failing)
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use super::Made;

    /// Bytes of an instruction.
    const LENGTH: u64 = 4;

    pub fn waited(context: &mut libc::mcontext_t, (number, arguments, at, stack): Made) -> bool {
        let (first, found) = (context.regs[0], context.pc);
        // The first argument's register has the result.
        let is_there = context.regs[1..6] == arguments[1..]
            && context.regs[8] == number
            && context.sp == stack;
        let is_failing = found == at && first as i64 == -i64::from(libc::EINTR);
        if is_there && is_failing {
            context.pc = at - LENGTH;
            context.regs[0] = arguments[0];
        }
        is_there && (is_failing || (found == at - LENGTH && first == arguments[0]))
    }
}

/// Elsewhere nothing is given back in the process itself.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod registers {
    pub fn waited(_: &mut libc::mcontext_t, _: super::Made) -> bool {
        false
    }
}
