//! A cache is interrupted in cutting a block up; strangers inside a block.

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
            assert_eq!(buddy.take_cached(0, 4, 2, &mut [0]), 1);
            frames[0].set_tag(Tag::new(used, 2, 2));
            for tail in &frames[4 - cut..4] {
                tail.set_tag(Tag::new(used, 0, 2));
            }
            assert_eq!(buddy.check().map(|counts| counts.out), Ok(4));
            let mut after = core.clone();
            let mut rebuilt = Buddy::new(&mut after, &frames);
            if cut % 2 == 0 {
                rebuilt.rebuild(0);
                assert_eq!(rebuilt.check().map(|counts| counts.out), Ok(4));
            }
            assert_eq!(rebuilt.reclaim(|tag| tag.owner() == 2, 0), 4);
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
        Tag::new(Use::CachedZero, 0, 3),
        Tag::new(Use::CachedDirty, 0, 2),
        Tag::new(Use::Allocated, 0, 2),
        Tag::free(State::ZeroResident, 0),
    ] {
        let mut core = Core::new(2);
        let mut buddy = Buddy::new(&mut core, &frames);
        buddy.extend(4, State::ZeroResident, 0);
        buddy.take_cached(0, 4, 2, &mut [0]);
        assert!(buddy.check().is_ok());
        frames[3].set_tag(tag);
        assert!(buddy.check().is_err(), "{tag:?}");
        frames[3].set_tag(TAIL);
    }
}
