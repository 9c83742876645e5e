//! A program whose own allocator is `malloc` and its relatives, from places that few use: destructors of
//! thread-local storage while threads end, blocks that grow from thread to thread, unwinding through frames
//! that own blocks, faults in the middle of copies, and children forked while others allocate.
//!
//! What its unsafe blocks rely on is the contract of the C library's functions, which is what is tested.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::ffi::c_void;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn calloc(count: usize, size: usize) -> *mut u8;
    fn realloc(block: *mut u8, size: usize) -> *mut u8;
    fn posix_memalign(block: *mut *mut u8, align: usize, size: usize) -> i32;
    fn malloc_usable_size(block: *mut u8) -> usize;
    fn free(block: *mut u8);
    fn pthread_key_create(key: *mut u32, destructor: extern "C" fn(*mut c_void)) -> i32;
    fn pthread_setspecific(key: u32, value: *const c_void) -> i32;
    fn mmap(at: *mut u8, size: usize, protection: i32, flags: i32, file: i32, from: i64)
    -> *mut u8;
    fn mprotect(at: *mut u8, size: usize, protection: i32) -> i32;
    fn munmap(at: *mut u8, size: usize) -> i32;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn memcmp(one: *const u8, other: *const u8, size: usize) -> i32;
}

/// Every block carries its length at its end, where a stranger's write would show.
struct Counted;
static ALIVE: AtomicUsize = AtomicUsize::new(0);
const MARK: usize = size_of::<usize>();

impl Counted {
    unsafe fn mark(block: *mut u8, size: usize) -> *mut u8 {
        if !block.is_null() {
            unsafe {
                assert!(malloc_usable_size(block) >= size + MARK);
                block.add(size).cast::<usize>().write_unaligned(!size);
            }
            ALIVE.fetch_add(size, Ordering::Relaxed);
        }
        block
    }

