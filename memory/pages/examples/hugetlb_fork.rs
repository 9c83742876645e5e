//! Fork of a process with a private pool in explicit huge pages: `Hugetlb` memory
//! is copied on write out of the system's reserve of huge pages, and where that is empty the kernel
//! has nothing to copy to.
//!
//! ```sh
//! echo 12 >/proc/sys/vm/nr_hugepages; cargo run -p cachewise-pages --example hugetlb_fork
//! ```
//!
//! Prints how the child that writes ends, with the parent writing before or after it.

use cachewise_pages::{PageSize, Pool};

const BYTES: usize = 16 << 20;

fn main() {
    for parent_first in [false, true] {
        let pool = Pool::builder()
            .capacity(BYTES)
            .initial(BYTES)
            .page_size(PageSize::Hugetlb)
            .build()
            .expect("a pool");
        for note in pool.notes() {
            println!("{note}");
        }
        println!(
            "{}: {}",
            if parent_first { "parent first" } else { "child first" },
            run(&pool, parent_first)
        );
    }
}

fn run(pool: &Pool, parent_first: bool) -> String {
    let mut blocks: Vec<_> = (0..3).map(|_| pool.alloc_bytes(4 << 20).expect("a block")).collect();
    blocks.iter_mut().for_each(|block| block.fill(1));
    // SAFETY: the child writes to its memory and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if parent_first {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        blocks.iter_mut().for_each(|block| block.fill(2));
        // SAFETY: always callable.
        unsafe { libc::_exit(0) };
    }
    if parent_first {
        blocks.iter_mut().for_each(|block| block.fill(3));
    }
    let mut status = 0;
    // SAFETY: `status` is writable.
    unsafe { libc::waitpid(child, &mut status, 0) };
    blocks.iter_mut().for_each(|block| block.fill(4));
    match libc::WIFSIGNALED(status) {
        true => format!("the child was killed by signal {}", libc::WTERMSIG(status)),
        false => "the child wrote".to_owned(),
    }
}
