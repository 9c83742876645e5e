//! Replays `fuzz/corpus/malloc/*` on the library itself, through the function that the fuzzer runs. What
//! a fuzzer finds becomes a test by copying its file there.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[path = "../pool_preload/library.rs"]
mod library;
mod replay;

use replay::{Functions, replay};
use std::path::Path;
use std::process::Command;

mod found {
    //! Whatever functions of these names the loader finds first.

    use std::ffi::c_int;

    unsafe extern "C" {
        pub fn malloc(size: usize) -> *mut u8;
        pub fn calloc(count: usize, size: usize) -> *mut u8;
        pub fn realloc(block: *mut u8, size: usize) -> *mut u8;
        pub fn reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8;
        pub fn aligned_alloc(align: usize, size: usize) -> *mut u8;
        pub fn memalign(align: usize, size: usize) -> *mut u8;
        pub fn posix_memalign(out: *mut *mut u8, align: usize, size: usize) -> c_int;
        pub fn valloc(size: usize) -> *mut u8;
        pub fn pvalloc(size: usize) -> *mut u8;
        pub fn malloc_usable_size(block: *mut u8) -> usize;
        pub fn free(block: *mut u8);
    }
}

const FUNCTIONS: Functions = Functions {
    malloc: found::malloc,
    calloc: found::calloc,
    realloc: found::realloc,
    reallocarray: found::reallocarray,
    aligned_alloc: found::aligned_alloc,
    memalign: found::memalign,
    posix_memalign: found::posix_memalign,
    valloc: found::valloc,
    pvalloc: found::pvalloc,
    malloc_usable_size: found::malloc_usable_size,
    free: found::free,
};

/// Runs itself again under the library: with a pool that is soon full, one that holds a block or two, and
/// none.
#[test]
fn sequences_of_calls_keep_mallocs_promises() {
    if let Some(pool) = std::env::var_os("CACHEWISE_POOL") {
        let pooled = replay_all();
        assert!(pooled > 100 || pool != "8M", "the pool served {pooled}");
        return;
    }
    for pool in ["8M", "300K", "0"] {
        let mut again = Command::new(std::env::current_exe().expect("this program"));
        again.args(["sequences_of_calls_keep_mallocs_promises", "--exact", "--nocapture"]);
        again.env("LD_PRELOAD", library::library()).env("CACHEWISE_POOL", pool);
        let output = again.output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pool of {pool}: {}\n{told}{errors}", output.status);
    }
}

/// Returns how many blocks the pool served.
fn replay_all() -> usize {
    // The compiler knows these names, and what it may leave out for their sake.
    let functions = std::hint::black_box(FUNCTIONS);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/malloc");
    let (mut files, mut pooled) = (0, 0);
    for entry in std::fs::read_dir(corpus).expect("a corpus folder per target") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        pooled += replay(&functions, &std::fs::read(&path).expect("a readable file"));
        files += 1;
    }
    for seed in 0..16 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..800).map(|_| random.u8(..)).collect();
        println!("seed {seed}");
        pooled += replay(&functions, &bytes);
    }
    assert!(files >= 3, "the seeds are missing");
    pooled
}
