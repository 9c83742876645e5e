//! Loss between blocks in the long run: a program that takes and gives back blocks of mixed sizes
//! for tens of thousands of steps, in a simulation over the allocator itself. Seeded; it touches no memory and
//! looks at no clock.

use cachewise_pages::buddy::{Buddy, Core, Frame, State, Wanted, order_for};

/// 256 MiB of 4 KiB frames.
const FRAMES: u32 = 64 << 10;
/// Sizes of blocks beside single pages: 64 KiB to 4 MiB.
const SMALLEST: u32 = 16;
const LARGEST: u32 = 1024;
/// Frames that the system makes resident together, and those at the start that it does not.
const HUGE: u32 = 512;
const SINGLE: u32 = 4 * HUGE;
const STEPS: u32 = 50_000;

struct World {
    core: Core,
    frames: Vec<Frame>,
    held: Vec<(u32, u32)>,
    live: u32,
    now: u32,
}

/// Result of a run.
#[derive(Debug, Default)]
struct Told {
    asked: u32,
    /// Refused requests though as many frames were free.
    refused: u32,
    most_live: u32,
}

impl World {
    fn new() -> World {
        let frames = (0..FRAMES).map(|_| Frame::new()).collect();
        let mut world = World { core: Core::new(18), frames, held: Vec::new(), live: 0, now: 0 };
        world.buddy().extend(FRAMES, State::ZeroAbsent, 0);
        world
    }

    fn buddy(&mut self) -> Buddy<'_> {
        Buddy::new(&mut self.core, &self.frames)
    }

    fn resident(&self) -> u32 {
        FRAMES - u32::try_from(self.core.counts().zero_absent).expect("frames")
    }

    /// As a pool under preload takes it (`Inner::take_once`, `populate`).
    fn take(&mut self, frames: u32, zeroed: bool) -> bool {
        let wanted = Wanted { zeroed, around: HUGE, single: SINGLE, ..Wanted::frames(frames) };
        let (order, now) = (order_for(frames), self.now);
        let mut buddy = self.buddy();
        let block = |buddy: &mut Buddy<'_>| {
            let states = [State::ZeroResident, State::Dirty];
            let states = if zeroed { states } else { [states[1], states[0]] };
            let mut states = states.into_iter().filter(|_| wanted.is_block());
            states.find_map(|state| buddy.take(order, state))
        };
        let found = block(&mut buddy)
            .or_else(|| Some(buddy.take_run(&wanted)?.first))
            .or_else(|| {
                let whole = order.max(HUGE.ilog2());
                let index = buddy.take(whole, State::ZeroAbsent)?;
                let around = if index + frames <= SINGLE { 16 } else { HUGE };
                let there = frames.next_multiple_of(around).min(1 << whole);
                let shrunk = buddy.shrink_resident(index, whole, (frames, there), now);
                assert_eq!(shrunk, Ok(()));
                Some(index)
            })
            .or_else(|| Some(buddy.take_any_run(&wanted)?.first));
        if let Some(first) = found {
            self.held.push((first, frames));
            self.live += frames;
        }
        found.is_some()
    }

    fn give_back(&mut self, place: usize) {
        let (first, frames) = self.held.swap_remove(place);
        self.live -= frames;
        let now = self.now;
        let freed = self.buddy().free_run(first, frames, State::Dirty, now);
        assert!(freed.is_ok(), "{freed:?}");
    }

    /// The scrubber: what nobody used for a while.
    fn scrub(&mut self) {
        let now = self.now;
        while let Some((index, order)) = self.buddy().take_to_zero(0, 7, 100, now) {
            self.buddy().land(index, order, State::ZeroResident, now).expect("in flight");
        }
    }

    /// Idle memory goes back to the system, huge pages whole.
    fn return_idle(&mut self) {
        let (now, order) = (self.now, HUGE.ilog2());
        while let Ok((index, order)) = self.buddy().take_idle((order, order), 0, now) {
            self.buddy().land(index, order, State::ZeroAbsent, now).expect("in flight");
        }
    }
}

