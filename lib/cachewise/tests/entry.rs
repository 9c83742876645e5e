//! The entries, each by itself and the exported functions in each of their states: before the table
//! is filled, with loops written out, with a profile that takes them back, and as under a checker
//! of memory. Every length to 1200 at either edge of pages that must not be left, every alignment
//! to a line, overlaps in both directions; and what a call must leave as it found it.
//!
//! One test, because the states are the process's and come in this order.
//! `CACHEWISE_TEST_EFFORT=small` is for an emulated CPU: every length to 320, some to 1200, and
//! each entry's own states only, of the entries whose name contains what `CACHEWISE_TEST_KERNELS`
//! says.

#![cfg(feature = "std")]

use cachewise::entry;
use cachewise::profile::{Decision, MAX_SIZE, Profile};
use cachewise::{Reuse, raw};
use cachewise_kernels::kernel::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Features, Function, Operation};

const PAGE: usize = 4096;
/// Longer than every class, and two steps of the loop.
const LONGEST: usize = 1200;

/// The longest of all lengths that are tried one by one under `CACHEWISE_TEST_EFFORT=small`, and of
/// those in which every byte differs once: beyond the largest class without a loop of the smallest
/// vectors.
const SMALL: [usize; 2] = [320, 150];

fn is_small() -> bool {
    std::env::var_os("CACHEWISE_TEST_EFFORT").is_none_or(|effort| effort == "small")
}

/// Two pages between two that may not be touched.
struct Fenced(*mut u8);

