//! A routine's machine code at another place in memory.
//!
//! A start draws places of memory, stack and libraries anew, but by whole pages: where in a page a routine begins is the linker's choice, the same in every launch, and worth several per cent of a short
//! call (Mytkowicz et al., ASPLOS 2009; Curtsinger and Berger, STABILIZER, ASPLOS 2013). So each launch calls a copy of the
//! routine at a place of its own, and an interval over launches is one over places.

use cachewise_kernels::Function;

/// Bytes that every entry's alignment is, wherever it is linked: no program has it anywhere in between.
const ALIGNMENT: usize = 64;

/// The place of a launch's copies: bytes past the beginning of a page. Launches in a row are 13 lines apart, which the 64 lines
/// of a page have no common divisor with.
const fn offset(launch: u32) -> usize {
    (launch as usize).wrapping_mul(13) % 64 * ALIGNMENT
}

/// The routine at the place of that launch; itself where code cannot be copied: on other architectures, where the system
/// refuses memory that is executed, and if an instruction does not reach from there what it refers to.
pub(crate) fn placed(function: Function, launch: Option<u32>) -> Function {
    #[cfg(target_arch = "x86_64")]
    if let Some(copy) = launch.and_then(|launch| copied(function.address(), offset(launch))) {
        return with_address(function, copy);
    }
    let _ = launch;
    function
}

/// A function of the same kind at another address, not null. Its calls are unsafe, as they were.
#[cfg(target_arch = "x86_64")]
fn with_address(function: Function, code: *const u8) -> Function {
    fn like<F: Copy>(_: F, code: *const u8) -> F {
        const { assert!(size_of::<F>() == size_of::<*const u8>()) };
        // SAFETY: the function pointers of `Function` have the size of an address, and this one is not null.
        unsafe { std::mem::transmute_copy(&code) }
    }
    match function {
        Function::Copy(f) => Function::Copy(like(f, code)),
        Function::Move(f) => Function::Move(like(f, code)),
        Function::Fill(f) => Function::Fill(like(f, code)),
        Function::Zero(f) => Function::Zero(like(f, code)),
        Function::Compare(f) => Function::Compare(like(f, code)),
        Function::Equal(f) => Function::Equal(like(f, code)),
        Function::CopyPages(f) => Function::CopyPages(like(f, code)),
        Function::ZeroPages(f) => Function::ZeroPages(like(f, code)),
    }
}

