//! The loops of the vector kernels, generic over register width and [`Shape`].
//!
//! A temporal loop covers its unaligned edges with vectors that overlap the aligned middle and are
//! loaded before anything is stored: no branch on alignment, and safe for overlap in its own
//! direction. A non-temporal loop covers them exactly instead, because an ordinary store to a line
//! that a non-temporal store has just sent to memory would read that line back from memory.
//!
//! The order of loads and stores written here is the order that runs: both are to unrelated
//! pointers, so the compiler may not move one across the other.

#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's `next` is not inlined into a crate without builtins, and would be called"
)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a group of loads or stores at consecutive offsets discharges one obligation: the \
              group lies inside the buffer by the loop's invariant, which the comment names"
)]

use super::vector::Vector;
use crate::kernel::Prefetch;
use crate::{CACHE_LINE, PAGE_SIZE};
use core::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm_sfence};

/// Parameters that distinguish one member of the copy and fill families from another.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Store non-temporally.
    pub nt: bool,
    /// Loads before the matching stores, in registers: 1, 2, 4 or 8.
    pub group: usize,
    /// Prefetch of the source.
    pub prefetch: Prefetch,
    /// Places in the buffers that are worked on in turn; 1 is a plain linear pass.
    pub streams: usize,
    /// Bytes between the places; 0 splits the whole buffer evenly.
    pub span: usize,
    /// From the end to the beginning.
    pub backward: bool,
    /// From both ends to the middle, in turn.
    pub ends: bool,
}

impl Shape {
    pub(super) const PLAIN: Shape = Shape {
        nt: false,
        group: 4,
        prefetch: Prefetch::None,
        streams: 1,
        span: 0,
        backward: false,
        ends: false,
    };
    pub(super) const NT: Shape = Shape { nt: true, ..Shape::PLAIN };

    #[cfg(feature = "lab")]
    pub(super) const fn group(self, group: usize) -> Shape {
        Shape { group, ..self }
    }
    pub(super) const fn prefetch(self, prefetch: Prefetch) -> Shape {
        Shape { prefetch, ..self }
    }
    pub(super) const fn streams(self, streams: usize, span: usize) -> Shape {
        Shape { streams, span, ..self }
    }
    pub(super) const fn backward(self) -> Shape {
        Shape { backward: true, ..self }
    }
    pub(super) const fn ends(self) -> Shape {
        Shape { ends: true, ..self }
    }
}

/// A shape as a type, so that every branch on it is decided at compile time.
pub(super) trait Shaped {
    const SHAPE: Shape;
}

/// Orders every non-temporal store before whatever the caller stores next.
#[inline(always)]
fn fence() {
    // SAFETY: SSE is part of every x86-64 CPU.
    unsafe { _mm_sfence() }
}

/// Copies `n <= 16` bytes, all loads before all stores.
#[inline(always)]
unsafe fn copy_to_16(dst: *mut u8, src: *const u8, n: usize) {
    macro_rules! ends {
        ($word:ty) => {{
            const WIDTH: usize = size_of::<$word>();
            // SAFETY: WIDTH <= n <= 2 * WIDTH, so both ends lie inside and cover the buffer.
            unsafe {
                let head = src.cast::<$word>().read_unaligned();
                let tail = src.add(n - WIDTH).cast::<$word>().read_unaligned();
                dst.cast::<$word>().write_unaligned(head);
                dst.add(n - WIDTH).cast::<$word>().write_unaligned(tail);
            }
        }};
    }
    match n {
        8..=16 => ends!(u64),
        4..=7 => ends!(u32),
        2..=3 => ends!(u16),
        1 => ends!(u8),
        _ => {}
    }
}

/// Copies `n` bytes, `half * BYTES <= n <= 2 * half * BYTES`, as `half` vectors from each end, all
/// loads before all stores.
#[inline(always)]
unsafe fn copy_ends<V: Vector, const HALF: usize>(dst: *mut u8, src: *const u8, n: usize) {
    let last = n - HALF * V::BYTES;
    // SAFETY: HALF vectors from the start and HALF up to the end lie inside by the range of n.
    unsafe {
        let mut head = [V::load(src); HALF];
        let mut tail = [V::load(src.add(last)); HALF];
        for i in 1..HALF {
            head[i] = V::load(src.add(i * V::BYTES));
            tail[i] = V::load(src.add(last + i * V::BYTES));
        }
        // Ascending: stores that straddle lines are cheaper when the next one finishes the line.
        for i in 0..HALF {
            V::store(dst.add(i * V::BYTES), head[i]);
        }
        for i in 0..HALF {
            V::store(dst.add(last + i * V::BYTES), tail[i]);
        }
    }
}