    unsafe fn unmark(block: *mut u8, size: usize) {
        let found = unsafe { block.add(size).cast::<usize>().read_unaligned() };
        if found != !size {
            eprintln!("a block of {size} bytes: found {found:#x} behind it");
            std::process::abort();
        }
        ALIVE.fetch_sub(size, Ordering::Relaxed);
    }
}

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let mut block = std::ptr::null_mut();
        unsafe {
            if align <= 16 {
                block = malloc(size + MARK);
            } else if posix_memalign(&mut block, align, size + MARK) != 0 {
                return std::ptr::null_mut();
            }
            Counted::mark(block, size)
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 16 {
            let block = unsafe { self.alloc(layout) };
            unsafe { block.write_bytes(0, if block.is_null() { 0 } else { layout.size() }) };
            return block;
        }
        unsafe { Counted::mark(calloc(1, layout.size() + MARK), layout.size()) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe {
            Counted::unmark(block, layout.size());
            free(block);
        }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { Counted::unmark(block, layout.size()) };
        if layout.align() <= 16 {
            return unsafe { Counted::mark(realloc(block, size + MARK), size) };
        }
        let layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let new = unsafe { self.alloc(layout) };
        unsafe { new.copy_from_nonoverlapping(block, size.min(layout.size())) };
        unsafe { free(block) };
        new
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Sizes of both allocators, and between.
const SIZES: [usize; 7] = [24, 700, 5000, 70_000, 131_072, 300_001, 2 << 20];

fn filled(size: usize, byte: u8) -> Vec<u8> {
    vec![byte; size]
}

fn holds(block: &[u8], byte: u8) {
    assert!(block.iter().all(|found| *found == byte), "{} bytes of {byte}", block.len());
}

/// What threads leave to others as they end.
static LEFT: Mutex<Vec<(Vec<u8>, u8)>> = Mutex::new(Vec::new());

struct Last(Vec<u8>, u8);

impl Drop for Last {
    fn drop(&mut self) {
        holds(&self.0, self.1);
        // A new one while the thread's storage is being taken down, and one that others free.
        let size = self.0.len();
        let mut block = filled(size, self.1 ^ 1);
        block.extend_from_slice(&self.0);
        LEFT.lock().unwrap().push((block, self.1));
        AFTER.with(|after| after.borrow_mut().push(Later(filled(size / 2, 7))));
    }
}

struct Later(Vec<u8>);

impl Drop for Later {
    fn drop(&mut self) {
        holds(&self.0, 7);
        self.0.resize(self.0.len() * 3 + 1, 8);
    }
}

thread_local! {
    static BEFORE: RefCell<Vec<Last>> = const { RefCell::new(Vec::new()) };
    static AFTER: RefCell<Vec<Later>> = const { RefCell::new(Vec::new()) };
}

static KEY: AtomicUsize = AtomicUsize::new(0);

/// Of the C library's, called after Rust's; it puts a block of its own there, again and again.
extern "C" fn last_of_all(value: *mut c_void) {
    let rounds = unsafe { value.cast::<usize>().read() };
    unsafe { free(value.cast()) };
    if rounds > 0 {
        keep(rounds - 1);
    }
}

fn keep(rounds: usize) {
    let size = SIZES[rounds % SIZES.len()].max(MARK);
    unsafe {
        let block = calloc(1, size);
        assert!((MARK..size).all(|at| block.add(at).read() == 0));
        block.cast::<usize>().write(rounds);
        pthread_setspecific(KEY.load(Ordering::Relaxed) as u32, block.cast());
    }
}

fn threads_end() {
    let mut key = 0;
    assert_eq!(unsafe { pthread_key_create(&mut key, last_of_all) }, 0);
    KEY.store(key as usize, Ordering::Relaxed);
    for round in 0..12u8 {
        let threads: Vec<_> = (0..4u8)
            .map(|number| {
                thread::spawn(move || {
                    keep(3);
                    for (size, byte) in SIZES.into_iter().zip(round..) {
                        let last = Last(filled(size, byte ^ number), byte ^ number);
                        BEFORE.with(|before| before.borrow_mut().push(last));
                    }
                })
            })
            .collect();
        for (block, byte) in std::mem::take(&mut *LEFT.lock().unwrap()) {
            let (new, old) = block.split_at(block.len() / 2);
            holds(new, byte ^ 1);
            holds(old, byte);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    LEFT.lock().unwrap().clear();
}

/// Round a ring of threads; each makes it longer and shorter again.
fn blocks_travel() {
    const RING: usize = 4;
    let (mut senders, receivers): (Vec<_>, Vec<_>) =
        (0..RING).map(|_| mpsc::channel::<(Vec<u8>, u32)>()).unzip();
    senders.rotate_left(1);
    let first = senders.clone();
    let (done, ended) = mpsc::channel();
    let threads: Vec<_> = receivers
        .into_iter()
        .zip(senders)
        .map(|(receiver, next)| {
            let done = done.clone();
            thread::spawn(move || {
                while let Ok((mut block, turn)) = receiver.recv() {
                    if turn == 0 {
                        break;
                    }
                    let (old, byte) = (block.len(), block[0]);
                    holds(&block, byte);
                    let size = SIZES[(turn as usize + old) % SIZES.len()];
                    block.resize(size, byte);
                    block.shrink_to_fit();
                    match turn {
                        1 => done.send(block).unwrap(),
                        _ => next.send((block, turn - 1)).unwrap(),
                    }
                }
            })
        })
        .collect();
    for byte in 0..32u8 {
        first[usize::from(byte) % RING]
            .send((filled(SIZES[usize::from(byte) % 7], byte), 60))
            .unwrap();
    }
    for _ in 0..32 {
        let block = ended.recv().unwrap();
        holds(&block, block[0]);
    }
    first.iter().for_each(|sender| sender.send((Vec::new(), 0)).unwrap());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Frames that own blocks and copy as they are left, a payload that is a block itself, and a panic while
/// the destructor of another frame runs one of its own.
fn unwinding() {
    struct Copies<'a>(&'a mut Vec<u8>, Vec<u8>);
    impl Drop for Copies<'_> {
        fn drop(&mut self) {
            self.0.extend_from_slice(&self.1);
            let caught = catch_unwind(|| {
                let _kept = filled(200_000, 3);
                resume_unwind(Box::new(filled(150_000, 4)))
            });
            let payload: Result<Box<Vec<u8>>, _> = caught.unwrap_err().downcast();
            holds(&payload.unwrap(), 4);
        }
    }
    fn deep(level: usize, into: &mut Vec<u8>) {
        let size = SIZES[level % SIZES.len()];
        let copies = Copies(into, filled(size, level as u8));
        if level == 0 {
            resume_unwind(Box::new(filled(400_000, 5)));
        }
        deep(level - 1, copies.0);
    }
    let threads: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(|| {
                for _ in 0..6 {
                    let mut into = Vec::new();
                    let caught = catch_unwind(AssertUnwindSafe(|| deep(13, &mut into)));
                    let payload: Result<Box<Vec<u8>>, _> = caught.unwrap_err().downcast();
                    holds(&payload.unwrap(), 5);
                    let mut rest = &into[..];
                    for level in 0..14 {
                        let (block, more) = rest.split_at(SIZES[level % SIZES.len()]);
                        holds(block, level as u8);
                        rest = more;
                    }
                    assert!(rest.is_empty());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

static GUARDED: AtomicUsize = AtomicUsize::new(0);
const GUARDED_SIZE: usize = 64 << 10;

/// Lets the copy that touched guarded memory go on.
extern "C" fn faulted(_signal: i32) {
    let start = GUARDED.swap(0, Ordering::SeqCst);
    if start == 0 || unsafe { mprotect(start as *mut u8, GUARDED_SIZE, 3) } != 0 {
        std::process::abort();
    }
}

fn faults_in_copies() {
    unsafe { signal(11, faulted) };
    let size = 3 * GUARDED_SIZE;
    let memory = unsafe { mmap(std::ptr::null_mut(), size, 3, 0x22, -1, 0) };
    assert_ne!(memory as isize, -1);
    for (turn, length) in SIZES.into_iter().filter(|length| *length <= size).enumerate() {
        let pattern: Vec<u8> = (0..length).map(|at| (at * 7 + turn) as u8).collect();
        for guarded in 0..3 {
            for operation in 0..4 {
                let guard = || unsafe {
                    let start = memory.add(guarded * GUARDED_SIZE);
                    GUARDED.store(start as usize, Ordering::SeqCst);
                    assert_eq!(mprotect(start, GUARDED_SIZE, 0), 0);
                };
                unsafe {
                    let into = memory.add(size - length);
                    match operation {
                        0 => {
                            guard();
                            into.copy_from_nonoverlapping(pattern.as_ptr(), length);
                        }
                        1 => {
                            into.copy_from_nonoverlapping(pattern.as_ptr(), length);
                            guard();
                            memory.copy_from(into, length);
                        }
                        2 => {
                            into.copy_from_nonoverlapping(pattern.as_ptr(), length);
                            guard();
                            assert_eq!(memcmp(into, pattern.as_ptr(), length), 0);
                        }
                        _ => {
                            guard();
                            into.write_bytes(turn as u8, length);
                        }
                    }
                    // Not every copy touches every part.
                    GUARDED.store(0, Ordering::SeqCst);
                    assert_eq!(mprotect(memory, size, 3), 0);
                    let found = if operation == 1 { memory } else { into };
                    let found = std::slice::from_raw_parts(found, length);
                    match operation {
                        3 => holds(found, turn as u8),
                        _ => assert!(found == pattern, "{length}, {guarded}, {operation}"),
                    }
                }
            }
        }
    }
    assert_eq!(unsafe { munmap(memory, size) }, 0);
}

/// Children that allocate before they run another program, forked while every other thread allocates.
fn children() {
    let own = std::env::current_exe().unwrap();
    let stop = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..3u8 {
            let stop = &stop;
            scope.spawn(move || {
                let mut kept: Vec<Vec<u8>> = Vec::new();
                let mut turn = usize::from(number);
                while stop.load(Ordering::Relaxed) == 0 {
                    turn += 1;
                    kept.push(filled(SIZES[turn % SIZES.len()], number));
                    if kept.len() > 9 {
                        holds(&kept.swap_remove(turn % 9), number);
                    }
                }
            });
        }
        for turn in 0..24u8 {
            let before = filled(250_000, turn);
            let mut command = Command::new(&own);
            command.arg("child");
            unsafe {
                command.pre_exec(move || {
                    holds(&before, turn);
                    for size in SIZES {
                        holds(&filled(size, turn), turn);
                    }
                    Ok(())
                });
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert_eq!(output.stdout, b"child\n");
        }
        stop.store(1, Ordering::Relaxed);
    });
}

fn main() {
    if std::env::args().nth(1).is_some() {
        let block = filled(1 << 20, 9);
        holds(&block, 9);
        return println!("child");
    }
    let before = ALIVE.load(Ordering::Relaxed);
    threads_end();
    blocks_travel();
    unwinding();
    faults_in_copies();
    children();
    // What threads and tests keep of the standard library's own.
    let after = ALIVE.load(Ordering::Relaxed);
    assert!(after < before + (64 << 10), "{before} bytes before, {after} after");
    println!("threads hold");
}
