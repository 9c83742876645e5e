//! Fuzzes `malloc` and its relatives: what is checked is in `crates/pool-preload/tests/calls/replay.rs`, where
//! `cargo test` replays the corpus through it.
#![no_main]

#[path = "../../crates/pool-preload/tests/calls/replay.rs"]
mod replay;

use cachewise_pool_preload::entries;

const FUNCTIONS: replay::Functions = replay::Functions {
    malloc: entries::malloc,
    calloc: entries::calloc,
    realloc: entries::realloc,
    reallocarray: entries::reallocarray,
    aligned_alloc: entries::aligned_alloc,
    memalign: entries::memalign,
    posix_memalign: entries::posix_memalign,
    valloc: entries::valloc,
    pvalloc: entries::pvalloc,
    malloc_usable_size: entries::malloc_usable_size,
    free: entries::free,
};

libfuzzer_sys::fuzz_target!(
    init: cachewise_pool_preload::enable(8 << 20, None),
    |bytes: &[u8]| {
        replay::replay(&FUNCTIONS, bytes);
    }
);
