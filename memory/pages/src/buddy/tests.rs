//! Damage of every kind is noticed; the parts of a run.

use super::*;

/// Sixteen frames in blocks up to eight: one block of two and one of one frame in use, the rest dirty.
fn sixteen(frames: &[Frame; 16], core: &mut Core) {
    let mut buddy = Buddy::new(core, frames);
    assert_eq!(buddy.extend(8, State::Dirty, 0), 8);
    assert_eq!(buddy.extend(99, State::Dirty, 0), 8, "as many as there are");
    assert_eq!(buddy.take(1, State::Dirty), Some(8));
    assert_eq!(buddy.take(0, State::Dirty), Some(10));
    assert_eq!(buddy.check().map(|counts| (counts.out, counts.dirty)), Ok((3, 13)));
}

#[test]
fn check_finds_every_kind_of_damage_at_its_frame() {
    type Damage = fn(&mut Buddy<'_>);
    let damages: [(u32, Damage); 16] = [
        (8, |buddy| buddy.frames[8].set_tag(TAIL)),
        (8, |buddy| buddy.frames[8].set_tag(Tag::new(Use::Allocated, 4))),
        (10, |buddy| buddy.frames[10].set_tag(Tag::new(Use::Allocated, 2))),
        (12, |buddy| buddy.core.managed = 14),
        (8, |buddy| buddy.frames[9].set_tag(Tag::new(Use::Allocated, 0))),
        (8, |buddy| buddy.frames[9].set_tag(Tag::new(Use::CachedDirty, 0))),
        (8, |buddy| buddy.frames[8].set_tag(Tag::free(State::Dirty, 1))),
        (10, |buddy| {
            buddy.frames[10].set_tag(Tag::free(State::Dirty, 0));
            buddy.link(10, 0, State::Dirty);
        }),
        (0, |buddy| buddy.core.counts.dirty += 1),
        (0, |buddy| buddy.core.counts.out -= 1),
        (0, |buddy| buddy.core.lists[0][0].blocks += 1),
        (0, |buddy| buddy.core.lists[1][2].blocks += 1),
        (10, |buddy| buddy.frames[11].next.store(10, Ordering::Relaxed)),
        (0, |buddy| buddy.frames[0].next.store(0, Ordering::Relaxed)),
        (0, |buddy| buddy.core.lists[0][3].tail = 8),
        (8, |buddy| buddy.frames[8].set_tag(Tag::new(Use::Allocated, 0))),
    ];
    for (case, (frame, damage)) in damages.into_iter().enumerate() {
        let frames = core::array::from_fn(|_| Frame::new());
        let mut core = Core::new(3);
        sixteen(&frames, &mut core);
        let mut buddy = Buddy::new(&mut core, &frames);
        damage(&mut buddy);
        let found = buddy.check().map_err(|told| told.frame);
        // A block of two that is called one leaves a frame without a block behind it.
        let expected = if case == 15 { 9 } else { frame };
        assert_eq!(found, Err(expected), "case {case}");
    }
}

#[test]
fn parts_are_as_large_as_alignment_length_and_the_highest_order_allow() {
    for (first, frames) in [(0, u32::MAX), (1, u32::MAX), (3, 5), (6, 1 << 20), (7, 1), (8, 0)] {
        for highest in [0, 3, 18, 31] {
            let frames =
                if highest == 0 { frames & 0xFFF } else { frames >> (18 - highest.min(18)) };
            let mut next = first;
            for (part, order) in run_parts(first, frames, highest) {
                let left = frames - part.wrapping_sub(first);
                assert_eq!(part, next);
                assert!(order <= part.trailing_zeros().min(highest) && 1 << order <= left);
                let more = order < part.trailing_zeros().min(highest);
                assert!(!more || left >> order < 2, "{first}, {frames}, {highest}");
                next = next.wrapping_add(1 << order);
            }
            assert_eq!(next, first.wrapping_add(frames));
        }
    }
}
