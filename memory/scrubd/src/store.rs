//! The memory there is, its states and its holders: bookkeeping alone, no system call.

use std::collections::{BTreeMap, VecDeque};

/// The user that a lease counts against. `None` stands for all whom a user namespace hides from this process: they
/// cannot be told apart, so that nothing is kept for them.
pub type User = Option<u32>;

/// Requests for other sizes than the segment's that are remembered.
const REMEMBERED: usize = 64;

/// The holder of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user that asked.
    pub user: User,
    /// The process that asked; 0 if it is in a PID namespace that this process cannot see.
    pub process: i32,
}

/// The state of a file of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not zero yet: in the queue, or being worked on.
    Zeroing,
    /// Resident and zero.
    Ready,
    /// Somebody's.
    Leased(Holder),
}

/// A file of memory.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its size.
    pub bytes: u64,
    /// Its state.
    pub state: State,
    /// The user whose request waits for it.
    pub promised: Option<User>,
    /// The user that it stays with: its pages were zeroed in place.
    pub user: Option<u32>,
    used: u64,
}

impl Entry {
    fn fits(&self, bytes: u64, holder: Holder) -> bool {
        self.bytes == bytes
            && self.promised.is_none()
            && self.user.is_none_or(|user| holder.user == Some(user))
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// That one, now leased.
    Lease(u64),
    /// That one, as soon as it is zero.
    Promise(u64),
    /// A new one of that number, after these have gone.
    Make {
        /// The new one's number.
        id: u64,
        /// Those to be dropped, and the users that they stayed with.
        dropped: Vec<(u64, Option<u32>)>,
    },
    /// Memory enough is being worked on: ask again when it is done.
    Later,
    /// Nothing, with the reason.
    Refused(String),
}

fn gib(bytes: u64) -> String {
    format!("{:.3} GiB", bytes as f64 / f64::from(1 << 30))
}

/// All memory.
#[derive(Debug)]
pub struct Store {
    capacity: u64,
    user_most: u64,
    segment: u64,
    entries: BTreeMap<u64, Entry>,
    /// Memory of leases that ended which did not come back, by the users that still have it.
    held: BTreeMap<User, u64>,
    /// Other sizes than the segment's that were asked for last.
    sizes: VecDeque<u64>,
    last: u64,
    uses: u64,
}

impl Store {
    /// Nothing yet, of at most so many bytes, of which one user may lease so many; files are of `segment` bytes unless
    /// other sizes are asked for again and again.
    #[must_use]
    pub fn new(capacity: u64, user_most: u64, segment: u64) -> Store {
        let (entries, held, sizes) = Default::default();
        Store { capacity, user_most, segment, entries, held, sizes, last: 0, uses: 0 }
    }

    /// The size of the files that are made unasked.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// All files by their numbers.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// One file.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Bytes of the files of which that holds.
    pub fn bytes(&self, which: impl Fn(&Entry) -> bool) -> u64 {
        self.entries.values().filter(|entry| which(entry)).map(|entry| entry.bytes).sum()
    }

    /// Memory of leases that ended which did not come back, by user.
    #[must_use]
    pub fn held(&self) -> &BTreeMap<User, u64> {
        &self.held
    }

    /// Tells how much memory of leases that ended has not come back. It counts as its user's.
    pub fn set_held(&mut self, held: BTreeMap<User, u64>) {
        self.held = held;
    }

    fn free(&self) -> u64 {
        let held: u64 = self.held.values().sum();
        self.capacity.saturating_sub(self.bytes(|_| true).saturating_add(held))
    }

    fn add(&mut self, bytes: u64, state: State, promised: Option<User>) -> u64 {
        (self.last, self.uses) = (self.last + 1, self.uses + 1);
        let entry = Entry { bytes, state, promised, user: None, used: self.uses };
        self.entries.insert(self.last, entry);
        self.last
    }

    /// Keeps numbers that an earlier server gave from being given again.
    pub fn start_after(&mut self, id: u64) {
        self.last = self.last.max(id);
    }

    /// A segment to be zeroed, if there is room for one.
    pub fn fill(&mut self) -> Option<u64> {
        (self.free() >= self.segment).then(|| self.add(self.segment, State::Zeroing, None))
    }

    /// A file that an earlier server left, whatever room there is: it is there.
    pub fn adopt(&mut self, bytes: u64, state: State) -> u64 {
        self.add(bytes, state, None)
    }

