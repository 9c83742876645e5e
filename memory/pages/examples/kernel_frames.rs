//! The page allocator as an operating system's kernel would use it: no standard library, no heap,
//! frames of a plain array, zeroing by the kernel's own means.
//!
//! `cargo run -p cachewise-pages --example kernel_frames`

use cachewise_pages::buddy::{Buddy, Core, Frame, State};

const PAGE: usize = 4096;
const FRAMES: usize = 1000; // memory is rarely a power of two

/// State that a kernel would have in its image: 16 bytes per frame, and the lists.
struct Zone {
    core: Core,
    frames: [Frame; FRAMES],
}

static INITIAL: Zone = Zone { core: Core::new(9), frames: [const { Frame::new() }; FRAMES] };

/// `alloc_pages(order, __GFP_ZERO)`.
fn zeroed(core: &mut Core, frames: &[Frame], memory: &mut [u8], order: u32) -> Option<u32> {
    let mut buddy = Buddy::new(core, frames);
    if let Some(index) = buddy.take(order, State::ZeroResident) {
        return Some(index);
    }
    let index = buddy
        .take(order, State::Dirty)
        .or_else(|| buddy.take_any_run(1 << order, 1 << order).map(|run| run.first))?;
    let start = index as usize * PAGE;
    memory[start..start + (PAGE << order)].fill(0);
    Some(index)
}

/// Work of a kernel's idle thread: one chunk, then look whether there is better to do.
fn scrub(core: &mut Core, frames: &[Frame], memory: &mut [u8], now: u32) -> bool {
    let taken = Buddy::new(core, frames).take_to_zero(0, 6, 100, now);
    let Some((index, order)) = taken else { return false };
    let start = index as usize * PAGE;
    memory[start..start + (PAGE << order)].fill(0);
    Buddy::new(core, frames).land(index, order, State::ZeroResident, now).is_ok()
}

#[cfg_attr(test, test)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut memory = vec![0xFF; FRAMES * PAGE]; // the firmware left something there
    let mut core = INITIAL.core.clone();
    let frames = &INITIAL.frames;
    Buddy::new(&mut core, frames).extend(FRAMES as u32, State::Dirty, 0);

    let early = zeroed(&mut core, frames, &mut memory, 3).ok_or("no memory at boot")?;
    assert!(memory[early as usize * PAGE..][..PAGE << 3].iter().all(|byte| *byte == 0));

    let mut chunks = 0;
    while scrub(&mut core, frames, &mut memory, 1000) {
        chunks += 1;
    }
    println!("{chunks} chunks zeroed; {:?}", core.counts());
    assert_eq!(core.counts().dirty, 0);

    // A buffer of 5 pages: the front of 8, whose rest stays free.
    let mut buddy = Buddy::new(&mut core, frames);
    let buffer = buddy.take_front(3, 5, State::ZeroResident, 1000).ok_or("no memory")?;
    assert!(memory[buffer as usize * PAGE..][..5 * PAGE].iter().all(|byte| *byte == 0));

    let mut buddy = Buddy::new(&mut core, frames);
    buddy.free_run(buffer, 5, State::Dirty, 1001)?;
    buddy.free(early, 3, State::Dirty, 1001)?;
    let refused = buddy.free(early, 3, State::Dirty, 1001);
    println!("freed again: {}", refused.err().ok_or("a double free was not noticed")?);
    let counts = buddy.check()?;
    println!("at the end: {counts:?}, {} bytes of bookkeeping per page", size_of::<Frame>());
    Ok(())
}