impl Fenced {
    fn new() -> Fenced {
        // SAFETY: a new mapping.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let inside = start.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: inside the mapping.
        let changed =
            unsafe { libc::mprotect(inside.cast(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(changed, 0);
        Fenced(inside)
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: two mapped pages that nobody else uses.
        unsafe { std::slice::from_raw_parts_mut(self.0, 2 * PAGE) }
    }
}

fn noise(into: &mut [u8], seed: u64) {
    fastrand::Rng::with_seed(seed).fill(into);
}

/// Functions under test: an operation each.
#[derive(Clone, Copy)]
struct Calls {
    copy: CopyFn,
    r#move: CopyFn,
    fill: FillFn,
    zero: ZeroFn,
    compare: CompareFn,
    equal: CompareFn,
}

const EXPORTED: Calls = Calls {
    copy: raw::copy_nonoverlapping,
    r#move: raw::copy,
    fill: raw::fill,
    zero: raw::zero,
    compare: raw::compare,
    equal: raw::equal_int,
};

/// The entries of that name.
fn ways(name: &str) -> Calls {
    let mut calls = EXPORTED;
    for operation in cachewise::profile::OPERATIONS {
        let entry = entry::variants(operation).iter().find(|entry| entry.name == name);
        match entry.expect("every operation has every way").function {
            Function::Copy(f) => calls.copy = f,
            Function::Move(f) => calls.r#move = f,
            Function::Fill(f) => calls.fill = f,
            Function::Zero(f) => calls.zero = f,
            Function::Compare(f) => calls.compare = f,
            Function::Equal(f) => calls.equal = f,
            other => panic!("{other:?} is no operation of the library"),
        }
    }
    calls
}

struct Buffers {
    calls: Calls,
    dst: Fenced,
    src: Fenced,
    clean: Vec<u8>,
    /// Longest comparison: one of a single byte fills the table.
    longest_comparison: usize,
    /// The number of calls checked, not counting those in which a single byte differs.
    checked: u64,
}

impl Buffers {
    fn new() -> Buffers {
        let mut buffers = Buffers {
            calls: EXPORTED,
            dst: Fenced::new(),
            src: Fenced::new(),
            clean: vec![0; 2 * PAGE],
            longest_comparison: 0,
            checked: 0,
        };
        noise(&mut buffers.clean, 1);
        noise(buffers.src.all(), 2);
        buffers.dst.all().copy_from_slice(&buffers.clean);
        buffers
    }

    /// Checks that work on `dst[to..to + n]` leaves `expected` there and touches nothing around.
    fn check(&mut self, to: usize, expected: &[u8], what: &str, work: impl Fn(*mut u8) -> *mut u8) {
        self.checked += 1;
        let n = expected.len();
        let place = self.dst.0.wrapping_add(to);
        assert_eq!(work(place), place, "{what} returns dst");
        let all = self.dst.all();
        assert!(all[to..to + n] == *expected, "{what}: {n} bytes at {to}");
        let (low, high) = (to.saturating_sub(300), (to + n + 300).min(2 * PAGE));
        assert!(all[low..to] == self.clean[low..to], "{what}: before {n} bytes at {to}");
        assert!(all[to + n..high] == self.clean[to + n..high], "{what}: after {n} bytes at {to}");
        all[to..to + n].copy_from_slice(&self.clean[to..to + n]);
    }

    fn one(&mut self, to: usize, from: usize, n: usize) {
        let calls = self.calls;
        let source = self.src.all()[from..from + n].to_vec();
        let src = self.src.0.wrapping_add(from).cast_const();
        // SAFETY: n bytes are mapped at both places, which lie apart.
        self.check(to, &source, "copy", |dst| unsafe { (calls.copy)(dst, src, n) });
        // SAFETY: as above.
        self.check(to, &source, "move", |dst| unsafe { (calls.r#move)(dst, src, n) });
        // SAFETY: as above.
        self.check(to, &vec![0xA5; n], "fill", |dst| unsafe { (calls.fill)(dst, 0x1A5, n) });
        // SAFETY: as above.
        self.check(to, &vec![0; n], "zero", |dst| unsafe { (calls.zero)(dst, n) });
        if n <= self.longest_comparison {
            self.compare(to, from, n);
        }
    }

    /// Every place of a difference, with a later one of the other sign, where the buffers end at
    /// pages that must not be read.
    fn compare_everywhere(&mut self, longest: usize) {
        let calls = self.calls;
        for n in 1..=longest.min(self.longest_comparison) {
            let edge = 2 * PAGE - n;
            let source = self.src.all()[edge..].to_vec();
            self.dst.all()[edge..].copy_from_slice(&source);
            let (a, b) = (self.dst.0.wrapping_add(edge), self.src.0.wrapping_add(edge));
            for at in 0..n {
                let place = &mut self.dst.all()[edge + at];
                *place ^= 0x40;
                let sign = if *place > source[at] { 1 } else { -1 };
                if at + 1 < n {
                    let last = &mut self.dst.all()[2 * PAGE - 1];
                    *last = if sign > 0 { source[n - 1].saturating_sub(1) } else { 255 };
                }
                // SAFETY: n bytes are mapped at both places.
                let order = unsafe { (calls.compare)(a, b, n) };
                assert_eq!(order.signum(), sign, "{n} bytes, {at} differs");
                // SAFETY: as above.
                assert_eq!(unsafe { (calls.equal)(a, b, n) }, 0, "{n} bytes, {at} differs");
                self.dst.all()[edge + at] = source[at];
                self.dst.all()[2 * PAGE - 1] = source[n - 1];
            }
        }
        let clean = self.clean.clone();
        self.dst.all().copy_from_slice(&clean);
    }

    fn compare(&mut self, to: usize, from: usize, n: usize) {
        let calls = self.calls;
        let source = self.src.all()[from..from + n].to_vec();
        self.dst.all()[to..to + n].copy_from_slice(&source);
        let a = self.dst.0.wrapping_add(to);
        let b = self.src.0.wrapping_add(from);
        let both = || {
            // SAFETY: n bytes are mapped at both places.
            let order = unsafe { (calls.compare)(a, b, n) };
            // SAFETY: as above.
            (order.signum(), unsafe { (calls.equal)(a, b, n) })
        };
        assert_eq!(both(), (0, 1), "compare {n} at {to}, {from}");
        for at in [0, 100, n / 3, n / 2, n.saturating_sub(33), n.saturating_sub(1)] {
            if at < n {
                self.dst.all()[to + at] ^= 0x80;
                let sign = if self.dst.all()[to + at] > source[at] { 1 } else { -1 };
                assert_eq!(both(), (sign, 0), "compare {n} at {to}, {from}: {at} differs");
                self.dst.all()[to + at] ^= 0x80;
            }
        }
        self.dst.all()[to..to + n].copy_from_slice(&self.clean[to..to + n]);
    }

    fn overlapping(&mut self, n: usize, distance: usize) {
        let calls = self.calls;
        let low = 700;
        for (to, from) in [(low, low + distance), (low + distance, low)] {
            let mut expected = self.clean.clone();
            expected.copy_within(from..from + n, to);
            let (dst, src) = (self.dst.0.wrapping_add(to), self.dst.0.wrapping_add(from));
            // SAFETY: both places are mapped for n bytes.
            assert_eq!(unsafe { (calls.r#move)(dst, src, n) }, dst);
            assert!(self.dst.all() == expected, "move {n} bytes from {from} to {to}");
            self.dst.all().copy_from_slice(&self.clean);
        }
    }

    fn everything(&mut self, longest: usize) {
        let [exhaustive, everywhere] = if is_small() { SMALL } else { [LONGEST, 700] };
        self.compare_everywhere(longest.min(everywhere));
        if longest == LONGEST {
            alike_in_the_low_bits(&self.calls);
        }
        for n in 0..=longest.min(exhaustive) {
            // The start of both, the end of both, and against each other.
            for (to, from) in [(0, 0), (2 * PAGE - n, 2 * PAGE - n), (0, 2 * PAGE - n)] {
                self.one(to, from, n);
            }
            let (to, from) = (PAGE - 7 - n / 2, PAGE - 100 + n % 64);
            self.one(to, from, n);
        }
        let sizes = [
            1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 64, 65, 128, 129, 256, 257, 300, 352, 353, 384,
            385, 512, 513,
        ];
        for n in sizes.into_iter().chain([768, LONGEST]).filter(|n| *n <= longest) {
            for to in 0..64 {
                self.one(600 + to, 900 + (to * 7 + n) % 64, n);
            }
            for distance in [1, 2, 8, 16, 31, 32, 33, 64, 100, 127, 128, 129, 255, 300, 600] {
                self.overlapping(n, distance);
            }
        }
    }
}

/// Distances of a multiple of 4096 and a little more or less, overlapping and apart: where a loop
/// goes downwards although it would not have to, and where it must not.
fn alike_in_the_low_bits(calls: &Calls) {
    const BYTES: usize = 40 << 10;
    const START: usize = 1001;
    let mut clean = vec![0; BYTES];
    noise(&mut clean, 9);
    let mut buffer = clean.clone();
    for n in [385, 386, 500, 1024, 4000, 4096, 4500, 9000, 20_000] {
        for pages in 0..=2 {
            for more in
                [0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 129, 255, 256, 257, 300, 3800, 4000, 4095]
            {
                let distance = pages * PAGE + more;
                for (to, from) in [(START, START + distance), (START + distance, START)] {
                    let start = buffer.as_mut_ptr();
                    let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
                    // SAFETY: both places are inside the buffer for n bytes.
                    assert_eq!(unsafe { (calls.r#move)(dst, src, n) }, dst);
                    let mut expected = clean.clone();
                    expected.copy_within(from..from + n, to);
                    assert!(buffer == expected, "move {n} bytes from {from} to {to}");
                    buffer.copy_from_slice(&clean);
                    if distance >= n {
                        let start = buffer.as_mut_ptr();
                        let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
                        // SAFETY: as above, and they do not overlap.
                        assert_eq!(unsafe { (calls.copy)(dst, src, n) }, dst);
                        assert!(buffer == expected, "copy {n} bytes from {from} to {to}");
                        buffer.copy_from_slice(&clean);
                    }
                }
            }
        }
    }
}

#[test]
fn every_state_of_the_entries() {
    let mut buffers = Buffers::new();
    if is_small() {
        // SAFETY: a function that may run at exit.
        assert_eq!(unsafe { libc::atexit(drain) }, 0);
        buffers.longest_comparison = LONGEST;
        cachewise::init();
    } else {
        before_the_table_is_filled_and_with_profiles(&mut buffers);
    }
    #[cfg(target_arch = "x86_64")]
    written_out::every_entry(&mut buffers);
}

/// On an emulated machine this is the only process: its end is the machine's, and what the serial
/// port has not sent by then is lost.
extern "C" fn drain() {
    // SAFETY: always callable; fails where that is no terminal.
    unsafe { libc::tcdrain(libc::STDOUT_FILENO) };
}

fn before_the_table_is_filled_and_with_profiles(buffers: &mut Buffers) {
    // No call of this process has filled the table yet, and up to here none does: as the constructor leaves
    // the entries, and as they are before it.
    buffers.everything(64);
    #[cfg(target_arch = "x86_64")]
    {
        assert!(written_out::longest() <= 256, "the table is not filled");
        written_out::as_linked();
        buffers.everything(64);
        assert_eq!(written_out::longest(), 0, "the table is not filled");
    }

    // The first comparison of a byte does.
    buffers.longest_comparison = LONGEST;
    buffers.everything(LONGEST);
    assert_eq!(cachewise::decision(Operation::Copy, Reuse::Unknown, 1).from, 0);

    // A profile that wants something else from 256 bytes on, and one that does from 640 on.
    let plain = plain();
    let other = if cfg!(target_arch = "x86_64") { "gpr64" } else { "bytes" };
    for (first, then, crossover) in [("bytes", "bytes", 512), (plain, other, 640)] {
        cachewise::load(&profile(first, then, crossover)).expect("a profile for this CPU");
        let decided = cachewise::decision(Operation::Copy, Reuse::Unknown, crossover);
        assert_eq!(decided.name(), format!("copy.{then}"));
        buffers.everything(LONGEST);
    }
}

#[cfg(target_arch = "x86_64")]
mod written_out {
    use super::{Buffers, EXPORTED, LONGEST, PAGE as PAGE_BYTES, ways};
    use cachewise::entry::{
        CHOSEN, COMPARE_ROW, COPY_ROW, DIRECT, EQUAL_ROW, FILL_ROW, MOVE_ROW, NARROW, PAGE,
        ZERO_ROW, choose,
    };
    use cachewise::profile::OPERATIONS;
    use cachewise_kernels::{Features, Operation, TABLE};
    use std::sync::atomic::Ordering::Relaxed;

    const ROWS: [usize; 6] = [COPY_ROW, MOVE_ROW, FILL_ROW, ZERO_ROW, COMPARE_ROW, EQUAL_ROW];

    /// The longest call that is done without the table by any operation.
    pub fn longest() -> usize {
        ROWS.into_iter().map(|row| DIRECT[row].load(Relaxed)).max().unwrap_or(0)
    }

    fn choose_all(way: u8) {
        use Operation::{Compare, Copy, Equal, Fill, Move, Zero};
        for operation in [Copy, Move, Fill, Zero, Compare, Equal] {
            choose(operation, way);
        }
    }

    /// The state of a program that has been linked and not yet started.
    pub fn as_linked() {
        choose_all(0);
        DIRECT.iter().for_each(|limit| limit.store(0, Relaxed));
        PAGE.store(-1, Relaxed);
    }

    /// Each entry, called by itself and by the exported functions: with its loop, and with the
    /// table from 257 bytes on.
    pub fn every_entry(buffers: &mut Buffers) {
        let (available, entries) =
            (Features::detect(), cachewise::entry::variants(Operation::Copy));
        let wanted = std::env::var("CACHEWISE_TEST_KERNELS").unwrap_or_default();
        let started = std::time::Instant::now();
        let (mut run, mut skipped) = (0, 0);
        for (number, entry) in entries.iter().enumerate() {
            if !wanted.split(',').any(|part| entry.name.contains(part)) {
                continue;
            }
            if !entry.runs_on(available) {
                skipped += 1;
                continue;
            }
            run += 1;
            // `mov rax, rdi` is what the preload library's `mempcpy` enters behind.
            let first = entry.function.address().cast::<[u8; 3]>();
            // SAFETY: the code of a function of this program, which is longer.
            assert_eq!(unsafe { first.read() }, [0x48, 0x89, 0xF8], "{}", entry.name);
            choose_all(number as u8);
            let calls = ways(entry.name);
            // An `sse2` way has no loop, whatever the limit.
            for limit in [256, usize::MAX] {
                ROWS.into_iter().for_each(|row| DIRECT[row].store(limit, Relaxed));
                for called in [calls, EXPORTED] {
                    buffers.calls = called;
                    buffers.everything(LONGEST);
                    // The table's kernels may begin at the end.
                    if entry.name != "sse2" {
                        super::all_there_is(
                            &called,
                            if limit == 256 { 32 } else { 224 },
                            entry.name,
                        );
                    }
                }
            }
            // As on a CPU that halves vectors of 64 or 32 bytes, and as on another.
            let (narrow, halves) = (NARROW.load(Relaxed), CHOSEN.halves.load(Relaxed));
            NARROW.store(1 - narrow, Relaxed);
            CHOSEN.halves.store(128 - halves, Relaxed);
            buffers.calls = calls;
            buffers.everything(LONGEST);
            if entry.name != "sse2" {
                super::all_there_is(&calls, 224, entry.name);
            }
            NARROW.store(narrow, Relaxed);
            CHOSEN.halves.store(halves, Relaxed);
            for n in 0..LONGEST {
                super::leaves_nothing(&calls, entry.name, n);
            }
            for n in 0..=64 {
                super::returns_what_it_is_given(&calls, entry.name, n);
            }
            // As under Valgrind: nothing is read behind the buffers.
            PAGE.store(-2, Relaxed);
            buffers.everything(64);
            PAGE.store(PAGE_BYTES as i32 - 16, Relaxed);
        }
        if !super::is_small() {
            behind_each_entry(buffers);
        }
        println!(
            "all operations: {run} entries, {} calls checked in {:.1} s, 0 failed, {skipped} skipped",
            buffers.checked,
            started.elapsed().as_secs_f64()
        );
    }

    /// Sizes that an entry leaves to others, with each kernel of the library and libc's routine there, at the edges of pages
    /// that must not be touched.
    fn behind_each_entry(buffers: &mut Buffers) {
        let here = Features::detect();
        let of = |operation| {
            let kernels = TABLE.iter().filter(move |kernel| kernel.operation() == operation);
            kernels.filter(|kernel| kernel.deploy && kernel.runs_on(here)).collect::<Vec<_>>()
        };
        let kernels = OPERATIONS.map(of);
        let rounds = kernels.iter().map(Vec::len).max().unwrap_or(0);
        buffers.calls = EXPORTED;
        for (number, entry) in cachewise::entry::variants(Operation::Copy).iter().enumerate() {
            if !entry.runs_on(here) {
                continue;
            }
            choose_all(number as u8);
            for round in 0..=rounds {
                for (operation, kernels) in OPERATIONS.into_iter().zip(&kernels) {
                    if round < rounds {
                        assert!(cachewise::use_only(kernels[round % kernels.len()]));
                    } else {
                        assert!(cachewise::use_libc(operation), "there is a C library");
                    }
                }
                for n in 100..=600 {
                    let end = 2 * PAGE_BYTES - n;
                    let mixed = if n % 2 == 0 { (0, end) } else { (end, 0) };
                    for (to, from) in [(0, 0), (end, end), mixed] {
                        buffers.one(to, from, n);
                    }
                }
            }
        }
    }
}

/// "All there is", and sizes with the highest bit: a comparison ends where the bytes differ, and no size is taken for a
/// negative one. Differences in the first `within` bytes are found before a place that depends on the size is read.
#[cfg(target_arch = "x86_64")]
fn all_there_is(calls: &Calls, within: usize, name: &str) {
    let (left, mut right) = ([1u8; 1024], [1u8; 1024]);
    for at in 0..within {
        right[at] = 2;
        for n in [1 << 63, (1 << 63) + 20, usize::MAX - 31, usize::MAX] {
            let (a, b) = (left.as_ptr(), right.as_ptr());
            // SAFETY: what is read ends in the vectors behind the difference, which are inside both arrays.
            let less = unsafe { (calls.compare)(a, b, n) };
            // SAFETY: as above.
            let greater = unsafe { (calls.compare)(b, a, n) };
            // SAFETY: as above.
            let same = unsafe { (calls.equal)(a, b, n) };
            let found = ([less, greater].map(i32::signum), same);
            assert_eq!(found, ([-1, 1], 0), "{name}: {n:#x} bytes, {at} differs");
        }
        right[at] = 1;
    }
}

/// The calling convention's part that no byte of memory shows: the direction flag is clear, the x87
/// stack empty, its control word and MXCSR's as before, and of ymm0 to ymm15 (zmm0 to zmm15), which
/// slow down every SSE instruction while they are in use, the upper halves are zero.
#[cfg(target_arch = "x86_64")]
fn leaves_nothing(calls: &Calls, name: &str, n: usize) {
    use std::arch::asm;

    /// Calls the function at `$function` with these arguments; the rest it leaves in `$state`.
    macro_rules! after {
        ($function:expr, $first:expr, $second:expr, $n:expr, $state:expr) => {
            // SAFETY: a C function with arguments that it allows; the stack is aligned as it wants and
            // below the red zone; all that it may change is named.
            unsafe {
                asm!(
                    "mov r12, rsp",
                    "sub rsp, 256",
                    "and rsp, -64",
                    "call rax",
                    "mov rsp, r12",
                    "pushfq",
                    "pop [r13]",
                    "fnstenv [r13 + 16]",
                    "stmxcsr [r13 + 8]",
                    in("rax") $function,
                    in("r13") $state,
                    in("rdi") $first,
                    in("rsi") $second,
                    in("rdx") $n,
                    out("r12") _,
                    clobber_abi("C"),
                )
            }
        };
    }
    let (mut a, mut b) = (vec![7u8; n + 64], vec![7u8; n + 64]);
    let (to, from) = (a.as_mut_ptr(), b.as_mut_ptr());
    let zero = (calls.zero as *const (), n, 0);
    for (what, (function, second, third)) in [
        ("copy", (calls.copy as *const (), from as usize, n)),
        ("move", (calls.r#move as *const (), from as usize, n)),
        ("fill", (calls.fill as *const (), 5, n)),
        ("zero", zero),
        ("compare", (calls.compare as *const (), from as usize, n)),
        ("equal", (calls.equal as *const (), from as usize, n)),
    ] {
        let mut state = [0u32; 16];
        after!(function, to, second, third, state.as_mut_ptr());
        let [flags, _, mxcsr, _, control, _, tags, ..] = state;
        assert_eq!(flags >> 10 & 1, 0, "{what} {name}, {n} bytes: the direction flag");
        assert_eq!(mxcsr & !0x3f, 0x1f80, "{what} {name}, {n} bytes: MXCSR");
        assert_eq!(control & 0xffff, 0x037f, "{what} {name}, {n} bytes: the x87 control word");
        assert_eq!(tags & 0xffff, 0xffff, "{what} {name}, {n} bytes: the x87 stack");
        if Features::detect().contains(Features::AVX2) {
            assert_eq!(uppers(function, to, second, third), [0; 2], "{what} {name}, {n} bytes");
        }
    }
}

/// Behind its first instruction a copy makes no use of what it returns: whoever wants another value
/// returned, as `mempcpy` does, enters there with it.
#[cfg(target_arch = "x86_64")]
fn returns_what_it_is_given(calls: &Calls, name: &str, n: usize) {
    let from: Vec<u8> = (0..n).map(|at| at as u8 | 1).collect();
    let (second, third) = (from.as_ptr() as usize, n);
    for (what, function) in [("copy", calls.copy as *const u8), ("move", calls.r#move as *const u8)]
    {
        // Room for what would go to another place.
        let mut all = vec![9u8; 3 * n + 64];
        let returned: usize;
        // SAFETY: the function's own arguments, and as in `leaves_nothing`; its first instruction is three
        // bytes long and only makes rax of rdi.
        unsafe {
            std::arch::asm!(
                "mov r12, rsp",
                "sub rsp, 256",
                "and rsp, -64",
                "call r11",
                "mov rsp, r12",
                in("r11") function.wrapping_add(3),
                inlateout("rax") all.as_ptr().addr() + n => returned,
                in("rdi") all.as_mut_ptr(),
                in("rsi") second,
                in("rdx") third,
                out("r12") _,
                clobber_abi("C"),
            );
        }
        assert_eq!(returned, all.as_ptr().addr() + n, "{what} {name}, {n} bytes");
        let (stored, rest) = all.split_at(n);
        assert_eq!(stored, from, "{what} {name}, {n} bytes");
        assert!(rest.iter().all(|byte| *byte == 9), "{what} {name}, {n} bytes: behind them");
    }
}

/// The upper halves of ymm0 to ymm15, or-ed together, after a call.
#[cfg(target_arch = "x86_64")]
fn uppers(function: *const (), first: *mut u8, second: usize, third: usize) -> [u64; 2] {
    let mut found = [0u64; 2];
    // SAFETY: as in `leaves_nothing`; AVX2 is there.
    unsafe {
        std::arch::asm!(
            "vzeroupper",
            "mov r12, rsp",
            "sub rsp, 256",
            "and rsp, -64",
            "call rax",
            "mov rsp, r12",
            "vorps ymm0, ymm0, ymm1",
            "vorps ymm2, ymm2, ymm3",
            "vorps ymm4, ymm4, ymm5",
            "vorps ymm6, ymm6, ymm7",
            "vorps ymm8, ymm8, ymm9",
            "vorps ymm10, ymm10, ymm11",
            "vorps ymm12, ymm12, ymm13",
            "vorps ymm14, ymm14, ymm15",
            "vorps ymm0, ymm0, ymm2",
            "vorps ymm4, ymm4, ymm6",
            "vorps ymm8, ymm8, ymm10",
            "vorps ymm12, ymm12, ymm14",
            "vorps ymm0, ymm0, ymm4",
            "vorps ymm8, ymm8, ymm12",
            "vorps ymm0, ymm0, ymm8",
            "vextractf128 [r13], ymm0, 1",
            "vzeroupper",
            in("rax") function,
            in("r13") found.as_mut_ptr(),
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            out("r12") _,
            clobber_abi("C"),
        );
    }
    found
}

/// Returns whether the plain loop of the entry that is in use here is a vector's.
fn plain() -> &'static str {
    match entry::chosen(Operation::Copy).map(|entry| entry.name) {
        Some("avx512vl") => "avx512",
        Some("avx2") => "avx",
        _ => "bytes",
    }
}

fn profile(first: &str, then: &str, crossover: u64) -> Profile {
    let mut decisions = Vec::new();
    for operation in [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero] {
        for (from, to, technique) in [(256, crossover - 1, first), (crossover, MAX_SIZE, then)] {
            let kernel = format!("{operation}.{technique}");
            decisions.push(Decision::new(operation, Reuse::Unknown, (from, to), &kernel));
        }
    }
    Profile { decisions, ..Profile::here() }
}