    fn leased_to(&self, user: User) -> u64 {
        let leased = self.bytes(|entry| {
            matches!(entry.state, State::Leased(by) if by.user == user)
                || entry.promised == Some(user)
        });
        leased + self.held.get(&user).copied().unwrap_or(0)
    }

    /// Returns whether a request is answered at once.
    #[must_use]
    pub fn has(&self, bytes: u64, holder: Holder) -> bool {
        let ready = |entry: &Entry| entry.state == State::Ready && entry.fits(bytes, holder);
        self.leased_to(holder.user) + bytes <= self.user_most && self.entries.values().any(ready)
    }

    /// The reason why a request is refused whatever is ready: it is more than there can be, or than one user may have.
    #[must_use]
    pub fn refuses(&self, bytes: u64, holder: Holder) -> Option<String> {
        if bytes > self.capacity {
            let (asked, most) = (gib(bytes), gib(self.capacity));
            return Some(format!("found a request of {asked}, accepted at most {most}"));
        }
        let has = self.leased_to(holder.user);
        (has + bytes > self.user_most).then(|| {
            let (asked, has, most) = (gib(bytes), gib(has), gib(self.user_most));
            let user = holder.user.map_or("an unknown user".into(), |user| format!("user {user}"));
            format!(
                "{user} has {has} leased and asks for {asked} more, accepted at most {most} a user"
            )
        })
    }

    /// Answers a request. `working` is the file that cannot be dropped at this moment.
    pub fn ask(&mut self, bytes: u64, holder: Holder, working: Option<u64>) -> Answer {
        if let Some(why) = self.refuses(bytes, holder) {
            return Answer::Refused(why);
        }
        let fits = |entry: &Entry| entry.fits(bytes, holder);
        // The one used last: the least likely to be dropped for another size.
        let of = |entries: &BTreeMap<u64, Entry>, state: State| {
            let found = entries.iter().filter(|(_, entry)| entry.state == state && fits(entry));
            found.max_by_key(|(_, entry)| entry.used).map(|(id, _)| *id)
        };
        if let Some(id) = of(&self.entries, State::Ready) {
            self.lease(id, holder);
            return Answer::Lease(id);
        }
        let begun = working.filter(|id| {
            self.entries.get(id).is_some_and(|entry| entry.state == State::Zeroing && fits(entry))
        });
        if let Some(id) = begun.or_else(|| of(&self.entries, State::Zeroing))
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.promised = Some(holder.user);
            return Answer::Promise(id);
        }
        // A new one, in the place of those of other sizes: first what is no segment, then what was not used for the
        // longest time.
        let leased = |entry: &Entry| matches!(entry.state, State::Leased(_));
        let mut idle: Vec<_> = self
            .entries()
            .filter(|(_, entry)| !leased(entry) && entry.promised.is_none())
            .collect();
        idle.sort_by_key(|(_, entry)| (entry.bytes == self.segment, entry.used));
        let (mut room, mut dropped) = (self.free(), Vec::new());
        for (id, entry) in idle.iter().filter(|(id, _)| Some(*id) != working) {
            if room >= bytes {
                break;
            }
            room += entry.bytes;
            dropped.push((*id, entry.user));
        }
        if room < bytes {
            let later = self.free() + self.bytes(|entry| !leased(entry));
            if later >= bytes {
                return Answer::Later;
            }
            let (asked, left) = (gib(bytes), gib(later));
            return Answer::Refused(format!("found a request of {asked}, not leased are {left}"));
        }
        dropped.iter().for_each(|(id, _)| self.remove(*id));
        Answer::Make { id: self.add(bytes, State::Zeroing, Some(holder.user)), dropped }
    }

    /// Makes that one somebody's.
    pub fn lease(&mut self, id: u64, holder: Holder) {
        self.uses += 1;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        (entry.state, entry.promised, entry.used) = (State::Leased(holder), None, self.uses);
        if entry.bytes != self.segment {
            self.sizes.push_back(entry.bytes);
            self.sizes.drain(..self.sizes.len().saturating_sub(REMEMBERED));
        }
    }

    /// Makes that one ready. Returns whether a request waits for it.
    pub fn zeroed(&mut self, id: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.state = State::Ready;
        entry.promised.is_some()
    }

