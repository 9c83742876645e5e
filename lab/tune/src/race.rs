//! The race: every live arm of every cell against libc, in epochs, over the first part of the budget.
//!
//! Cells stand in lanes (three of sizes, and hints). A lane has a share of
//! the time; the lane that is furthest behind its share has its next cell visited. When a lane
//! has been through all its cells in random order, that was an epoch: arms that are shown to be out
//! are dropped, cells where nothing is left to learn rest, and the next order is drawn.

use super::field::{Field, HANDED_OVER};
use super::hints;
use super::plan;
use super::rounds::Purpose;
use super::seam::{Arm, Class, Facts, Stage, TuningCell};
use super::visits::{Candidate, Visits};
use cachewise_kernels::Operation;
use cachewise_measure::LabError;
use std::ops::Range;

/// One visit of a lane.
#[derive(Clone, Debug)]
enum Item {
    Kernels { field: usize, view: usize, size: usize },
    Bystander { field: usize, size: usize, arms: Vec<usize> },
}

struct Lane {
    what: What,
    share: f64,
    spent: f64,
    epoch: usize,
    bought: bool,
    over: bool,
    items: Vec<Item>,
}

enum What {
    Sizes(Range<usize>),
    Hints,
}

/// Rounds that the referee is expected to take of a cell: on simulated machines, where little fails, 4 to 6.
const REFEREED: f64 = 5.0;

/// Number of lanes for sizes: the first ones.
const SIZES: usize = 3;

/// The race of all operations.
pub(super) struct Race<'r, 'm> {
    pub visits: &'r mut Visits<'m>,
    pub facts: Facts,
    pub fields: Vec<Field>,
    pub follows: Follows,
    lanes: Vec<Lane>,
}

/// Seconds that are expected to follow a race.
pub(super) struct Follows {
    pub referee: f64,
    pub never: f64,
}

impl<'r, 'm> Race<'r, 'm> {
    pub(super) fn new(
        visits: &'r mut Visits<'m>,
        facts: Facts,
        fields: Vec<Field>,
        follows: Follows,
    ) -> Race<'r, 'm> {
        let lane = |what, share| Lane {
            what,
            share,
            spent: 0.0,
            epoch: 0,
            bought: true,
            over: false,
            items: Vec::new(),
        };
        let top = fields.iter().flat_map(|field| field.sizes.last()).max();
        let [small, large] = plan::bands(top.copied().unwrap_or(0));
        let lanes = vec![
            lane(What::Sizes(0..small), 0.26),
            lane(What::Sizes(small..large), 0.22),
            lane(What::Sizes(large..usize::MAX), 0.34),
            lane(What::Hints, 0.08),
        ];
        Race { visits, facts, fields, follows, lanes }
    }

    /// Runs until `end` or until nothing is left to learn. The referee may take as many seconds as `most`.
    ///
    /// # Errors
    /// Returns the first error of [`Machine::visit`](super::seam::Machine::visit).
    pub(super) fn run(&mut self, end: f64, most: f64) -> Result<(), LabError> {
        let mut epochs = 0;
        loop {
            let now = self.tell(end);
            for lane in 0..self.lanes.len() {
                if self.lanes[lane].items.is_empty() && !self.lanes[lane].over {
                    self.next_epoch(lane);
                }
            }
            let begun = self.lanes[..SIZES].iter().map(|lane| lane.epoch).sum();
            if std::mem::replace(&mut epochs, begun) != begun {
                // Before, too little is decided to say.
                if self.lanes[..SIZES].iter().all(|lane| lane.epoch > 3 || lane.over) {
                    self.follows.referee = self.refereeing().min(most);
                }
            }
            let behind = |lane: &usize| self.lanes[*lane].spent / self.lanes[*lane].share;
            let next = (0..self.lanes.len())
                .filter(|lane| !self.lanes[*lane].items.is_empty())
                .min_by(|a, b| behind(a).total_cmp(&behind(b)));
            let Some(lane) = next else { return Ok(()) };
            if now >= end {
                return Ok(());
            }
            let Some(item) = self.lanes[lane].items.pop() else { continue };
            let first = self.lanes[lane].epoch <= 1;
            let bought = self.item(item, first, end)?;
            let lane = &mut self.lanes[lane];
            lane.spent += self.visits.machine.now() - now;
            lane.bought |= bought;
        }
    }

    /// Tells the machine how long the tuning is expected to take, if the race ends at `end`; what time it is.
    fn tell(&mut self, end: f64) -> f64 {
        let now = self.visits.machine.now();
        let Follows { referee, never } = self.follows;
        self.visits.machine.progress(Stage::Race, (end - now).max(0.0) + referee + never);
        now
    }

    /// Seconds that the referee is expected to take with the decisions as they stand: rounds of four visits at
    /// every size that a kernel is decided for, in every state.
    fn refereeing(&self) -> f64 {
        let mut seconds = 0.0;
        for field in &self.fields {
            for (arm, &size) in hints::chosen(field, &self.facts).into_iter().zip(&field.sizes) {
                let views = field.views.iter().filter(|view| view.is_visited(size));
                for view in views.filter(|_| !field.is_libc(arm, size)) {
                    let cell = view.cell(field.operation, size, false);
                    let samples = 4 * plan::samples(&cell, false);
                    seconds += REFEREED * samples as f64 * self.visits.expected(&cell).0;
                }
            }
        }
        seconds
    }