/// Copies `n <= 8 * BYTES` bytes, all loads before all stores, so that overlap is harmless.
#[inline(always)]
unsafe fn copy_small<V: Vector>(dst: *mut u8, src: *const u8, n: usize) {
    let half = <V::Half as Vector>::BYTES;
    let quarter = <<V::Half as Vector>::Half as Vector>::BYTES;
    // SAFETY: each branch's range of n is what its callee demands; the buffers are the caller's.
    unsafe {
        if n > 4 * V::BYTES {
            copy_ends::<V, 4>(dst, src, n);
        } else if n > 2 * V::BYTES {
            copy_ends::<V, 2>(dst, src, n);
        } else if n >= V::BYTES {
            copy_ends::<V, 1>(dst, src, n);
        } else if half < V::BYTES && n >= half {
            copy_ends::<V::Half, 1>(dst, src, n);
        } else if quarter < half && n >= quarter {
            copy_ends::<<V::Half as Vector>::Half, 1>(dst, src, n);
        } else {
            copy_to_16(dst, src, n);
        }
    }
}

/// Stores one vector at an aligned place, temporally or not as the shape says.
#[inline(always)]
unsafe fn put<V: Vector, S: Shaped>(to: *mut u8, value: V) {
    if S::SHAPE.nt {
        // SAFETY: the caller vouches for BYTES writable bytes at an aligned place.
        unsafe { V::stream_aligned(to, value) }
    } else {
        // SAFETY: as above.
        unsafe { V::store_aligned(to, value) }
    }
}

/// Copies `COUNT` vectors at consecutive places, `group` loads before the matching stores; the
/// groups go from the last to the first when `DOWN`, as a backward pass over overlap demands.
#[inline(always)]
unsafe fn step<V: Vector, S: Shaped, const COUNT: usize, const DOWN: bool>(
    d: *mut u8,
    s: *const u8,
) {
    /// Loads into as many named registers as it is given names, then stores them.
    macro_rules! group {
        ($at:ident, $($register:ident $index:literal),+) => {{
            $(let $register = V::load(s.add(($at + $index) * V::BYTES));)+
            $(put::<V, S>(d.add(($at + $index) * V::BYTES), $register);)+
        }};
    }
    let group = if S::SHAPE.group < COUNT { S::SHAPE.group } else { COUNT };
    let mut done = 0;
    while done < COUNT {
        let at = if DOWN { COUNT - group - done } else { done };
        // SAFETY: the caller vouches for COUNT vectors at both places; at + group <= COUNT.
        unsafe {
            match group {
                1 => group!(at, a 0),
                2 => group!(at, a 0, b 1),
                4 => group!(at, a 0, b 1, c 2, e 3),
                _ => group!(at, a 0, b 1, c 2, e 3, f 4, g 5, h 6, i 7),
            }
        }
        done += group;
    }
}

/// Issues the shape's software prefetch for the `bytes` that the next step will load.
#[inline(always)]
fn prefetch_ahead<S: Shaped>(s: *const u8, bytes: usize) {
    let mut line = 0;
    while line < bytes {
        let ahead = |distance: u32| s.wrapping_add(distance as usize + line).cast::<i8>();
        // A prefetch never faults, so an address past the end is harmless (SDM volume 2B,
        // PREFETCHh; APM volume 3, PREFETCHlevel).
        match S::SHAPE.prefetch {
            // SAFETY: prefetch dereferences nothing.
            Prefetch::Nta(distance) => unsafe { _mm_prefetch::<_MM_HINT_NTA>(ahead(distance)) },
            // SAFETY: prefetch dereferences nothing.
            Prefetch::T0(distance) => unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead(distance)) },
            // SAFETY: prefetch dereferences nothing.
            Prefetch::T1(distance) => unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead(distance)) },
            _ => {}
        }
        line += CACHE_LINE;
    }
}