    /// Ends a lease. Where its pages stay the same, it stays with its user.
    pub fn returned(&mut self, id: u64, in_place: bool) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let State::Leased(holder) = entry.state
        {
            (entry.state, entry.user) = (State::Zeroing, holder.user.filter(|_| in_place));
        }
    }

    /// Returns whether that size is worth a file of its own once its lease has ended: the segment's, or one that was leased
    /// more than once of late, as long as such files have at most half of all memory.
    #[must_use]
    pub fn is_wanted(&self, bytes: u64) -> bool {
        let others =
            |entry: &Entry| !matches!(entry.state, State::Leased(_)) && entry.bytes != self.segment;
        bytes == self.segment
            || self.sizes.iter().filter(|other| **other == bytes).count() > 1
                && self.bytes(others) <= self.capacity / 2
    }

    /// Takes that one for not zero. Its size, and whether a request waits for it.
    pub fn doubt(&mut self, id: u64) -> Option<(u64, bool)> {
        let entry = self.entries.get_mut(&id)?;
        (entry.state, entry.user) = (State::Zeroing, None);
        Some((entry.bytes, entry.promised.is_some()))
    }

    /// Ends the wait for that one.
    pub fn forget_promise(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.promised = None;
        }
    }

    /// Forgets that one.
    pub fn remove(&mut self, id: u64) {
        self.entries.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Ask { bytes: u64, user: User },
        Held(u64, User),
        Zeroed(usize),
        Returned(usize),
        Forget(usize),
        Fill,
    }

    fn user() -> impl Strategy<Value = User> {
        prop_oneof![3 => (0u32..3).prop_map(Some), 1 => Just(None)]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1u64..9, user()).prop_map(|(bytes, user)| Step::Ask { bytes, user }),
            1 => (0u64..4, user()).prop_map(|(bytes, user)| Step::Held(bytes, user)),
            4 => any::<usize>().prop_map(Step::Zeroed),
            3 => any::<usize>().prop_map(Step::Returned),
            1 => any::<usize>().prop_map(Step::Forget),
            1 => Just(Step::Fill),
        ];
        proptest::collection::vec(step, 1..120)
    }

    fn nth(store: &Store, place: usize, which: impl Fn(&Entry) -> bool) -> Option<u64> {
        let ids: Vec<_> =
            store.entries().filter(|(_, entry)| which(entry)).map(|(id, _)| id).collect();
        place.checked_rem(ids.len()).map(|place| ids[place])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Never more than there is, nothing given twice, nothing dropped that somebody has or waits for,
        /// no page of one user for another, no user above the limit.
        #[test]
        fn memory_has_one_holder(steps in steps(), in_place: bool) {
            let (capacity, most) = (16, 9);
            let mut store = Store::new(capacity, most, 2);
            for step in steps {
                let before: BTreeMap<_, _> =
                    store.entries().map(|(id, entry)| (id, *entry)).collect();
                match step {
                    Step::Ask { bytes, user } => {
                        let holder = Holder { user, process: 1 };
                        let working = nth(&store, 0, |entry| entry.state == State::Zeroing);
                        let has = store.has(bytes, holder);
                        let answer = store.ask(bytes, holder, working);
                        prop_assert_eq!(has, matches!(answer, Answer::Lease(_)));
                        match answer {
                            Answer::Lease(id) => {
                                prop_assert_eq!(before[&id].state, State::Ready);
                                prop_assert_eq!(before[&id].promised, None);
                                prop_assert_eq!(before[&id].bytes, bytes);
                                prop_assert!(before[&id].user.is_none_or(|whose| Some(whose) == user));
                            }
                            Answer::Promise(id) => {
                                prop_assert_eq!(before[&id].state, State::Zeroing);
                                prop_assert_eq!(before[&id].promised, None);
                                prop_assert!(before[&id].user.is_none_or(|whose| Some(whose) == user));
                            }
                            Answer::Make { id, dropped } => {
                                prop_assert!(!before.contains_key(&id));
                                for (id, _) in dropped {
                                    let gone = before[&id];
                                    prop_assert!(!matches!(gone.state, State::Leased(_)));
                                    prop_assert!(gone.promised.is_none() && Some(id) != working);
                                }
                            }
                            Answer::Later => prop_assert!(working.is_some()
                                || before.values().any(|entry| entry.promised.is_some())),
                            Answer::Refused(why) => {
                                let mine = |entry: &Entry| {
                                    matches!(entry.state, State::Leased(by) if by.user == user)
                                        || entry.promised == Some(user)
                                };
                                let leased = store.bytes(|e| matches!(e.state, State::Leased(_)));
                                let held: u64 = store.held().values().sum();
                                let my_held = store.held().get(&user).unwrap_or(&0);
                                prop_assert!(
                                    store.bytes(mine) + my_held + bytes > most
                                        || leased + held + bytes > capacity,
                                    "{}", why
                                );
                            }
                        }
                    }
                    Step::Zeroed(place) => {
                        if let Some(id) = nth(&store, place, |e| e.state == State::Zeroing)
                            && store.zeroed(id)
                        {
                            store.lease(id, Holder { user: Some(0), process: 2 });
                        }
                    }
                    Step::Returned(place) => {
                        if let Some(id) = nth(&store, place, |e| matches!(e.state, State::Leased(_))) {
                            store.returned(id, in_place);
                        }
                    }
                    Step::Forget(place) => {
                        if let Some(id) = nth(&store, place, |entry| entry.promised.is_some()) {
                            store.forget_promise(id);
                        }
                    }
                    Step::Fill => drop(store.fill()),
                    Step::Held(bytes, user) => {
                        // Held bytes were a file's before.
                        if bytes <= store.free() {
                            store.set_held([(user, bytes)].into());
                        }
                    }
                }
                let held: u64 = store.held().values().sum();
                prop_assert!(store.bytes(|_| true) + held <= capacity);
                prop_assert!(store.entries().all(|(_, entry)| entry.user.is_none_or(|user| user < 3)));
            }
        }
    }

    #[test]
    fn a_size_that_was_never_asked_for_takes_the_place_of_others() {
        let mut store = Store::new(8, 8, 4);
        let ids = [store.fill().expect("room"), store.fill().expect("room")];
        assert_eq!(store.fill(), None);
        ids.iter().for_each(|id| assert!(!store.zeroed(*id)));
        let holder = Holder { user: Some(7), process: 1 };
        assert_eq!(
            store.ask(3, holder, None),
            Answer::Make { id: 3, dropped: vec![(ids[0], None)] }
        );
        assert!(store.zeroed(3));
        store.lease(3, holder);
        assert_eq!(store.ask(4, holder, None), Answer::Lease(ids[1]));
        let Answer::Refused(why) = store.ask(2, holder, None) else { panic!("given away twice") };
        assert!(why.contains("accepted at most"), "{why}");
        store.returned(3, false);
        assert_eq!(store.ask(3, holder, None), Answer::Promise(3));
    }

    #[test]
    fn a_size_that_is_asked_for_once_leaves_no_file_of_its_own() {
        let mut store = Store::new(16, 16, 4);
        let holder = Holder { user: Some(7), process: 1 };
        assert!(store.is_wanted(4) && !store.is_wanted(3));
        for wanted in [false, true] {
            let Answer::Make { id, .. } = store.ask(3, holder, None) else { panic!("it is new") };
            assert!(store.zeroed(id));
            store.lease(id, holder);
            store.returned(id, false);
            assert_eq!(store.is_wanted(3), wanted);
            store.remove(id);
        }
        // Sizes that are asked for again and again have half of the memory at most.
        let mut left = 0;
        for bytes in 5..9 {
            for _ in 0..2 {
                if let Answer::Make { id, .. } | Answer::Promise(id) =
                    store.ask(bytes, holder, None)
                {
                    store.zeroed(id);
                    store.lease(id, holder);
                    store.returned(id, false);
                    if !store.is_wanted(bytes) {
                        store.remove(id);
                    }
                }
            }
            left = store.bytes(|entry| entry.bytes != 4);
            assert!(left <= 8, "{left}");
        }
        assert_ne!(left, 0);
    }

    #[test]
    fn what_did_not_come_back_counts_against_its_user() {
        let mut store = Store::new(8, 4, 4);
        store.set_held([(Some(7), 2), (None, 1)].into());
        let ask =
            |store: &mut Store, user, bytes| store.ask(bytes, Holder { user, process: 1 }, None);
        assert!(matches!(ask(&mut store, Some(7), 3), Answer::Refused(_)));
        assert!(matches!(ask(&mut store, None, 4), Answer::Refused(_)));
        let Answer::Make { id, .. } = ask(&mut store, Some(8), 4) else { panic!("there is room") };
        store.lease(id, Holder { user: Some(8), process: 1 });
        let Answer::Refused(why) = ask(&mut store, Some(9), 4) else {
            panic!("more than there is")
        };
        assert!(why.contains("not leased are"), "{why}");
    }
}
