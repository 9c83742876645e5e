//! Instructions and taken jumps of real calls, of ours and of the C library's, counted by the trap flag: every instruction
//! raises a signal, whose handler notes where it was. Each build is counted beside the glibc that its CPU would have:
//! the function of the v3 build is the entry `avx2`, that of the v4 build `avx512vl`.

use cachewise::entry;
use cachewise_kernels::{Features, Operation};
use iced_x86::FlowControl;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const MOST: usize = 512;
static PLACES: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static NOTED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: a handler with SA_SIGINFO is given this.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    if let Some(place) = PLACES.get(NOTED.fetch_add(1, Relaxed)) {
        place.store(context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64, Relaxed);
    }
}

/// Instructions and taken jumps of one call, from the function's first instruction to its return.
fn count(function: u64, arguments: [usize; 3]) -> [usize; 2] {
    NOTED.store(0, Relaxed);
    let [first, second, third] = arguments;
    // SAFETY: a function of memory with the contract of its arguments, whose buffers `calls` has.
    unsafe {
        core::arch::asm!(
            "pushfq", "or qword ptr [rsp], 0x100", "popfq",
            "call r10",
            "pushfq", "and qword ptr [rsp], ~0x100", "popfq",
            in("r10") function, in("rdi") first, in("rsi") second, in("rdx") third,
            clobber_abi("C"),
        );
    }
    let noted = NOTED.load(Relaxed).min(MOST);
    let places: Vec<u64> = PLACES[..noted].iter().map(|place| place.load(Relaxed)).collect();
    let start = places.iter().position(|place| *place == function).expect("the function");
    let mut counted = [0; 2];
    for at in start..noted {
        let one = super::decoded(places[at]);
        counted[0] += 1;
        if one.flow_control() == FlowControl::Return {
            return counted;
        }
        counted[1] += usize::from(places.get(at + 1) != Some(&one.next_ip()));
    }
    panic!("no return within {MOST} instructions");
}

/// The C library's function of an operation.
fn theirs(operation: Operation) -> u64 {
    let name = match operation {
        Operation::Copy => c"memcpy",
        Operation::Move => c"memmove",
        Operation::Fill | Operation::Zero => c"memset",
        _ => c"memcmp",
    };
    // SAFETY: the name ends in NUL.
    (unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }) as u64
}

/// Both sides of each class's end.
const SIZES: [usize; 36] = [
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 192, 255, 256, 257,
    288, 320, 352, 383, 384, 385, 416, 448, 480, 500, 511, 512,
];

/// Instructions and taken jumps beyond the C library's, by size.
fn beyond(operation: Operation, ours: u64, n: usize) -> [isize; 2] {
    static FROM: [[u8; 4096]; 3] = [[7; 4096]; 3];
    let mut to = vec![[7_u8; 4096]; 3];
    let (dst, src) = (to.as_mut_ptr().addr(), (&raw const FROM).addr());
    // At the beginning of a page.
    let [dst, src] = [dst, src].map(|place| place.next_multiple_of(4096));
    let (plain, own) = match operation {
        Operation::Fill => ([dst, 0xA5, n], [dst, 0xA5, n]),
        Operation::Zero => ([dst, 0, n], [dst, n, 0]),
        _ => ([dst, src, n], [dst, src, n]),
    };
    let (theirs, ours) = (count(theirs(operation), plain), count(ours, own));
    [0, 1].map(|which| ours[which] as isize - theirs[which] as isize)
}

/// Sizes where a build runs more than glibc 2.36 does for the same CPU, by how many instructions and taken jumps at most.
type More = (usize, usize, [isize; 2]);

/// By build and operation, those sizes. Small sizes come before the jump that larger ones take: 9 of 10 calls have them.
fn more(build: &str, operation: Operation) -> &'static [More] {
    use Operation::{Compare, Copy, Equal, Fill, Move, Zero};
    match (build, operation) {
        ("avx512vl", Copy | Move) => &[
            (0, 0, [1, 0]),
            (2, 3, [0, 1]),
            (32, 32, [2, 0]),
            (64, 128, [0, 1]),
            (257, 512, [2, 2]),
        ],
        ("avx512vl", Fill | Zero) => &[(64, 128, [0, 1]), (257, 512, [1, 1])],
        ("avx512vl", Compare | Equal) => {
            &[(33, 64, [1, 0]), (129, 256, [0, 2]), (257, 512, [0, 5])]
        }
        // The loop's last round may be one more than glibc's, which begins elsewhere: at 288 and 416 of the sizes to 512.
        ("avx2", Copy | Move) => {
            &[(0, 31, [3, 1]), (33, 64, [1, 1]), (288, 288, [9, 1]), (416, 416, [8, 1])]
        }
        ("avx2", Fill) => {
            &[(0, 15, [1, 0]), (16, 31, [4, 0]), (33, 64, [2, 0]), (257, 512, [0, 2])]
        }
        ("avx2", Zero) => &[(16, 31, [1, 0]), (257, 512, [0, 2])],
        ("avx2", Compare | Equal) => {
            &[(1, 64, [8, 0]), (65, 128, [2, 0]), (129, 256, [0, 2]), (257, 512, [4, 2])]
        }
        _ => &[],
    }
}

/// In a process of its own, whose glibc takes what it has for CPUs without AVX-512, for the v3 build.
#[test]
fn calls_run_no_more_instructions_and_jumps_than_the_c_librarys() {
    const BUILD: &str = "CACHEWISE_TEST_BUILD";
    if let Ok(build) = std::env::var(BUILD) {
        return compare(&build);
    }
    for (build, tunables) in
        [("avx2", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW"), ("avx512vl", "")]
    {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"));
        child.args(["--exact", "--nocapture"]);
        child.arg("steps::calls_run_no_more_instructions_and_jumps_than_the_c_librarys");
        let output = child.env(BUILD, build).env("GLIBC_TUNABLES", tunables).output();
        let output = output.expect("the child runs");
        let told =
            [output.stdout, output.stderr].map(|told| String::from_utf8_lossy(&told).into_owned());
        assert!(output.status.success(), "{told:?}");
    }
}

fn compare(build: &str) {
    // SAFETY: zero is an action.
    let mut action = unsafe { std::mem::zeroed::<libc::sigaction>() };
    (action.sa_sigaction, action.sa_flags) = (note as *const () as usize, libc::SA_SIGINFO);
    // SAFETY: an action, and no place for the one before.
    let set = unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    cachewise::init();
    // SAFETY: always callable.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a string that is never freed.
    let is_known = unsafe { std::ffi::CStr::from_ptr(version) } == c"2.36";
    for (_, operation) in super::exported() {
        let mut variants = entry::variants(operation).iter();
        let entry = variants.find(|of| of.name == build && of.runs_on(Features::detect()));
        let Some(entry) = entry.filter(|_| is_known) else {
            println!("{build}: SKIPPED, not this CPU's, or another glibc than 2.36");
            return;
        };
        for n in SIZES {
            let found = beyond(operation, entry.function.address() as u64, n);
            let told =
                more(build, operation).iter().find(|(from, to, _)| (*from..=*to).contains(&n));
            let most = told.map_or([0; 2], |(.., most)| *most);
            assert!(
                found[0] <= most[0] && found[1] <= most[1],
                "{operation} {build} {n}: {found:?}"
            );
        }
    }
}
