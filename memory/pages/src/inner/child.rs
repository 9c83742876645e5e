//! Memory that a fork does not copy: a lease is a file that parent and child would share, memory registered with a
//! device must stay where it is, and for explicit huge pages the system may have none to copy to and ends the
//! child. Children are not given such memory (`MADV_DONTFORK`). The thread that forks copies the blocks in use
//! before the fork, and the child moves the copy to the blocks' addresses: it has ordinary memory there.

use super::Inner;
use crate::buddy::Use;
use crate::inherited::Memory;
use crate::os::{self, Mapping};

impl Inner {
    fn memory(&self) -> Memory {
        self.chunks.inherited.memory()
    }

    /// Checks whether free memory may be returned to the system.
    pub(crate) fn may_return(&self) -> bool {
        self.memory() != Memory::Lent
    }

    /// Copies for a child, if a fork does not, the blocks in use; where a signal handler interrupted a change of
    /// the bookkeeping (`sound` is false), all there is. Only by the thread that forks, with the pool's lock.
    pub(crate) fn copy_for_child(&self, depth: u32, sound: bool) {
        if self.memory() == Memory::Private {
            return;
        }
        let capacity = (self.chunks.capacity as usize) << self.chunks.frame_shift;
        let align = os::huge_page_size().max(os::page_size());
        let Some(length) = capacity.checked_add(os::page_size()) else { return };
        // Locked in advance, all of it would be made resident.
        let Ok(copy) = Mapping::unlocked(length, align) else { return };
        if self.settings.huge_order > 0 {
            // SAFETY: the mapping just made.
            let _ = unsafe { os::advise_huge(copy.start(), capacity, true) };
        }
        let mut fits = true;
        let mut copied = |first: u32, end: u32| {
            for (from, behind) in self.readable(first, end) {
                let (offset, bytes) = (
                    (from as usize) << self.chunks.frame_shift,
                    ((behind - from) as usize) << self.chunks.frame_shift,
                );
                let place = copy.start().wrapping_add(offset);
                // SAFETY: the mapping just made.
                fits = fits && unsafe { os::populate(place, bytes) }.is_ok();
                if fits {
                    // SAFETY: both are that long and apart; other threads that write to their blocks meanwhile have
                    // no order with this fork, as with one that the system copies.
                    unsafe {
                        cachewise::raw::copy_nonoverlapping(place, self.address(from), bytes)
                    };
                }
            }
        };
        if sound {
            // SAFETY: the lock is held.
            let managed = unsafe { &*self.control().core.get() }.managed();
            let runs = || self.runs_in_use(managed);
            let wanted = runs().map(|(first, end)| (end - first) as usize).sum::<usize>();
            // To ask for more than there is would have the system end a process.
            if wanted << self.chunks.frame_shift > os::available() {
                return;
            }
            runs().for_each(|(first, end)| copied(first, end));
        } else {
            copied(0, self.chunks.capacity);
        }
        if fits {
            self.chunks.inherited.push(copy, capacity, depth);
        }
    }

    /// The allocated blocks of the first frames, adjacent ones as one run: its first frame and the one behind it.
    fn runs_in_use(&self, managed: u32) -> impl Iterator<Item = (u32, u32)> {
        let frames = &self.frames()[..managed as usize];
        let mut index = 0;
        let mut next = move || {
            let tag = frames.get(index as usize)?.tag();
            let first = index;
            let used = tag.used();
            index += if used.is_some() { 1 << tag.order() } else { 1 };
            Some((first, index, used == Some(Use::Allocated)))
        };
        std::iter::from_fn(move || {
            let (first, mut behind, _) = std::iter::from_fn(&mut next).find(|block| block.2)?;
            for (_, end, used) in std::iter::from_fn(&mut next) {
                if !used {
                    break;
                }
                behind = end;
            }
            Some((first, behind))
        })
    }

    /// Forgets the copy that the child of that fork has.
    pub(crate) fn forget_copy(&self, depth: u32) {
        drop(self.chunks.inherited.pop(depth));
    }

    /// Gives a child its copy. Without one the pool is closed there, and a line says so.
    pub(crate) fn use_copy(&self, depth: u32) {
        if self.memory() == Memory::Private {
            return;
        }
        self.chunks.inherited.become_private();
        let capacity = (self.chunks.capacity as usize) << self.chunks.frame_shift;
        let moved = self.chunks.inherited.pop(depth).is_some_and(|copy| {
            // SAFETY: the child was not given this memory, so that nothing is mapped there.
            unsafe { copy.move_to(capacity, self.chunks.base) }.is_ok()
        });
        if !moved {
            self.close();
            os::write_stderr(
                b"cachewise: no memory to copy a pool for a forked child: its blocks are not there, the pool is closed\n",
            );
        }
    }
}