    fn next_epoch(&mut self, lane: usize) {
        let Lane { bought, ref what, .. } = self.lanes[lane];
        if !bought {
            // A whole epoch without a visit: the time left buys none.
            self.lanes[lane].over = true;
            return;
        }
        let mut items = Vec::new();
        match what {
            What::Sizes(sizes) => {
                let sizes = sizes.clone();
                for (nth, field) in self.fields.iter_mut().enumerate() {
                    for size in field.eliminate(&|size| sizes.contains(&size)) {
                        let covers =
                            |view: &usize| field.views[*view].is_visited(field.sizes[size]);
                        let views = (0..field.views.len()).filter(covers);
                        items.extend(views.map(|view| Item::Kernels { field: nth, view, size }));
                    }
                }
            }
            What::Hints => {
                // The temporal arm to compare with is known only when the others have begun.
                if self.lanes[..SIZES].iter().any(|lane| lane.epoch < 3 && !lane.over) {
                    return;
                }
                for (nth, field) in self.fields.iter().enumerate() {
                    if !plan::stores(field.operation) || field.operation == Operation::Move {
                        continue;
                    }
                    if let Some((size, mut arms)) = hints::next(field, self.visits.evidence) {
                        arms.extend(best_temporal(field, size));
                        items.push(Item::Bystander { field: nth, size, arms });
                    }
                }
            }
        }
        let lane = &mut self.lanes[lane];
        lane.over = items.is_empty();
        if lane.over {
            return;
        }
        lane.epoch += 1;
        lane.bought = false;
        self.visits.random.shuffle(&mut items);
        lane.items = items;
    }

    fn item(&mut self, item: Item, first: bool, stop: f64) -> Result<bool, LabError> {
        match item {
            Item::Kernels { field, view, size } => self.kernels(field, view, size, first, stop),
            Item::Bystander { field, size, arms } => {
                let cell = hints::cell(self.fields[field].operation, size, &self.facts);
                let name = |arm: usize| self.fields[field].arms[arm].name.clone();
                let others = arms.into_iter().map(|arm| (name(arm), (cell, Arm::Kernel(arm))));
                let others: Vec<(String, Candidate)> = others.collect();
                let libc = (cell, Arm::LIBC);
                Ok(self.visits.keep(Purpose::Hints, libc, &others, 1, stop)?.is_some())
            }
        }
    }

    /// Everybody who is still in the race at a size.
    fn kernels(
        &mut self,
        field: usize,
        view: usize,
        size: usize,
        first: bool,
        stop: f64,
    ) -> Result<bool, LabError> {
        let f = &self.fields[field];
        let odd = f.is_odd_turn(view, size);
        let cell = f.views[view].cell(f.operation, f.sizes[size], odd);
        let samples = plan::samples(&cell, first);
        let (arms, handed_over) = (f.live(size), f.wants_handed_over(view, size));
        self.compete(field, cell, arms, handed_over, samples, stop)
    }

    /// Temporal arms against libc, then the non-temporal ones in a round of their own.
    fn compete(
        &mut self,
        field: usize,
        cell: TuningCell,
        arms: Vec<usize>,
        handed_over: bool,
        samples: usize,
        stop: f64,
    ) -> Result<bool, LabError> {
        let f = &self.fields[field];
        let (non_temporal, temporal): (Vec<usize>, Vec<usize>) =
            arms.into_iter().partition(|arm| f.arms[*arm].class == Class::NonTemporal);
        let mut bought = false;
        for arms in [temporal, non_temporal] {
            if arms.is_empty() {
                continue;
            }
            let f = &self.fields[field];
            let of_kernel = |arm: usize| (f.arms[arm].name.clone(), (cell, Arm::Kernel(arm)));
            let mut others: Vec<_> = arms.iter().map(|arm| of_kernel(*arm)).collect();
            others.extend(handed_over.then(|| (HANDED_OVER.to_owned(), (cell, Arm::HandedOver))));
            let libc = (cell, Arm::LIBC);
            let round = self.visits.keep(Purpose::Race, libc, &others, samples, stop)?;
            let Some(round) = round else { continue };
            bought = true;
            let field = &mut self.fields[field];
            for ((_, (_, arm)), sample) in others.iter().zip(&round.others) {
                match (arm, sample) {
                    (_, None) => {}
                    (Arm::Kernel(arm), Some(ours)) => {
                        field.add(*arm, &cell, ours, &round.reference);
                    }
                    (_, Some(ours)) => field.add_handed_over(&cell, ours, &round.reference),
                }
            }
        }
        Ok(bought)
    }
}

/// The best admissible temporal arm at a size, so far.
fn best_temporal(field: &Field, size: usize) -> Option<usize> {
    let at = field.at(size)?;
    let temporal = field.measured().filter(|(_, arm)| arm.class != Class::NonTemporal);
    let here = temporal.filter_map(|(arm, _)| Some((field.cost(arm, at)?, arm)));
    here.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, arm)| arm)
}