#[cfg(target_arch = "x86_64")]
use x86::copied;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use cachewise_kernels::PAGE_SIZE;
    use iced_x86::{
        ConstantOffsets, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction,
    };
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
    use std::collections::BTreeMap;
    use std::ffi::c_void;

    /// Branches to what lies further away from the beginning leave the copy.
    const MOST: usize = 4096;
    /// Bytes between two places that are tried for the copy.
    const APART: usize = 1 << 20;
    /// Places that are tried on either side: displacements reach 2 GiB.
    const TRIED: usize = 1900;

    /// An instruction that refers to a place relative to itself.
    struct Reference {
        /// The place it refers to.
        target: u64,
        /// Bytes from the beginning of the instruction to the displacement, and its size in bytes.
        at: (usize, usize),
    }

    /// A copy of the code that begins there, at `offset` past the beginning of a page.
    pub(super) fn copied(function: *const u8, offset: usize) -> Option<*const u8> {
        let begin = function.addr();
        let code = reached(begin)?;
        let end = code.iter().map(|(at, (length, _))| at + length).max()?;
        let memory = near(begin, (offset + end - begin).next_multiple_of(PAGE_SIZE))?;
        let copy = memory.wrapping_byte_add(offset).cast::<u8>();
        // SAFETY: inside of the new mapping, which has so many bytes past the offset; the code is mapped for reading.
        unsafe { copy.copy_from_nonoverlapping(function, end - begin) };
        for (at, (_, reference)) in &code {
            let Some(Reference { target, at: (place, size) }) = reference else { continue };
            if (begin as u64..end as u64).contains(target) {
                continue;
            }
            let moved = (begin as i64).wrapping_sub(copy.addr() as i64);
            let displacement = copy.wrapping_add(at - begin + place).cast::<i32>();
            // SAFETY: four bytes of an instruction of the copy.
            let old = i64::from(unsafe { displacement.read_unaligned() });
            let new = i32::try_from(old + moved).ok().filter(|_| *size == 4);
            let Some(new) = new else {
                // SAFETY: the new mapping, which nothing refers to yet.
                let _ =
                    unsafe { munmap(memory, (offset + end - begin).next_multiple_of(PAGE_SIZE)) };
                return None;
            };
            // SAFETY: as above.
            unsafe { displacement.write_unaligned(new) };
        }
        let length = (offset + end - begin).next_multiple_of(PAGE_SIZE);
        // SAFETY: the new mapping.
        unsafe { mprotect(memory, length, MprotectFlags::READ | MprotectFlags::EXEC) }.ok()?;
        Some(copy)
    }

    /// The instruction there, and where its constants lie in it. An instruction that its page does not hold whole goes on in
    /// the next one, which is then mapped too.
    fn decoded(at: usize) -> Option<(Instruction, ConstantOffsets)> {
        /// Bytes of the longest instruction (Intel SDM, 2.3.11).
        const LONGEST: usize = 15;
        for room in [LONGEST.min(PAGE_SIZE - at % PAGE_SIZE), LONGEST] {
            // SAFETY: machine code, which is mapped for reading, and which nobody writes.
            let bytes =
                unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(at), room) };
            let mut decoder = Decoder::with_ip(64, bytes, at as u64, DecoderOptions::NONE);
            let instruction = decoder.decode();
            let offsets = decoder.get_constant_offsets(&instruction);
            if !instruction.is_invalid() {
                return Some((instruction, offsets));
            }
            if decoder.last_error() != DecoderError::NoMoreBytes {
                break;
            }
        }
        None
    }

    /// The instructions that are reached from the beginning without a call, by address: length, and what is referred to
    /// relative to them.
    fn reached(begin: usize) -> Option<BTreeMap<usize, (usize, Option<Reference>)>> {
        let mut found = BTreeMap::new();
        let mut next = vec![begin];
        while let Some(at) = next.pop() {
            if found.contains_key(&at) {
                continue;
            }
            let (instruction, offsets) = decoded(at)?;
            let branch = branch_target(&instruction);
            let reference = if instruction.is_ip_rel_memory_operand() {
                Some(Reference {
                    target: instruction.ip_rel_memory_address(),
                    at: (offsets.displacement_offset(), offsets.displacement_size()),
                })
            } else {
                branch.map(|target| Reference {
                    target,
                    at: (offsets.immediate_offset(), offsets.immediate_size()),
                })
            };
            found.insert(at, (instruction.len(), reference));
            let is_own = |target: &usize| (begin..begin + MOST).contains(target);
            let follows = Some(at + instruction.len()).filter(|follows| is_own(follows));
            let branch = branch.and_then(|target| usize::try_from(target).ok()).filter(is_own);
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch => next.extend(branch),
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    next.extend(branch);
                    next.push(follows?);
                }
                FlowControl::Return
                | FlowControl::IndirectBranch
                | FlowControl::Exception
                | FlowControl::Interrupt => {}
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                    next.push(follows?);
                }
            }
        }
        Some(found)
    }

    /// The target of a direct branch or call.
    fn branch_target(instruction: &Instruction) -> Option<u64> {
        use iced_x86::OpKind::NearBranch64;
        (instruction.op_count() > 0 && instruction.op0_kind() == NearBranch64)
            .then(|| instruction.near_branch_target())
    }

    /// New memory in reach of displacements from there.
    fn near(address: usize, length: usize) -> Option<*mut c_void> {
        let page = address & !(PAGE_SIZE - 1);
        let tried = (1..=TRIED).flat_map(|step| {
            [page.checked_sub(step * APART), page.checked_add(step * APART)].into_iter().flatten()
        });
        for hint in tried {
            let hint = std::ptr::without_provenance_mut(hint);
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: without a fixed address nothing that exists is replaced.
            let memory = unsafe { mmap_anonymous(hint, length, access, flags) }.ok()?;
            if memory.addr().abs_diff(address) < TRIED * APART + (4 << 20) {
                return Some(memory);
            }
            // SAFETY: the mapping that was just made.
            let _ = unsafe { munmap(memory, length) };
        }
        None
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::callee::once;
    use crate::routines::{libc_reference, library};
    use cachewise_kernels::Operation;
    use cachewise_measure::Place;
    use std::collections::BTreeSet;

    #[test]
    fn launches_have_places_of_their_own() {
        let places: BTreeSet<usize> = (1..=64).map(offset).collect();
        assert_eq!(places.len(), 64);
        assert!(places.iter().all(|place| *place < 4096));
    }

    #[test]
    fn a_copy_of_the_code_does_what_the_routine_does() {
        use Operation::{Compare, Copy, Equal, Fill, Move, Zero};
        for operation in [Copy, Move, Fill, Zero, Compare, Equal] {
            for launch in 1..=4 {
                let original = library(operation).function;
                let copy = placed(original, Some(launch));
                assert_ne!(copy.address(), original.address(), "{operation}: not copied");
                assert_eq!(original.address().addr() % ALIGNMENT, 0, "{operation}");
                assert_eq!(copy.address().addr() % 4096, offset(launch), "{operation}");
                for n in (0..300).chain([1024, 2047, 2048, 4096, 5000]) {
                    assert_eq!(
                        after(copy, n),
                        after(libc_reference(operation).function, n),
                        "{operation} {n}"
                    );
                }
            }
            assert_eq!(
                placed(library(operation).function, None).address(),
                library(operation).function.address()
            );
        }
    }

    /// Both buffers and the result of one call.
    fn after(function: Function, n: usize) -> (Vec<u8>, Vec<u8>, i32) {
        let [mut to, mut from] =
            [3, 7].map(|by| (0..8192).map(|at| (at * by % 251) as u8).collect::<Vec<u8>>());
        if n > 40 {
            to.copy_within(100..100 + n - 20, 4096 - 1000);
            from[1..n].fill(9);
            to[1..n].fill(9);
            to[n - 3] = 8;
        }
        let result = match function {
            // SAFETY: both have more bytes.
            Function::Compare(f) => unsafe { f(to[1..].as_ptr(), from[1..].as_ptr(), n) }.signum(),
            // SAFETY: as above.
            Function::Equal(f) => unsafe { f(to[1..].as_ptr(), from[1..].as_ptr(), n) },
            other => {
                let place = Place { dst: to[1..].as_mut_ptr(), src: from[1..].as_ptr(), n };
                once(other, &place);
                0
            }
        };
        (to, from, result)
    }
}
