//! A cache is interrupted in cutting a block up; strangers inside a block; damage of every kind.

use super::*;

/// A cache is interrupted anywhere in cutting its block up: by a death, a fork, or somebody who
/// looks. The block is whole until its first frame says otherwise.
#[test]
fn a_block_cut_halfway_is_one_block() {
    for used in [Use::CachedZero, Use::CachedDirty] {
        for cut in 0..4 {
            let frames: [Frame; 8] = core::array::from_fn(|_| Frame::new());
            let mut core = Core::new(3);
            let mut buddy = Buddy::new(&mut core, &frames);
            buddy.extend(8, State::ZeroResident, 0);
            assert_eq!(buddy.take_cached_of(State::ZeroResident, 0, 4, &mut [0]), 1);
            frames[0].set_tag(Tag::new(used, 2));
            for tail in &frames[4 - cut..4] {
                tail.set_tag(Tag::new(used, 0));
            }
            assert_eq!(buddy.check().map(|counts| counts.out), Ok(4));
            let mut after = core.clone();
            let mut rebuilt = Buddy::new(&mut after, &frames);
            if cut % 2 == 0 {
                rebuilt.rebuild(0);
                assert_eq!(rebuilt.check().map(|counts| counts.out), Ok(4));
            }
            assert_eq!(rebuilt.reclaim(|tag| tag.used() == Some(used), State::Dirty, 0), 4);
            let counts = rebuilt.check();
            assert_eq!(counts.map(|counts| (counts.out, counts.dirty)), Ok((0, 4)));
        }
    }
}

/// Whatever else stands inside a block is an error still.
#[test]
fn a_strangers_tag_inside_a_cached_block_is_noticed() {
    let frames: [Frame; 4] = core::array::from_fn(|_| Frame::new());
    for tag in [
        Tag::new(Use::CachedDirty, 0),
        Tag::new(Use::Allocated, 0),
        Tag::free(State::ZeroResident, 0),
    ] {
        let mut core = Core::new(2);
        let mut buddy = Buddy::new(&mut core, &frames);
        buddy.extend(4, State::ZeroResident, 0);
        buddy.take_cached_of(State::ZeroResident, 0, 4, &mut [0]);
        assert!(buddy.check().is_ok());
        frames[3].set_tag(tag);
        assert!(buddy.check().is_err(), "{tag:?}");
        frames[3].set_tag(TAIL);
    }
}

/// Sixteen frames in blocks up to eight: one block of two and one of one frame in use, the rest dirty.
fn sixteen(frames: &[Frame; 16], core: &mut Core) {
    let mut buddy = Buddy::new(core, frames);
    assert_eq!(buddy.extend(8, State::Dirty, 0), 8);
    assert_eq!(buddy.extend(99, State::Dirty, 0), 8, "as many as there are");
    assert_eq!(buddy.take(1, State::Dirty), Some(8));
    assert_eq!(buddy.take(0, State::Dirty), Some(10));
    assert_eq!(buddy.check().map(|counts| (counts.out, counts.dirty)), Ok((3, 13)));
}

/// The answer of `check` to each kind of damage; a death that leaves it is not the end of the pool.
#[test]
fn every_kind_of_damage_is_named_and_mended() {
    type Damage = fn(&mut Buddy<'_>);
    let damages: [(&str, Damage); 14] = [
        ("belongs to no block", |buddy| buddy.frames[8].set_tag(TAIL)),
        ("is not aligned", |buddy| buddy.frames[8].set_tag(Tag::new(Use::Allocated, 4))),
        ("is not aligned", |buddy| buddy.frames[10].set_tag(Tag::new(Use::Allocated, 2))),
        ("ends after the last", |buddy| buddy.core.managed = 14),
        ("lies inside another", |buddy| buddy.frames[9].set_tag(Tag::new(Use::Allocated, 0))),
        ("is in no list", |buddy| buddy.frames[8].set_tag(Tag::free(State::Dirty, 1))),
        ("two free buddies of one state are apart", |buddy| {
            buddy.frames[10].set_tag(Tag::free(State::Dirty, 0));
            buddy.link(10, 0, State::Dirty);
        }),
        ("the counts are not", |buddy| buddy.core.counts.dirty += 1),
        ("the counts are not", |buddy| buddy.core.counts.out -= 1),
        ("the lists' lengths", |buddy| buddy.core.lists[0][0].blocks += 1),
        ("the lists' lengths", |buddy| buddy.core.lists[1][2].blocks += 1),
        ("a block that is not its own", |buddy| {
            buddy.frames[11].next.store(10, Ordering::Relaxed);
        }),
        ("longer than its count", |buddy| buddy.frames[0].next.store(0, Ordering::Relaxed)),
        ("does not end where", |buddy| buddy.core.lists[0][3].tail = 8),
    ];
    for (what, damage) in damages {
        let frames = core::array::from_fn(|_| Frame::new());
        let mut core = Core::new(3);
        sixteen(&frames, &mut core);
        core.wasted = 7;
        let mut buddy = Buddy::new(&mut core, &frames);
        damage(&mut buddy);
        let told = buddy.check().expect_err(what);
        assert!(told.what.contains(what), "{what}: {told}");
        buddy.rebuild(1);
        buddy.check().expect(what);
        assert_eq!((buddy.core.wasted, buddy.core.max_order), (7, 3));
        // Whatever order was asked for, and however much was lost: all of it can be had back.
        buddy.reclaim(|_| true, State::Dirty, 2);
        let counts = buddy.check().expect(what);
        assert_eq!((counts.out, counts.dirty), (0, u64::from(buddy.core.managed)), "{what}");
    }
}

#[test]
fn parts_are_as_large_as_alignment_and_length_allow_up_to_the_largest_number() {
    for (first, frames) in [(0, u32::MAX), (1, u32::MAX), (3, 5), (6, 1 << 20), (7, 1), (8, 0)] {
        let mut next = first;
        for (part, order) in run_parts(first, frames) {
            let left = frames - part.wrapping_sub(first);
            assert_eq!(part, next);
            assert!(order <= part.trailing_zeros() && 1 << order <= left, "{first}, {frames}");
            assert!(order == part.trailing_zeros() || left >> order < 2, "{first}, {frames}");
            next = next.wrapping_add(1 << order);
        }
        assert_eq!(next, first.wrapping_add(frames));
    }
}