/// A quarter are single pages, the others log-uniform; of these every fourth is a power of two, as much
/// that programs ask for is.
fn size(random: &mut fastrand::Rng) -> u32 {
    if random.u8(0..4) == 0 {
        return 1;
    }
    let octaves = f64::from(LARGEST / SMALLEST).log2();
    let frames = (f64::from(SMALLEST) * (random.f64() * octaves).exp2()) as u32;
    if random.u8(0..4) == 0 { 1 << frames.ilog2() } else { frames }
}

/// The live set wanders between these parts of the memory.
fn run(seed: u64, (low, high): (f64, f64)) -> (World, Told) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut world, mut told) = (World::new(), Told::default());
    let mut target = FRAMES as f64 * low;
    for step in 0..STEPS {
        world.now = step;
        if step % 500 == 0 {
            target = FRAMES as f64 * (low + (high - low) * random.f64());
        }
        if f64::from(world.live) >= target {
            let place = random.usize(0..world.held.len());
            world.give_back(place);
        } else {
            let frames = size(&mut random).min(FRAMES - world.live);
            told.asked += 1;
            if !world.take(frames, random.bool()) {
                told.refused += 1;
                // The program goes on with less.
                let place = random.usize(0..world.held.len());
                world.give_back(place);
            }
        }
        if step % 100 == 0 {
            world.scrub();
        }
        told.most_live = told.most_live.max(world.live);
    }
    world.buddy().check().expect("sound");
    (world, told)
}

/// The part of all requests that would be refused if holes were as the fifty-percent rule has them (Knuth,
/// The Art of Computer Programming 1, 2.5): half as many as blocks, of lengths that are exponentially
/// distributed. That is placement without a thought; a request is refused if every hole is too short.
fn by_the_fifty_percent_rule(live: f64) -> f64 {
    const PARTS: u32 = 1000;
    let octaves = f64::from(LARGEST / SMALLEST).log2();
    let sizes = (0..PARTS).map(|part| {
        f64::from(SMALLEST) * (octaves * (f64::from(part) + 0.5) / f64::from(PARTS)).exp2()
    });
    let mean = 0.25 + 0.75 * sizes.clone().sum::<f64>() / f64::from(PARTS);
    let holes = live * f64::from(FRAMES) / mean / 2.0;
    let hole = (1.0 - live) * f64::from(FRAMES) / holes;
    let refused = sizes.map(|size| (1.0 - (-size / hole).exp()).powf(holes));
    0.75 * refused.sum::<f64>() / f64::from(PARTS)
}

/// Fewer requests with enough memory are refused than the rule has it for the fullest
/// moment.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn what_fits_by_bytes_is_rarely_refused() {
    for (low, high) in [(0.6, 0.6), (0.6, 0.8)] {
        // Not a seed by which the order of looks was chosen.
        let (_, told) = run(4, (low, high));
        let (refused, bound) =
            (f64::from(told.refused) / f64::from(told.asked), by_the_fifty_percent_rule(high));
        assert!(refused <= bound, "{refused} of {told:?}, bound {bound}");
        assert!(told.most_live >= (high * f64::from(FRAMES)) as u32 * 9 / 10, "{told:?}");
    }
}

/// When most of it was given back, what is still resident are the huge pages that somebody holds a part of.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn what_nobody_holds_a_part_of_goes_back_to_the_system() {
    let (mut world, _) = run(2, (0.6, 0.7));
    let mut random = fastrand::Rng::with_seed(2);
    while world.live > FRAMES / 10 {
        let place = random.usize(0..world.held.len());
        world.give_back(place);
    }
    world.return_idle();
    let mut held = vec![false; (FRAMES / HUGE) as usize];
    for (first, frames) in &world.held {
        held[(first / HUGE) as usize..=((first + frames - 1) / HUGE) as usize].fill(true);
    }
    let needed = held.iter().filter(|held| **held).count() as u32 * HUGE;
    assert!(world.resident() <= needed, "{} resident, {needed} needed", world.resident());
    world.buddy().check().expect("sound");
}
