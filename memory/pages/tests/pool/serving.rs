//! Service of a pool whose caches have none: orders, growth, zeroing at hand-out.

use super::*;

#[test]
fn the_largest_order_is_had_and_the_next_one_is_refused() {
    let pool = uncached().capacity(4 << 20).max_order(4).made();
    drop(pool.alloc(3).expect("less"));
    drop(pool.alloc(4).expect("the largest"));
    for order in [5, 6] {
        assert!(matches!(pool.alloc(order), Err(PoolError::Order { max_order: 4, .. })));
    }
}

#[test]
fn what_a_thread_has_cached_is_there_for_its_own_large_blocks() {
    let pool = quiet().capacity(1 << 20).initial(1 << 20).made();
    drop(pool.alloc(0).expect("a page"));
    assert!(pool.figures().cached > 0);
    let all = pool.alloc_bytes(1 << 20).expect("all of it");
    assert_eq!(pool.figures().cached, 0);
    let refused = pool.alloc_bytes(1 << 20);
    assert!(matches!(refused, Err(PoolError::Exhausted { bytes: 1048576, .. })));
    drop(all);
}

#[test]
fn a_pool_grows_step_by_step() {
    let pool = uncached().capacity(16 << 20).growth(1 << 20).page_size(PageSize::Base).made();
    let order = (1usize << 20).ilog2() - pool.page_size().ilog2();
    let _held: Vec<_> = (1..=8)
        .map(|number| {
            let block = pool.alloc(order).expect("1 MiB");
            assert_eq!(pool.figures().managed, number << 20);
            block
        })
        .collect();
}

#[test]
fn what_is_zeroed_at_hand_out_is_counted() {
    let pool = uncached().capacity(4 << 20).made();
    drop(pool.alloc_bytes(4 << 20).expect("all of it"));
    let page = pool.page_size();
    let _held = pool.zalloc_bytes(3 * page).expect("three pages");
    let _more = pool.zalloc_bytes(5 * page).expect("five pages");
    assert_eq!(pool.figures().hot_zeroed, 8 * page as u64);
}

#[test]
fn zeroing_at_hand_out_ends_where_the_run_ends() {
    let pool = uncached().capacity(1 << 20).made();
    let length = 16 * pool.page_size();
    let mut runs: Vec<_> = (0..9).map(|_| pool.alloc_bytes(length).expect("a run")).collect();
    runs.iter_mut().for_each(|run| run.fill(9));
    drop(runs.remove(4));
    let zeroed = pool.zalloc_run_raw(15).expect("what was freed");
    assert!(bytes(zeroed, 15 * pool.page_size()).is_zero());
    assert!(runs.iter().all(|run| run.iter().all(|byte| *byte == 9)), "they are in use");
}

#[test]
fn a_block_that_is_zero_nowhere_is_reported() {
    let pool = uncached().capacity(1 << 20).verify(Verify::Report(1)).made();
    let start = pool.alloc_raw(0).expect("a block");
    bytes(start, pool.page_size()).fill(9);
    // SAFETY: of use it is none; that it is not zero is the point.
    unsafe { pool.free_zeroed_run_raw(start, 1) }.expect("believed");
    assert!(matches!(pool.zalloc(0), Err(PoolError::NotZero { byte: 9, .. })));
}
