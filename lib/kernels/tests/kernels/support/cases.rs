//! One random case per operation, checked against the scalar oracle, and its spelling in bytes.
//!
//! proptest draws cases, the fuzz targets decode them from the fuzzer's bytes, and `corpus`
//! replays the fuzzers' files. The bytes are little-endian fields in the order of each struct,
//! zero where the input ends early, reduced to the range a field has, so that every input is a
//! case: a length or distance takes 3 bytes, a place 2, a seed 2, the rest as their types.

use super::arena::{MARGIN, fail, first_difference};
use super::guarded::Guarded;
use super::watch::{self, Call};
use super::{Checked, machine_state};
use cachewise_kernels::{Features, Function, Kernel, Operation, PAGE_SIZE, TABLE, scalar};
use std::cell::RefCell;
use std::fmt::Debug;

/// The longest buffer of a case. Beyond 64 KiB, so that every block size has a second block.
pub const LONGEST: usize = 70_000;

/// The largest page block of a case.
pub const LARGEST_ORDER: u32 = 4;

/// Two buffers of the longest length overlapping by a byte, or none, and room to shift them.
const ROOM: usize = 2 * LONGEST + 4 * MARGIN;

/// Position of a buffer in its guarded room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub edge: Edge,
    /// Bytes away from that edge, or from the alignment to 64 in the middle; below 64.
    pub shift: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Start,
    Middle,
    End,
}

impl Place {
    fn offset(self, room: usize, n: usize) -> usize {
        self.offset_in(room, n, 1)
    }

    fn offset_in(self, room: usize, n: usize, unit: usize) -> usize {
        let shift = usize::from(self.shift) * unit;
        match self.edge {
            Edge::Start => shift,
            Edge::Middle => MARGIN.next_multiple_of(unit) + shift,
            Edge::End => room - n - shift,
        }
    }
}

/// Copy between two buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyCase {
    pub n: usize,
    pub dst: Place,
    pub src: Place,
    pub seed: u16,
}

/// Move within one buffer, from a region to the one `distance` bytes above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveCase {
    pub n: usize,
    pub distance: isize,
    /// The span that both regions cover.
    pub span: Place,
    pub seed: u16,
}

/// Fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillCase {
    pub n: usize,
    pub dst: Place,
    pub value: i32,
    pub seed: u16,
}

/// Zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroCase {
    pub n: usize,
    pub dst: Place,
    pub seed: u16,
}

/// Compare or equal: two buffers with the same contents but for some edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareCase {
    pub n: usize,
    pub left: Place,
    pub right: Place,
    pub seed: u16,
    /// Bytes stored over the right side's, by position modulo n.
    pub edits: Vec<(usize, u8)>,
}

/// Copy and zero a block of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesCase {
    pub order: u32,
    /// `shift` counts pages here, below 8.
    pub dst: Place,
    pub src: Place,
    pub seed: u16,
}

/// A case that bytes spell.
pub trait Case: Sized {
    /// The operations it is a case of.
    const OPERATIONS: &[Operation];
    fn decode(bytes: &[u8]) -> Self;
    fn encode(&self) -> Vec<u8>;
    /// Runs the kernel and the oracle on it.
    fn check(&self, kernel: &'static Kernel) -> Checked;
}

/// Checks the case that the bytes spell on every kernel of the operation that this CPU can run.
///
/// # Panics
/// When a kernel and the oracle disagree.
pub fn replay<C: Case + Debug>(operation: Operation, bytes: &[u8]) {
    let case = C::decode(bytes);
    let available = Features::detect();
    let runnable = |kernel: &&Kernel| kernel.operation() == operation && kernel.runs_on(available);
    for kernel in TABLE.iter().filter(runnable) {
        if let Err(complaint) = case.check(kernel) {
            panic!("{complaint}\nwith {case:?}");
        }
    }
}

impl Case for CopyCase {
    const OPERATIONS: &[Operation] = &[Operation::Copy, Operation::Move];

    fn decode(bytes: &[u8]) -> CopyCase {
        let mut bytes = Reader(bytes);
        CopyCase { n: bytes.length(), dst: bytes.place(), src: bytes.place(), seed: bytes.seed() }
    }

