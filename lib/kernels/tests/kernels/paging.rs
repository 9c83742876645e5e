//! Page blocks, every kernel: orders 0 to 6 at both guard pages and between.

use crate::runner::each_kernel;
use cachewise_kernels::{Function, Operation, PAGE_SIZE};

const ORDERS: std::ops::RangeInclusive<u32> = 0..=6;

/// Offsets for a block of n bytes: at the start, at the end, and one page away from each.
fn places(room: usize, n: usize) -> [usize; 4] {
    // The room ends at a page of the system, which is a multiple of ours.
    [0, PAGE_SIZE, room - n, room - n - PAGE_SIZE]
}

#[test]
fn every_page_copy_kernel_copies() {
    each_kernel(Operation::CopyPages, |kernel, arena, effort| {
        let Function::CopyPages(f) = kernel.function else { unreachable!("it is copy-pages") };
        for order in ORDERS.take(effort.pick(4, 7, 7)) {
            let n = PAGE_SIZE << order;
            for d in places(arena.room(), n) {
                for s in places(arena.room(), n) {
                    arena.copy_pages(kernel, f, d, s, order)?;
                    arena.source_intact(s..s + n)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_page_zero_kernel_zeroes() {
    each_kernel(Operation::ZeroPages, |kernel, arena, effort| {
        let Function::ZeroPages(f) = kernel.function else { unreachable!("it is zero-pages") };
        for order in ORDERS.take(effort.pick(4, 7, 7)) {
            for d in places(arena.room(), PAGE_SIZE << order) {
                arena.zero_pages(kernel, f, d, order)?;
            }
        }
        Ok(())
    });
}
