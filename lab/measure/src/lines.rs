//! Preparation of a buffer's lines before a sample: other bytes in it, and out of every cache.
//! Operands are put in their state by these.

use crate::LINE;
use crate::arena::non_zero_bytes;

/// 2^64 divided by the golden ratio: the step of a Weyl sequence.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Writes other bytes than for any other seed, none of them zero, by temporal stores.
///
/// # Safety
/// `start` is writable for `n` bytes, which nobody else uses meanwhile.
pub unsafe fn overwrite(start: *mut u8, n: usize, seed: u64) {
    let mut word = seed.wrapping_mul(GOLDEN);
    let whole = n / 8;
    for index in 0..whole {
        word = word.wrapping_add(GOLDEN);
        let place = start.wrapping_add(index * 8).cast::<u64>();
        // SAFETY: within the n bytes; no alignment is assumed.
        unsafe { place.write_unaligned(non_zero_bytes(word)) };
    }
    for index in whole * 8..n {
        // SAFETY: within the n bytes.
        unsafe { start.wrapping_add(index).write_volatile(word as u8 | 1) };
    }
}

/// [`overwrite`] by non-temporal stores where there are any, so that whole lines are in memory and in no cache
/// afterwards; by temporal ones elsewhere, and at ends that are no whole words.
///
/// # Safety
/// As [`overwrite`].
pub unsafe fn overwrite_in_memory(start: *mut u8, n: usize, seed: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_sfence, _mm_stream_si64};
        let head = start.align_offset(8).min(n);
        let (words, first) = ((n - head) / 8, start.wrapping_add(head));
        let tail = head + 8 * words;
        // SAFETY: within the n bytes.
        unsafe { overwrite(start, head, seed) };
        let mut word = seed.wrapping_mul(GOLDEN);
        for index in 0..words {
            word = word.wrapping_add(GOLDEN);
            let place = first.cast::<i64>().wrapping_add(index);
            // SAFETY: aligned and within the n bytes; the fence below orders it before anyone reads.
            unsafe { _mm_stream_si64(place, non_zero_bytes(word) as i64) };
        }
        // SAFETY: every x86-64 CPU has SSE.
        unsafe { _mm_sfence() };
        // SAFETY: within the n bytes.
        unsafe { overwrite(start.wrapping_add(tail), n - tail, seed) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        overwrite(start, n, seed)
    };
}

/// Drives every line of these bytes out of every cache (Intel SDM volume 2A and AMD APM volume 3, CLFLUSH and
/// CLFLUSHOPT; Arm ARM, DC CIVAC; Power ISA, dcbf), and waits until they have left. Where there is no such
/// instruction they stay.
///
/// # Safety
/// `start` is readable for `n` bytes.
pub unsafe fn evict(start: *const u8, n: usize) {
    let first = start as usize / LINE * LINE;
    #[cfg(target_arch = "x86_64")]
    let optimised = has_clflushopt();
    for line in (first..start as usize + n).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        if optimised {
            // SAFETY: a mapped line; the instruction changes no memory.
            unsafe { core::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack)) };
            continue;
        }
        // SAFETY: a mapped line, and no byte changes. Every x86-64 CPU has SSE2, Linux lets user space do
        // this on Arm (SCTLR_EL1.UCI), and on POWER it is unprivileged.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                #[cfg(target_arch = "x86_64")]
                "clflush [{0}]",
                #[cfg(target_arch = "aarch64")]
                "dc civac, {0}",
                #[cfg(target_arch = "powerpc64")]
                "dcbf 0, {0}",
                in(reg) line,
                options(nostack),
            );
        }
    }
    // SAFETY: a barrier changes nothing. Whatever follows waits until the lines have left.
    unsafe {
        core::arch::asm!(
            "",
            #[cfg(target_arch = "x86_64")]
            "mfence",
            #[cfg(target_arch = "aarch64")]
            "dsb ish",
            #[cfg(target_arch = "powerpc64")]
            "sync",
            options(nostack),
        );
    }
}

#[cfg(target_arch = "x86_64")]
fn has_clflushopt() -> bool {
    static FOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Intel SDM volume 2A, CPUID: leaf 7, EBX bit 23.
    *FOUND.get_or_init(|| core::arch::x86_64::__cpuid_count(7, 0).ebx >> 23 & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_another_one_and_none_is_zero_at_every_place_and_length() {
        for way in [overwrite, overwrite_in_memory] {
            for (offset, n) in [(0, 0), (1, 7), (3, 64), (5, 1001), (0, 4096)] {
                let mut seen = Vec::new();
                for seed in [1, 2] {
                    let mut bytes = vec![0u8; n + 16];
                    // SAFETY: so many bytes of this vector.
                    unsafe { way(bytes.as_mut_ptr().wrapping_add(offset), n, seed) };
                    // SAFETY: as above.
                    unsafe { evict(bytes.as_ptr().wrapping_add(offset), n) };
                    let (inside, outside) = (&bytes[offset..offset + n], &bytes[offset + n..]);
                    assert!(inside.iter().all(|byte| *byte != 0), "{offset} {n}");
                    assert!(bytes[..offset].iter().chain(outside).all(|byte| *byte == 0));
                    seen.push(inside.to_vec());
                }
                let lines = seen[0].chunks(64).zip(seen[1].chunks(64));
                assert!(lines.into_iter().all(|(one, other)| one != other), "{offset} {n}");
            }
        }
    }
}
