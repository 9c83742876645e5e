//! The page allocator by itself. No system call, so Miri interprets it.

use cachewise_pages::buddy::Frame;

/// `buddy!(NAME, FRAMES: ORDER, COUNT; FIRST of STATE)`: an allocator with blocks of up to that order, over that many
/// frames, of which it manages the first, in that state.
macro_rules! buddy {
    ($buddy:ident, $frames:ident: $order:expr, $count:expr; $first:tt of $state:expr) => {
        let (mut core, $frames) = (Core::new($order), crate::frames($count));
        let mut $buddy = Buddy::new(&mut core, &$frames);
        $buddy.extend($first, $state, 0);
    };
}

mod buddy;
mod fragmentation;
mod runs;
mod support;

fn frames(count: usize) -> Vec<Frame> {
    (0..count).map(|_| Frame::new()).collect()
}