/// Advances over the linear part of a forward copy: whole steps while `d + step <= end`, with the
/// shape's prefetch, block touching, streams or from both ends. Returns how far it came; less than
/// one step of `STEP * BYTES` is left before `end`. The caller starts at or before `end`.
#[inline(always)]
unsafe fn forward_steps<V: Vector, S: Shaped, const STEP: usize>(
    mut d: *mut u8,
    mut s: *const u8,
    end: *mut u8,
) -> (*mut u8, *const u8) {
    let bytes = STEP * V::BYTES;
    let left = |d: *mut u8| end.addr() - d.addr();
    if S::SHAPE.streams > 1 {
        let streams = S::SHAPE.streams;
        let span = match S::SHAPE.span {
            0 => left(d) / streams / PAGE_SIZE * PAGE_SIZE,
            span => span,
        };
        while span > 0 && left(d) >= streams * span {
            let mut at = 0;
            while at < span {
                for stream in 0..streams {
                    let offset = stream * span + at;
                    // SAFETY: offset + bytes <= streams * span <= what is left; span is a multiple
                    // of a page and so of a step.
                    unsafe { step::<V, S, STEP, false>(d.add(offset), s.add(offset)) };
                }
                at += bytes;
            }
            // SAFETY: streams * span bytes were left.
            (d, s) = unsafe { (d.add(streams * span), s.add(streams * span)) };
        }
    }
    if S::SHAPE.ends {
        // The two places approach each other, so that whatever their addresses have in common they
        // have in common once.
        let whole = left(d) / bytes * bytes;
        let (mut low, mut high) = (0, whole);
        while high - low >= 2 * bytes {
            high -= bytes;
            // SAFETY: low + bytes <= high and high + bytes <= whole <= what is left.
            unsafe {
                step::<V, S, STEP, false>(d.add(low), s.add(low));
                step::<V, S, STEP, false>(d.add(high), s.add(high));
            }
            low += bytes;
        }
        if low < high {
            // SAFETY: both are multiples of a step: exactly one is between them.
            unsafe { step::<V, S, STEP, false>(d.add(low), s.add(low)) };
        }
        // SAFETY: that much was left.
        (d, s) = unsafe { (d.add(whole), s.add(whole)) };
    }
    if let Prefetch::Block(block) = S::SHAPE.prefetch {
        let block = block as usize;
        while left(d) >= block {
            let mut line = 0;
            while line < block {
                // SAFETY: line < block <= what is left. Volatile: the load is the prefetch.
                unsafe { s.add(line).read_volatile() };
                line += CACHE_LINE;
            }
            let mut at = 0;
            while at < block {
                // SAFETY: at + bytes <= block; a block is a multiple of a step.
                unsafe { step::<V, S, STEP, false>(d.add(at), s.add(at)) };
                at += bytes;
            }
            // SAFETY: block bytes were left.
            (d, s) = unsafe { (d.add(block), s.add(block)) };
        }
    }
    while left(d) >= bytes {
        prefetch_ahead::<S>(s, bytes);
        // SAFETY: a whole step is left.
        (d, s) = unsafe {
            step::<V, S, STEP, false>(d, s);
            (d.add(bytes), s.add(bytes))
        };
    }
    (d, s)
}

/// Four vectors from consecutive places, in registers.
#[inline(always)]
unsafe fn load_4<V: Vector>(from: *const u8) -> (V, V, V, V) {
    // SAFETY: the caller vouches for four vectors.
    unsafe {
        (
            V::load(from),
            V::load(from.add(V::BYTES)),
            V::load(from.add(2 * V::BYTES)),
            V::load(from.add(3 * V::BYTES)),
        )
    }
}

/// The counterpart of [`load_4`].
#[inline(always)]
unsafe fn store_4<V: Vector>(to: *mut u8, held: (V, V, V, V)) {
    // SAFETY: the caller vouches for four vectors.
    unsafe {
        V::store(to, held.0);
        V::store(to.add(V::BYTES), held.1);
        V::store(to.add(2 * V::BYTES), held.2);
        V::store(to.add(3 * V::BYTES), held.3);
    }
}

