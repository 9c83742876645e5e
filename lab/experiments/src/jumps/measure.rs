//! `jumps`: the cost of a taken jump in a call, without counters.
//!
//! One data path, a copy of 32 bytes by two vectors, lies behind no taken jump, one, two and three, each to the next line of
//! code. It is copied to several places in a line and in drawn lines and pages: address randomisation moves code by
//! pages, so that a function's place in its line is the same in every launch, and its luck with it.

use crate::prelude::*;

pub(super) fn figures() -> Vec<Figure> {
    vec![Figure::bars("A copy of 32 bytes behind taken jumps", "ns").by(&[OFFSET])]
}

/// The candidates' names, by their jumps.
pub(super) const BEHIND: [&str; 4] = ["no jump", "1 jump", "2 jumps", "3 jumps"];

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_: &mut Setting) -> Result {
    nothing("jumps: not here; the code that it calls is for x86-64")
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::run;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::BEHIND;
    use crate::prelude::*;
    use cachewise_kernels::kernel::CopyFn;
    use memmap2::{Mmap, MmapMut};

    /// Bytes of each call: the data path has no others.
    const SIZE: usize = 32;

    /// Places of the first instruction in its line.
    const PLACES: [usize; 4] = [0, 16, 32, 48];

    /// Loads of the first and the last 16 bytes, their stores, and the return of the destination.
    const COPY: [u8; 20] = [
        0x0F, 0x10, 0x06, // movups xmm0, [rsi]
        0x0F, 0x10, 0x4C, 0x16, 0xF0, // movups xmm1, [rsi + rdx - 16]
        0x0F, 0x11, 0x07, // movups [rdi], xmm0
        0x0F, 0x11, 0x4C, 0x17, 0xF0, // movups [rdi + rdx - 16], xmm1
        0x48, 0x89, 0xF8, // mov rax, rdi
        0xC3,
    ];

    /// A jump to the next line, from the first of its five bytes on.
    const JUMP: [u8; 5] = [0xE9, (LINE - 5) as u8, 0, 0, 0];

    pub(in super::super) fn run(setting: &mut Setting) -> Result {
        let mut random = fastrand::Rng::with_seed(setting.bench.seed);
        let made = PLACES.map(|place| code(place, &mut random));
        let cells = made.into_iter().zip(PLACES).collect();
        setting.through(
            cells,
            |_| 1.0,
            |setting, (made, place)| {
                let (_code, copies) = made?;
                let calls = copies.into_iter().zip(BEHIND).map(|(copy, behind)| {
                    let callee = Callee::new(Function::Copy(copy));
                    Call::new(behind, move |places: &[Place]| callee.run(places))
                        .checked(is_copied)
                        .told(move |row| at(row, &[(OFFSET, place as f64)]))
                });
                let task = setting.task(
                    Operation::Copy,
                    SIZE,
                    Cell { label: "jumps".into(), ..Cell::warm() },
                );
                setting.calls(&task, calls.collect())?;
                Ok(format!("{place} bytes into a line"))
            },
        )
    }

    /// The data path behind each number of jumps, each beginning at that place of a drawn line of a page of its own.
    fn code(place: usize, random: &mut fastrand::Rng) -> Result<(Mmap, Vec<CopyFn>)> {
        let unmapped = |error| MeasureError::Map { bytes: BEHIND.len() * PAGE_SIZE, source: error };
        let mut bytes = MmapMut::map_anon(BEHIND.len() * PAGE_SIZE).map_err(unmapped)?;
        let room = PAGE_SIZE / LINE - BEHIND.len() - 1;
        let starts: Vec<usize> = (0..BEHIND.len())
            .map(|jumps| {
                let start = jumps * PAGE_SIZE + random.usize(0..room) * LINE + place;
                for nth in 0..jumps {
                    bytes[start + nth * LINE..][..JUMP.len()].copy_from_slice(&JUMP);
                }
                bytes[start + jumps * LINE..][..COPY.len()].copy_from_slice(&COPY);
                start
            })
            .collect();
        let code = bytes.make_exec().map_err(unmapped)?;
        let function = |start: usize| {
            let address = code[start..].as_ptr();
            // SAFETY: the bytes there are a function of that type for 16 to 32 bytes, and are called with 32.
            unsafe { std::mem::transmute::<*const u8, CopyFn>(address) }
        };
        let copies = starts.into_iter().map(function).collect();
        Ok((code, copies))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_copy_is_made_behind_every_number_of_jumps_at_every_place() {
            for place in PLACES {
                let (_code, copies) =
                    code(place, &mut fastrand::Rng::with_seed(place as u64)).expect("memory");
                assert_eq!(copies.len(), BEHIND.len());
                for copy in copies {
                    assert_eq!(copy as usize % LINE, place);
                    let (from, mut to) = ([7u8; 34], [0u8; 34]);
                    // SAFETY: 32 of 34 bytes.
                    let returned = unsafe { copy(to.as_mut_ptr(), from.as_ptr(), SIZE) };
                    assert_eq!(returned, to.as_mut_ptr());
                    assert!(to[..32] == [7; 32] && to[32..] == [0; 2]);
                }
            }
        }
    }
}