    fn encode(&self) -> Vec<u8> {
        Writer::default().length(self.n).place(self.dst).place(self.src).seed(self.seed).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        let (Function::Copy(f) | Function::Move(f)) = kernel.function else { return Ok(()) };
        Rooms::with(self.seed, |rooms| {
            let n = self.n;
            let (d, s) = (self.dst.offset(rooms.len(), n), self.src.offset(rooms.len(), n));
            let [(dst, dst_model), (src, src_model)] = rooms.at(d, s);
            note(kernel, dst, src, n, -1);
            // SAFETY: both ranges lie inside their rooms; the caller runs no kernel that this CPU
            // lacks features for.
            let returned = unsafe { f(dst, src, n) };
            // SAFETY: both ranges lie inside the models, which are as long as the rooms.
            unsafe { scalar::copy(dst_model, src_model, n) };
            returned_destination(returned, dst)?;
            rooms.agree()
        })
    }
}

impl Case for MoveCase {
    const OPERATIONS: &[Operation] = &[Operation::Move];

    fn decode(bytes: &[u8]) -> MoveCase {
        let mut bytes = Reader(bytes);
        MoveCase {
            n: bytes.length(),
            distance: bytes.distance(),
            span: bytes.place(),
            seed: bytes.seed(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        Writer::default().length(self.n).distance(self.distance).place(self.span).seed(self.seed).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        let Function::Move(f) = kernel.function else { return Ok(()) };
        Rooms::with(self.seed, |rooms| {
            let n = self.n;
            let low = self.span.offset(rooms.len(), n + self.distance.unsigned_abs());
            let high = low + self.distance.unsigned_abs();
            let (to, from) = if self.distance < 0 { (low, high) } else { (high, low) };
            let [(start, model), _] = rooms.at(0, 0);
            let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
            let (dst_model, src_model) = (model.wrapping_add(to), model.wrapping_add(from));
            note(kernel, dst, src, n, self.distance as i64);
            // SAFETY: both ranges lie inside the first room; the caller runs no kernel that this
            // CPU lacks features for.
            let returned = unsafe { f(dst, src, n) };
            // SAFETY: both ranges lie inside the first room's model, which is as long.
            unsafe { scalar::r#move(dst_model, src_model, n) };
            returned_destination(returned, dst)?;
            rooms.agree()
        })
    }
}

impl Case for FillCase {
    const OPERATIONS: &[Operation] = &[Operation::Fill];

    fn decode(bytes: &[u8]) -> FillCase {
        let mut bytes = Reader(bytes);
        FillCase {
            n: bytes.length(),
            dst: bytes.place(),
            value: i32::from_le_bytes(bytes.take()),
            seed: bytes.seed(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let head = Writer::default().length(self.n).place(self.dst);
        head.bytes(&self.value.to_le_bytes()).seed(self.seed).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        let Function::Fill(f) = kernel.function else { return Ok(()) };
        Rooms::with(self.seed, |rooms| {
            let [(dst, model), _] = rooms.at(self.dst.offset(rooms.len(), self.n), 0);
            note(kernel, dst, std::ptr::null(), self.n, i64::from(self.value));
            // SAFETY: the range lies inside the room; the caller runs no kernel that this CPU
            // lacks features for.
            let returned = unsafe { f(dst, self.value, self.n) };
            // SAFETY: the range lies inside the model, which is as long as the room.
            unsafe { scalar::fill(model, self.value, self.n) };
            returned_destination(returned, dst)?;
            rooms.agree()
        })
    }
}

impl Case for ZeroCase {
    const OPERATIONS: &[Operation] = &[Operation::Zero];

    fn decode(bytes: &[u8]) -> ZeroCase {
        let mut bytes = Reader(bytes);
        ZeroCase { n: bytes.length(), dst: bytes.place(), seed: bytes.seed() }
    }

    fn encode(&self) -> Vec<u8> {
        Writer::default().length(self.n).place(self.dst).seed(self.seed).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        let Function::Zero(f) = kernel.function else { return Ok(()) };
        Rooms::with(self.seed, |rooms| {
            let [(dst, model), _] = rooms.at(self.dst.offset(rooms.len(), self.n), 0);
            note(kernel, dst, std::ptr::null(), self.n, -1);
            // SAFETY: the range lies inside the room; the caller runs no kernel that this CPU
            // lacks features for.
            let returned = unsafe { f(dst, self.n) };
            // SAFETY: the range lies inside the model, which is as long as the room.
            unsafe { scalar::zero(model, self.n) };
            returned_destination(returned, dst)?;
            rooms.agree()
        })
    }
}

impl Case for CompareCase {
    const OPERATIONS: &[Operation] = &[Operation::Compare, Operation::Equal];

    fn decode(bytes: &[u8]) -> CompareCase {
        let mut bytes = Reader(bytes);
        let (n, left, right) = (bytes.length(), bytes.place(), bytes.place());
        let seed = bytes.seed();
        let mut edits = Vec::new();
        while !bytes.0.is_empty() && edits.len() < 64 {
            edits.push((bytes.length(), bytes.take::<1>()[0]));
        }
        CompareCase { n, left, right, seed, edits }
    }

    fn encode(&self) -> Vec<u8> {
        let head = Writer::default().length(self.n).place(self.left).place(self.right);
        let fold = |text: Writer, &(at, byte): &(usize, u8)| text.length(at).bytes(&[byte]);
        self.edits.iter().fold(head.seed(self.seed), fold).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        let (f, orders) = match kernel.function {
            Function::Compare(f) => (f, true),
            Function::Equal(f) => (f, false),
            _ => return Ok(()),
        };
        Rooms::with(self.seed, |rooms| {
            let n = self.n;
            let (r, l) = (self.right.offset(rooms.len(), n), self.left.offset(rooms.len(), n));
            rooms.edit_right(r, l, n, &self.edits);
            let [(right, right_model), (left, left_model)] = rooms.at(r, l);
            note(kernel, right, left, n, -1);
            // SAFETY: both ranges lie inside their rooms; the caller runs no kernel that this CPU
            // lacks features for.
            let returned = unsafe { f(left, right, n) };
            // SAFETY: both ranges lie inside the models, which are as long as the rooms.
            let expected = unsafe { scalar::compare(left_model, right_model, n) };
            machine_state::disturbed().map_or(Ok(()), fail)?;
            let right = if orders {
                returned.signum() == expected.signum()
            } else {
                returned == i32::from(expected == 0)
            };
            if !right {
                return fail(&format!("it returned {returned}, the byte order is {expected}"));
            }
            rooms.agree()
        })
    }
}

impl Case for PagesCase {
    const OPERATIONS: &[Operation] = &[Operation::CopyPages, Operation::ZeroPages];

    fn decode(bytes: &[u8]) -> PagesCase {
        let mut bytes = Reader(bytes);
        let [order] = bytes.take();
        let order = u32::from(order) % (LARGEST_ORDER + 1);
        let mut pages = || {
            let place = bytes.place();
            Place { shift: place.shift % 8, ..place }
        };
        PagesCase { order, dst: pages(), src: pages(), seed: bytes.seed() }
    }

    fn encode(&self) -> Vec<u8> {
        let head = Writer::default().bytes(&[self.order as u8]);
        head.place(self.dst).place(self.src).seed(self.seed).0
    }

    fn check(&self, kernel: &'static Kernel) -> Checked {
        Rooms::with(self.seed, |rooms| {
            let n = PAGE_SIZE << self.order;
            let d = self.dst.offset_in(rooms.len(), n, PAGE_SIZE);
            let s = self.src.offset_in(rooms.len(), n, PAGE_SIZE);
            let [(dst, dst_model), (src, src_model)] = rooms.at(d, s);
            note(kernel, dst, src, n, i64::from(self.order));
            match kernel.function {
                Function::CopyPages(f) => {
                    // SAFETY: both blocks lie inside their rooms, whose starts are page-aligned,
                    // at multiples of the page size; the caller runs no kernel that this CPU
                    // lacks features for.
                    unsafe { f(dst, src, self.order) };
                    // SAFETY: both ranges lie inside the models, which are as long as the rooms.
                    unsafe { scalar::copy(dst_model, src_model, n) };
                }
                Function::ZeroPages(f) => {
                    // SAFETY: as above.
                    unsafe { f(dst, self.order) };
                    // SAFETY: as above.
                    unsafe { scalar::zero(dst_model, n) };
                }
                _ => return Ok(()),
            }
            machine_state::disturbed().map_or(Ok(()), fail)?;
            rooms.agree()
        })
    }
}

fn note(kernel: &'static Kernel, dst: *const u8, src: *const u8, n: usize, detail: i64) {
    watch::calling(Call { kernel: kernel.name, dst: dst.addr(), src: src.addr(), n, detail });
}

fn returned_destination(returned: *mut u8, dst: *mut u8) -> Checked {
    if let Some(complaint) = machine_state::disturbed() {
        fail(complaint)
    } else if returned == dst {
        Ok(())
    } else {
        fail("it did not return its destination")
    }
}

/// Two guarded rooms for the kernel, and for the oracle two vectors with the same contents.
struct Rooms {
    seed: Option<u16>,
    guarded: [Guarded; 2],
    models: [Vec<u8>; 2],
    /// Bytes that the seed puts into them.
    before: [Vec<u8>; 2],
}

impl Rooms {
    /// Lends this thread's rooms with the contents of that seed.
    fn with(seed: u16, body: impl FnOnce(&mut Rooms) -> Checked) -> Checked {
        thread_local! {
            static ROOMS: RefCell<Option<Rooms>> = const { RefCell::new(None) };
        }
        ROOMS.with_borrow_mut(|rooms| {
            let rooms = rooms.get_or_insert_with(|| {
                let guarded = [Guarded::new(ROOM), Guarded::new(ROOM)];
                let blank = || vec![0; guarded[0].len()];
                let (models, before) = ([blank(), blank()], [blank(), blank()]);
                Rooms { seed: None, guarded, models, before }
            });
            watch::buffers(&rooms.guarded[0], &rooms.guarded[1]);
            if rooms.seed != Some(seed) {
                let mut random = fastrand::Rng::with_seed(seed.into());
                rooms.before.iter_mut().for_each(|room| random.fill(room));
                rooms.seed = Some(seed);
            }
            for room in 0..2 {
                rooms.guarded[room].bytes_mut().copy_from_slice(&rooms.before[room]);
                rooms.models[room].copy_from_slice(&rooms.before[room]);
            }
            body(rooms)
        })
    }

    fn len(&self) -> usize {
        self.guarded[0].len()
    }

    /// The first room at `d` and the second at `s`, each with its model.
    fn at(&mut self, d: usize, s: usize) -> [(*mut u8, *mut u8); 2] {
        let [first, second] = &mut self.models;
        [
            (self.guarded[0].start().wrapping_add(d), first.as_mut_ptr().wrapping_add(d)),
            (self.guarded[1].start().wrapping_add(s), second.as_mut_ptr().wrapping_add(s)),
        ]
    }

    /// Makes the n bytes at `r` of the first room those at `l` of the second, then edits them.
    fn edit_right(&mut self, r: usize, l: usize, n: usize, edits: &[(usize, u8)]) {
        let right = &mut self.models[0][r..r + n];
        right.copy_from_slice(&self.before[1][l..l + n]);
        for &(at, byte) in edits.iter().filter(|_| n > 0) {
            right[at % n] = byte;
        }
        self.guarded[0].bytes_mut()[r..r + n].copy_from_slice(right);
    }

    /// Checks that kernel and oracle left the same contents, everywhere.
    fn agree(&self) -> Checked {
        for (guarded, model) in self.guarded.iter().zip(&self.models) {
            if guarded.bytes() != model {
                let at = first_difference(guarded.bytes(), model).unwrap_or(0);
                let address = guarded.addresses().start + at;
                let (found, expected) = (guarded.bytes()[at], model[at]);
                return fail(&format!(
                    "the byte at {address:#x} is {found:#04x}, by the oracle {expected:#04x}"
                ));
            }
        }
        Ok(())
    }
}

/// Takes fields off the front of the input.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.0.len().min(N);
        let mut field = [0; N];
        field[..taken].copy_from_slice(&self.0[..taken]);
        self.0 = &self.0[taken..];
        field
    }

    fn length(&mut self) -> usize {
        let [a, b, c] = self.take();
        u32::from_le_bytes([a, b, c, 0]) as usize % (LONGEST + 1)
    }

    /// A length whose topmost bit is the sign.
    fn distance(&mut self) -> isize {
        let [a, b, c] = self.take();
        let length = u32::from_le_bytes([a, b, c & 0x7f, 0]) as usize % (LONGEST + 1);
        if c & 0x80 == 0 { length as isize } else { -(length as isize) }
    }

    fn place(&mut self) -> Place {
        let [edge, shift] = self.take();
        let edge = [Edge::Start, Edge::Middle, Edge::End][usize::from(edge) % 3];
        Place { edge, shift: shift % 64 }
    }

    fn seed(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
}

/// The reverse of [`Reader`].
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn bytes(mut self, bytes: &[u8]) -> Writer {
        self.0.extend(bytes);
        self
    }

    fn length(self, n: usize) -> Writer {
        self.bytes(&(n as u32).to_le_bytes()[..3])
    }

    fn distance(self, distance: isize) -> Writer {
        let sign = if distance < 0 { 1 << 23 } else { 0 };
        self.bytes(&(distance.unsigned_abs() as u32 | sign).to_le_bytes()[..3])
    }

    fn place(self, place: Place) -> Writer {
        self.bytes(&[place.edge as u8, place.shift])
    }

    fn seed(self, seed: u16) -> Writer {
        self.bytes(&seed.to_le_bytes())
    }
}
