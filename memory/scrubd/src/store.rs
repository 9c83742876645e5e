//! Which memory there is, in what state, and who gets which: bookkeeping alone, no system call.

use std::collections::BTreeMap;

/// Who has a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user that asked.
    pub user: u32,
    /// The process that asked.
    pub process: i32,
}

/// What a file of memory is.
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
    /// What it is.
    pub state: State,
    /// The user whose request waits for it.
    pub promised: Option<u32>,
    /// The user that it stays with: its pages were zeroed in place.
    pub user: Option<u32>,
    used: u64,
}

impl Entry {
    fn fits(&self, bytes: u64, holder: Holder) -> bool {
        self.bytes == bytes
            && self.promised.is_none()
            && self.user.is_none_or(|user| user == holder.user)
    }
}

/// What a request gets.
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
        /// Those to be dropped.
        dropped: Vec<u64>,
    },
    /// Memory enough is being worked on: ask again when it is done.
    Later,
    /// Nothing, with the reason.
    Refused(String),
}

/// All memory.
#[derive(Debug)]
pub struct Store {
    capacity: u64,
    user_most: u64,
    entries: BTreeMap<u64, Entry>,
    last: u64,
    uses: u64,
}

impl Store {
    /// Nothing yet, of at most so many bytes, of which one user may lease so many.
    #[must_use]
    pub fn new(capacity: u64, user_most: u64) -> Store {
        Store { capacity, user_most, entries: BTreeMap::new(), last: 0, uses: 0 }
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

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.bytes(|_| true))
    }

    fn add(&mut self, bytes: u64, state: State, promised: Option<u32>) -> u64 {
        (self.last, self.uses) = (self.last + 1, self.uses + 1);
        let entry = Entry { bytes, state, promised, user: None, used: self.uses };
        self.entries.insert(self.last, entry);
        self.last
    }

    /// Numbers that an earlier server gave are not given again.
    pub fn start_after(&mut self, id: u64) {
        self.last = self.last.max(id);
    }

    /// A file to be zeroed, if there is room for so many bytes.
    pub fn fill(&mut self, bytes: u64) -> Option<u64> {
        (self.free() >= bytes).then(|| self.add(bytes, State::Zeroing, None))
    }

    /// A file that an earlier server left, whatever room there is: it is there.
    pub fn adopt(&mut self, bytes: u64, state: State) -> u64 {
        self.add(bytes, state, None)
    }

    fn leased_to(&self, user: u32) -> u64 {
        self.bytes(|entry| {
            matches!(entry.state, State::Leased(by) if by.user == user)
                || entry.promised == Some(user)
        })
    }

    /// Whether a request is answered at once.
    #[must_use]
    pub fn has(&self, bytes: u64, holder: Holder) -> bool {
        let ready = |entry: &Entry| entry.state == State::Ready && entry.fits(bytes, holder);
        self.leased_to(holder.user) + bytes <= self.user_most && self.entries.values().any(ready)
    }

    /// Who gets what. `working` is the file that cannot be dropped at this moment.
    pub fn ask(&mut self, bytes: u64, holder: Holder, working: Option<u64>) -> Answer {
        let gib = |bytes: u64| format!("{:.3} GiB", bytes as f64 / f64::from(1 << 30));
        if bytes > self.capacity {
            let (asked, most) = (gib(bytes), gib(self.capacity));
            return Answer::Refused(format!("found a request of {asked}, accepted at most {most}"));
        }
        let has = self.leased_to(holder.user);
        if has + bytes > self.user_most {
            let (asked, has, most) = (gib(bytes), gib(has), gib(self.user_most));
            return Answer::Refused(format!(
                "user {} has {has} leased and asks for {asked} more, accepted at most {most} a user",
                holder.user
            ));
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
        // A new one, in the place of those of other sizes that were not used for the longest time.
        let leased = |entry: &Entry| matches!(entry.state, State::Leased(_));
        let mut idle: Vec<_> = self
            .entries()
            .filter(|(_, entry)| !leased(entry) && entry.promised.is_none())
            .collect();
        idle.sort_by_key(|(_, entry)| entry.used);
        let (mut room, mut dropped) = (self.free(), Vec::new());
        for (id, entry) in idle.iter().filter(|(id, _)| Some(*id) != working) {
            if room >= bytes {
                break;
            }
            room += entry.bytes;
            dropped.push(*id);
        }
        if room < bytes {
            let later = self.free() + self.bytes(|entry| !leased(entry));
            if later >= bytes {
                return Answer::Later;
            }
            let (asked, left) = (gib(bytes), gib(later));
            return Answer::Refused(format!("found a request of {asked}, not leased are {left}"));
        }
        dropped.iter().for_each(|id| self.remove(*id));
        Answer::Make { id: self.add(bytes, State::Zeroing, Some(holder.user)), dropped }
    }

    /// That one is somebody's.
    pub fn lease(&mut self, id: u64, holder: Holder) {
        self.uses += 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.state, entry.promised, entry.used) = (State::Leased(holder), None, self.uses);
        }
    }

    /// That one is zero. Whether a request waits for it.
    pub fn zeroed(&mut self, id: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.state = State::Ready;
        entry.promised.is_some()
    }

    /// Nobody has that one any more. Where its pages stay the same, it stays with its user.
    pub fn returned(&mut self, id: u64, in_place: bool) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let State::Leased(holder) = entry.state
        {
            (entry.state, entry.user) = (State::Zeroing, in_place.then_some(holder.user));
        }
    }

    /// That one is not believed to be zero. Its size, and whether a request waits for it.
    pub fn doubt(&mut self, id: u64) -> Option<(u64, bool)> {
        let entry = self.entries.get_mut(&id)?;
        (entry.state, entry.user) = (State::Zeroing, None);
        Some((entry.bytes, entry.promised.is_some()))
    }

    /// Nobody waits for that one any more.
    pub fn forget_promise(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.promised = None;
        }
    }

    /// That one is gone.
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
        Ask { bytes: u64, user: u32 },
        Zeroed(usize),
        Returned(usize),
        Forget(usize),
        Fill,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1u64..9, 0u32..3).prop_map(|(bytes, user)| Step::Ask { bytes, user }),
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
            let mut store = Store::new(capacity, most);
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
                                prop_assert!(before[&id].user.is_none_or(|whose| whose == user));
                            }
                            Answer::Promise(id) => {
                                prop_assert_eq!(before[&id].state, State::Zeroing);
                                prop_assert_eq!(before[&id].promised, None);
                                prop_assert!(before[&id].user.is_none_or(|whose| whose == user));
                            }
                            Answer::Make { id, dropped } => {
                                prop_assert!(!before.contains_key(&id));
                                for id in dropped {
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
                                prop_assert!(
                                    store.bytes(mine) + bytes > most || leased + bytes > capacity,
                                    "{}", why
                                );
                            }
                        }
                    }
                    Step::Zeroed(place) => {
                        if let Some(id) = nth(&store, place, |e| e.state == State::Zeroing)
                            && store.zeroed(id)
                        {
                            store.lease(id, Holder { user: 0, process: 2 });
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
                    Step::Fill => drop(store.fill(2)),
                }
                prop_assert!(store.bytes(|_| true) <= capacity);
            }
        }
    }

    #[test]
    fn a_size_that_was_never_asked_for_takes_the_place_of_others() {
        let mut store = Store::new(8, 8);
        let ids = [store.fill(4).expect("room"), store.fill(4).expect("room")];
        assert_eq!(store.fill(1), None);
        ids.iter().for_each(|id| assert!(!store.zeroed(*id)));
        let holder = Holder { user: 7, process: 1 };
        assert_eq!(store.ask(3, holder, None), Answer::Make { id: 3, dropped: vec![ids[0]] });
        assert!(store.zeroed(3));
        store.lease(3, holder);
        assert_eq!(store.ask(4, holder, None), Answer::Lease(ids[1]));
        let Answer::Refused(why) = store.ask(2, holder, None) else { panic!("given away twice") };
        assert!(why.contains("accepted at most"), "{why}");
        store.returned(3, false);
        assert_eq!(store.ask(3, holder, None), Answer::Promise(3));
    }
}