/// Temporal forward copy of `n > 8 * BYTES` bytes; safe when `dst < src` overlap.
#[inline(always)]
unsafe fn forward_temporal<V: Vector, S: Shaped, const STEP: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
) {
    // SAFETY: n > 8 * BYTES, so the first vector and the last four are inside; the middle runs from
    // the first aligned place in d (at most BYTES in) while d < end = dst + n - 4 * BYTES, so its
    // last vector ends before dst + n. What it leaves before `end` is less than a step, and single
    // vectors cover it.
    unsafe {
        let head = V::load(src);
        let tail_at = n - 4 * V::BYTES;
        let tail = load_4::<V>(src.add(tail_at));
        let skip = V::BYTES - (dst.addr() & (V::BYTES - 1));
        let end = dst.add(tail_at);
        let (mut d, mut s) = (dst.add(skip), src.add(skip));
        let shape = S::SHAPE;
        if STEP > 4
            || shape.streams > 1
            || shape.ends
            || matches!(shape.prefetch, Prefetch::Block(_))
        {
            (d, s) = forward_steps::<V, S, STEP>(d, s, end);
            while d < end {
                V::store_aligned(d, V::load(s));
                (d, s) = (d.add(V::BYTES), s.add(V::BYTES));
            }
        } else {
            // A step may overshoot `end` by less than four vectors: still inside.
            while d < end {
                prefetch_ahead::<S>(s, 4 * V::BYTES);
                step::<V, S, 4, false>(d, s);
                (d, s) = (d.add(4 * V::BYTES), s.add(4 * V::BYTES));
            }
        }
        store_4::<V>(dst.add(tail_at), tail);
        V::store(dst, head);
    }
}

/// Temporal backward copy of `n > 8 * BYTES` bytes; safe when `src < dst` overlap.
#[inline(always)]
unsafe fn backward_temporal<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: the mirror image of `forward_temporal`: the last vector and the first four are loaded
    // first; the middle descends from the last aligned place while d > dst + 4 * BYTES, so a step
    // of four vectors starts after dst.
    unsafe {
        let last = V::load(src.add(n - V::BYTES));
        let first = load_4::<V>(src);
        let keep = dst.addr().wrapping_add(n) & (V::BYTES - 1);
        let begin = dst.add(4 * V::BYTES);
        let (mut d, mut s) = (dst.add(n - keep), src.add(n - keep));
        while d > begin {
            (d, s) = (d.sub(4 * V::BYTES), s.sub(4 * V::BYTES));
            step::<V, S, 4, true>(d, s);
        }
        store_4::<V>(dst, first);
        V::store(dst.add(n - V::BYTES), last);
    }
}

/// Non-temporal forward copy of any `n`; safe when `dst < src` overlap, because every part is
/// loaded before the store that could reach it.
#[inline(always)]
unsafe fn forward_nt<V: Vector, S: Shaped, const STEP: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
) {
    let skip = (dst.addr().wrapping_neg() & (CACHE_LINE - 1)).min(n);
    let whole_lines = (n - skip) / CACHE_LINE * CACHE_LINE;
    let rest = n - skip - whole_lines;
    // SAFETY: skip + whole_lines + rest == n, each part is copied exactly, and `d` is 64-byte
    // aligned throughout the middle. An edge part is shorter than a line, so copy_small may do it.
    unsafe {
        copy_small::<V>(dst, src, skip);
        let (d, s) = (dst.add(skip), src.add(skip));
        let end = d.add(whole_lines);
        let (mut d, mut s) = forward_steps::<V, S, STEP>(d, s, end);
        while d < end {
            V::stream_aligned(d, V::load(s));
            (d, s) = (d.add(V::BYTES), s.add(V::BYTES));
        }
        copy_small::<V>(d, s, rest);
    }
    fence();
}

/// Non-temporal backward copy of any `n`; safe when `src < dst` overlap.
#[inline(always)]
unsafe fn backward_nt<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, n: usize) {
    let keep = (dst.addr().wrapping_add(n) & (CACHE_LINE - 1)).min(n);
    let whole_lines = (n - keep) / CACHE_LINE * CACHE_LINE;
    let rest = n - keep - whole_lines;
    // SAFETY: the mirror image of `forward_nt`.
    unsafe {
        copy_small::<V>(dst.add(n - keep), src.add(n - keep), keep);
        let begin = dst.add(rest);
        let (mut d, mut s) = (dst.add(n - keep), src.add(n - keep));
        while d.addr() - begin.addr() >= 4 * V::BYTES {
            (d, s) = (d.sub(4 * V::BYTES), s.sub(4 * V::BYTES));
            step::<V, S, 4, true>(d, s);
        }
        while d > begin {
            (d, s) = (d.sub(V::BYTES), s.sub(V::BYTES));
            V::stream_aligned(d, V::load(s));
        }
        copy_small::<V>(dst, src, rest);
    }
    fence();
}

