use super::*;
use crate::field::tests::facts;

#[test]
fn sizes_are_half_octaves_up_to_8_mib_then_octaves() {
    let sizes = grid(64 << 20);
    assert_eq!(
        sizes[..4],
        [
            FIRST_SIZE as usize,
            FIRST_SIZE as usize * 3 / 2,
            FIRST_SIZE as usize * 2,
            FIRST_SIZE as usize * 3
        ]
    );
    assert_eq!(sizes[sizes.len() - 5..], [6 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20]);
    assert_eq!(grid(FIRST_SIZE as usize), [FIRST_SIZE as usize]);
    // As small a part of an epoch whatever the largest size is; all of them where memory allows no more.
    assert!(grid(512 << 20).ends_with(&[48 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20]));
    assert!(grid(4 << 20).ends_with(&[3 << 20, 4 << 20]));
    for top in [64 << 20, 512 << 20] {
        let (all, octaves) = (grid(top), |size: &&usize| size.is_power_of_two());
        let octaves: usize = all.iter().filter(octaves).sum();
        assert!(all.iter().sum::<usize>() * 10 < octaves * 11);
    }
    assert_eq!((bands(1 << 20), bands(512 << 20)), ([1 << 20, 8 << 20], [8 << 20, 64 << 20]));
    // Each stands for the octaves half way to its neighbours; the ends for those to theirs.
    assert_eq!(weights(&[1024]), [1.0]);
    assert_eq!(weights(&[1024, 2048, 8192, 1 << 16]), [1.0, 1.5, 2.5, 3.0]);
}

#[test]
fn the_largest_size_is_what_budget_and_memory_allow() {
    let facts = facts();
    assert_eq!(top(&facts, 60.0), 64 << 20);
    let large = Facts { llc: 256 << 20, llc_usable: 256 << 20, ..facts };
    let within = |budget| top(&large, budget);
    assert_eq!([1.0, 60.0, 120.0].map(within), [64 << 20, 64 << 20, 128 << 20]);
    assert_eq!([480.0, 600.0, 3600.0].map(within), [512 << 20; 3]);
    assert_eq!(top(&Facts { largest: 1 << 20, ..large }, 600.0), 1 << 20);
    assert_eq!(top(&facts, 3600.0), 64 << 20, "beyond its cache already");
    assert_eq!(top(&Facts { largest: 0, ..large }, 60.0), FIRST_SIZE as usize);
    // A fifth and more beyond all caches, and not for want of memory.
    assert!(extends(&facts, &[64 << 20]) && !extends(&facts, &[(64 << 20) - 1]));
    assert!(extends(&large, &[320 << 20]) && !extends(&large, &[(320 << 20) - 1]));
    assert!(!extends(&Facts { llc: 0, llc_usable: 64 << 20, ..facts }, &[64 << 20]));
    // All operands count, and a cache of others too.
    let beyond = |operation, size| beyond_llc(operation, size, &facts);
    assert!(beyond(Operation::Copy, (16 << 20) + 1) && !beyond(Operation::Copy, 16 << 20));
    assert!(beyond(Operation::Fill, (32 << 20) + 1) && !beyond(Operation::Fill, 32 << 20));
    assert!(beyond(Operation::Zero, usize::MAX) && beyond(Operation::Move, usize::MAX));
}

#[test]
fn views_hold_where_they_are_states_of_their_own() {
    let facts = facts();
    let covering = |operation, size: usize| {
        let views = views(operation, &facts);
        let covering = views.iter().filter(|view| view.covers(size));
        covering.map(|view| (view.destination, view.layout, view.contents)).collect::<Vec<_>>()
    };
    let apart = |destination| (destination, Layout::Aligned, Contents::Equal);
    let [plain, evicted, repeated] = Destination::ALL.map(apart);
    let lying = |layout| (Destination::Cached, layout, Contents::Equal);
    assert_eq!(covering(Operation::Zero, 8 << 20), [plain, evicted, repeated]);
    assert_eq!(covering(Operation::Zero, (8 << 20) + 1), [plain, repeated]);
    assert_eq!(covering(Operation::Copy, 4095), [plain, evicted, repeated]);
    for size in [4096, 1 << 20] {
        let all = [plain, evicted, repeated, lying(Layout::Aliased)];
        assert_eq!(covering(Operation::Copy, size), all);
    }
    assert_eq!(covering(Operation::Copy, (1 << 20) + 1), [plain, evicted, repeated]);
    let (up, down) = (lying(Layout::OverlapUp), lying(Layout::OverlapDown));
    assert_eq!(covering(Operation::Move, 8 << 20), [plain, evicted, repeated, up, down]);
    assert_eq!(covering(Operation::Move, 9 << 20), [plain, repeated, up]);
    let unequal = |destination| (destination, Layout::Aligned, Contents::Unequal);
    let [absent, unequal] = [Destination::Evicted, Destination::Cached].map(unequal);
    assert_eq!(covering(Operation::Compare, 9 << 20), [plain, repeated, absent, unequal]);
}

#[test]
fn every_cell_of_a_view_is_its_own() {
    let facts = facts();
    for operation in cachewise::profile::OPERATIONS {
        let views = views(operation, &facts);
        for (at, view) in views.iter().enumerate() {
            for odd in [false, true] {
                let cell = view.cell(operation, 4096, odd);
                let holding: Vec<_> =
                    (0..views.len()).filter(|at| views[*at].holds(&cell)).collect();
                assert_eq!(holding, [at], "{operation:?}");
                assert_eq!(
                    cell.layout == Layout::Misaligned,
                    odd && view.layout == Layout::Aligned
                );
                let reads = !matches!(operation, Operation::Compare | Operation::Equal);
                let reads = reads && view.destination != Destination::Repeated;
                assert_eq!(cell.after == After::Reader, reads);
            }
        }
    }
}

#[test]
fn calls_on_the_same_operands_are_those_of_a_cached_cell_beyond_l2() {
    let facts = facts();
    let views = views(Operation::Compare, &facts);
    let of = |view: &View, size, odd| view.cell(Operation::Compare, size, odd);
    for view in &views {
        if !view.proven {
            assert!(view.is_visited(4096) && !view.is_visited(4097));
            continue;
        }
        assert!(view.is_visited(facts.l2));
        let repeated = view.destination == Destination::Repeated;
        assert_eq!(view.is_visited(facts.l2 + 1), !repeated);
        for other in &views {
            let cached =
                (other.destination, other.contents) == (Destination::Cached, Contents::Equal);
            for odd in [false, true] {
                assert!(!view.is_call_of(&of(other, facts.l2, odd)));
                let beyond = of(other, facts.l2 + 1, odd);
                assert_eq!(view.is_call_of(&beyond), repeated && cached);
            }
        }
    }
}

#[test]
fn short_calls_have_more_samples_and_long_loops_fewer() {
    let sizes = [0xFFFF, 0x1_0000, 0xF_FFFF, 0x10_0000, 0xFF_FFFF, 0x100_0000];
    let all = |destination, first| {
        sizes.map(|size| samples(&TuningCell::new(Operation::Copy, size, destination), first))
    };
    let few = [3, 2, 2, 1, 1, 1];
    assert_eq!(all(Destination::Cached, true), few);
    assert_eq!(all(Destination::Evicted, false), [7, 5, 5, 2, 2, 1]);
    assert_eq!([true, false].map(|first| all(Destination::Repeated, first)), [few; 2]);
}