/// The forward copy of a shape, at the step its grouping needs.
#[inline(always)]
unsafe fn forward<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe {
        match (S::SHAPE.nt, S::SHAPE.group > 4) {
            (true, true) => forward_nt::<V, S, 8>(dst, src, n),
            (true, false) => forward_nt::<V, S, 4>(dst, src, n),
            (false, true) => forward_temporal::<V, S, 8>(dst, src, n),
            (false, false) => forward_temporal::<V, S, 4>(dst, src, n),
        }
    }
}

/// The backward copy of a shape.
#[inline(always)]
unsafe fn backward<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe {
        if S::SHAPE.nt {
            backward_nt::<V, S>(dst, src, n);
        } else {
            backward_temporal::<V, S>(dst, src, n);
        }
    }
}

/// The body of every `copy.*` kernel of the vector families.
#[inline(always)]
pub(super) unsafe fn copy<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`CopyFn`); the temporal loops get more than 8 * BYTES bytes.
    unsafe {
        if n <= 8 * V::BYTES && !S::SHAPE.nt {
            copy_small::<V>(dst, src, n);
        } else if S::SHAPE.backward {
            backward::<V, S>(dst, src, n);
        } else {
            forward::<V, S>(dst, src, n);
        }
    }
    dst
}

/// A shape for overlapping operands: one linear pass, because streams and
/// ends work on several places at once, through the cache, because the lines it stores are lines it
/// is about to load.
struct Overlapping<S>(core::marker::PhantomData<S>);
impl<S: Shaped> Shaped for Overlapping<S> {
    const SHAPE: Shape =
        Shape { streams: 1, ends: false, nt: false, prefetch: Prefetch::None, ..S::SHAPE };
}

/// The body of every `move.*` kernel of the vector families: the copy of the same shape where
/// nothing overlaps, else the linear pass in the direction that overlap allows.
#[inline(always)]
pub(super) unsafe fn r#move<V: Vector, S: Shaped>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    let up = dst.addr().wrapping_sub(src.addr());
    let down = src.addr().wrapping_sub(dst.addr());
    // SAFETY: the caller's promise (`MoveFn`). The small copy loads everything first; the linear
    // passes get more than 8 * BYTES bytes. `up < n` means that dst starts inside the source, so
    // only a backward pass reads every byte before it is overwritten; `down < n` the reverse.
    unsafe {
        if n <= 8 * V::BYTES {
            copy_small::<V>(dst, src, n);
        } else if up < n {
            backward::<V, Overlapping<S>>(dst, src, n);
        } else if down < n {
            forward::<V, Overlapping<S>>(dst, src, n);
        } else if S::SHAPE.backward {
            backward::<V, S>(dst, src, n);
        } else {
            forward::<V, S>(dst, src, n);
        }
    }
    dst
}

/// The body of every `copy-pages.*` kernel: no edge to care for.
#[inline(always)]
pub(super) unsafe fn copy_pages<V: Vector, S: Shaped>(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller's promise (`CopyPagesFn`): page-aligned blocks of that many bytes; a page
    // is a multiple of every step, so nothing is left over.
    unsafe { forward_steps::<V, S, 4>(dst, src, dst.add(PAGE_SIZE << order)) };
    if S::SHAPE.nt {
        fence();
    }
}

/// Fills `n <= 16` bytes with a byte repeated in `word`.
#[inline(always)]
unsafe fn fill_to_16(dst: *mut u8, word: u64, n: usize) {
    macro_rules! ends {
        ($word:ty) => {
            // SAFETY: one to two words long, so both ends lie inside and cover the buffer.
            unsafe {
                dst.cast::<$word>().write_unaligned(word as $word);
                dst.add(n - size_of::<$word>()).cast::<$word>().write_unaligned(word as $word);
            }
        };
    }
    match n {
        8..=16 => ends!(u64),
        4..=7 => ends!(u32),
        2..=3 => ends!(u16),
        1 => ends!(u8),
        _ => {}
    }
}

/// Fills `n` bytes, `HALF * BYTES <= n <= 2 * HALF * BYTES`, as `HALF` vectors from each end.
#[inline(always)]
unsafe fn fill_ends<V: Vector, const HALF: usize>(dst: *mut u8, byte: u8, n: usize) {
    // SAFETY: HALF vectors fit at either end by the range of n.
    unsafe {
        let value = V::splat(byte);
        for i in 0..HALF {
            V::store(dst.add(i * V::BYTES), value);
        }
        for i in 0..HALF {
            V::store(dst.add(n - (HALF - i) * V::BYTES), value);
        }
    }
}

/// Fills `n <= 8 * BYTES` bytes.
#[inline(always)]
unsafe fn fill_small<V: Vector>(dst: *mut u8, byte: u8, n: usize) {
    let half = <V::Half as Vector>::BYTES;
    let quarter = <<V::Half as Vector>::Half as Vector>::BYTES;
    // SAFETY: each branch's range of n is what its callee demands; the buffer is the caller's.
    unsafe {
        if n > 4 * V::BYTES {
            fill_ends::<V, 4>(dst, byte, n);
        } else if n > 2 * V::BYTES {
            fill_ends::<V, 2>(dst, byte, n);
        } else if n >= V::BYTES {
            fill_ends::<V, 1>(dst, byte, n);
        } else if half < V::BYTES && n >= half {
            fill_ends::<V::Half, 1>(dst, byte, n);
        } else if quarter < half && n >= quarter {
            fill_ends::<<V::Half as Vector>::Half, 1>(dst, byte, n);
        } else {
            fill_to_16(dst, u64::from(byte) * 0x0101_0101_0101_0101, n);
        }
    }
}

/// The body of every `fill.*` and `zero.*` kernel of the vector families.
#[inline(always)]
pub(super) unsafe fn fill<V: Vector, S: Shaped>(dst: *mut u8, byte: u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`FillFn`). Temporal: n > 8 * BYTES; the aligned middle lies
    // between the first vector and the last four, which overlap it. Non-temporal: head, whole lines
    // and rest add up to n, the lines are 64-byte aligned.
    unsafe {
        let value = V::splat(byte);
        if S::SHAPE.nt {
            let skip = (dst.addr().wrapping_neg() & (CACHE_LINE - 1)).min(n);
            let whole_lines = (n - skip) / CACHE_LINE * CACHE_LINE;
            fill_small::<V>(dst, byte, skip);
            let mut d = dst.add(skip);
            let end = d.add(whole_lines);
            while end.addr() - d.addr() >= 4 * V::BYTES {
                put_4::<V, S>(d, value);
                d = d.add(4 * V::BYTES);
            }
            while d < end {
                V::stream_aligned(d, value);
                d = d.add(V::BYTES);
            }
            fill_small::<V>(d, byte, n - skip - whole_lines);
            fence();
        } else if n <= 8 * V::BYTES {
            fill_small::<V>(dst, byte, n);
        } else {
            V::store(dst, value);
            let mut d = dst.add(V::BYTES - (dst.addr() & (V::BYTES - 1)));
            let end = dst.add(n - 4 * V::BYTES);
            while d < end {
                put_4::<V, S>(d, value);
                d = d.add(4 * V::BYTES);
            }
            store_4::<V>(end, (value, value, value, value));
        }
    }
    dst
}

/// Stores four equal vectors at consecutive aligned places.
#[inline(always)]
unsafe fn put_4<V: Vector, S: Shaped>(d: *mut u8, value: V) {
    // SAFETY: the caller vouches for four aligned vectors.
    unsafe {
        put::<V, S>(d, value);
        put::<V, S>(d.add(V::BYTES), value);
        put::<V, S>(d.add(2 * V::BYTES), value);
        put::<V, S>(d.add(3 * V::BYTES), value);
    }
}

/// The body of every `zero-pages.*` kernel of the vector families.
#[inline(always)]
pub(super) unsafe fn zero_pages<V: Vector, S: Shaped>(dst: *mut u8, order: u32) {
    let bytes = PAGE_SIZE << order;
    let mut at = 0;
    // SAFETY: the caller's promise (`ZeroPagesFn`): a page-aligned block of that many bytes, which
    // is a multiple of four vectors.
    unsafe {
        let value = V::splat(0);
        while at < bytes {
            put_4::<V, S>(dst.add(at), value);
            at += 4 * V::BYTES;
        }
    }
    if S::SHAPE.nt {
        fence();
    }
}
