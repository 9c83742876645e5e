//! The files of memory, their states and their holders: bookkeeping alone, no system call.

use std::collections::{BTreeMap, VecDeque};

/// Requests for other sizes than the segment's that are remembered.
const REMEMBERED: usize = 64;

/// The holder of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user that asked, as this user namespace sees it: users from outside are one.
    pub user: u32,
    /// The process that asked; 0 if it is in a PID namespace that this process cannot see.
    pub process: i32,
}

/// The state of a file of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not resident yet.
    Zeroing,
    /// Resident and zero.
    Ready,
    /// Leased.
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
    pub promised: Option<u32>,
    used: u64,
}

impl Entry {
    fn fits(&self, bytes: u64) -> bool {
        self.bytes == bytes && self.promised.is_none()
    }

    /// Returns whether no client has it or waits for it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.promised.is_none() && !matches!(self.state, State::Leased(_))
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The id of the file now leased.
    Lease(u64),
    /// The id of the file that will be leased when it is zero.
    Promise(u64),
    /// The id of a file to be made, and those to be dropped for it.
    Make(u64, Vec<u64>),
    /// The reason why there is nothing.
    Refused(String),
}

fn gib(bytes: u64) -> String {
    format!("{:.3} GiB", bytes as f64 / f64::from(1 << 30))
}

/// All files.
#[derive(Debug)]
pub struct Store {
    capacity: u64,
    user_most: u64,
    segment: u64,
    entries: BTreeMap<u64, Entry>,
    /// Other sizes than the segment's that were asked for last.
    sizes: VecDeque<u64>,
    last: u64,
    uses: u64,
}

impl Store {
    /// An empty store of at most `capacity` bytes, of which one user may lease `user_most`; files are of `segment` bytes
    /// unless other sizes are asked for again and again.
    #[must_use]
    pub fn new(capacity: u64, user_most: u64, segment: u64) -> Store {
        let (entries, sizes) = Default::default();
        Store { capacity, user_most, segment, entries, sizes, last: 0, uses: 0 }
    }

    /// The size of the files that are made unasked.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// All files by their ids.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// One file.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Bytes of the files for which `which` holds.
    pub fn bytes(&self, which: impl Fn(&Entry) -> bool) -> u64 {
        self.entries.values().filter(|entry| which(entry)).map(|entry| entry.bytes).sum()
    }

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.bytes(|_| true))
    }

    fn add(&mut self, bytes: u64, promised: Option<u32>) -> u64 {
        (self.last, self.uses) = (self.last + 1, self.uses + 1);
        let entry = Entry { bytes, state: State::Zeroing, promised, used: self.uses };
        self.entries.insert(self.last, entry);
        self.last
    }

    /// A segment to be zeroed, if there is room for one.
    pub fn fill(&mut self) -> Option<u64> {
        (self.free() >= self.segment).then(|| self.add(self.segment, None))
    }

    fn leased_to(&self, user: u32) -> u64 {
        let of_user = |entry: &Entry| match entry.state {
            State::Leased(holder) => holder.user == user,
            _ => entry.promised == Some(user),
        };
        self.bytes(of_user)
    }

    /// Returns whether a request is answered at once.
    #[must_use]
    pub fn has(&self, bytes: u64, user: u32) -> bool {
        let ready = |entry: &Entry| entry.state == State::Ready && entry.fits(bytes);
        self.refuses(bytes, user).is_none() && self.entries.values().any(ready)
    }

    /// The reason why a request is refused whatever is ready: it is more than there can be, or than one user may have.
    #[must_use]
    pub fn refuses(&self, bytes: u64, user: u32) -> Option<String> {
        if bytes > self.capacity {
            let (asked, most) = (gib(bytes), gib(self.capacity));
            return Some(format!("expected at most {most}, found a request of {asked}"));
        }
        let has = self.leased_to(user);
        (has + bytes > self.user_most).then(|| {
            let (asked, has, most) = (gib(bytes), gib(has), gib(self.user_most));
            format!(
                "user {user} has {has} leased and asks for {asked} more, accepted at most {most} a user"
            )
        })
    }

    /// Answers a request.
    pub fn ask(&mut self, bytes: u64, holder: Holder) -> Answer {
        if let Some(why) = self.refuses(bytes, holder.user) {
            return Answer::Refused(why);
        }
        // The one used last: the least likely to be dropped for another size.
        let of = |entries: &BTreeMap<u64, Entry>, state: State| {
            let found =
                entries.iter().filter(|(_, entry)| entry.state == state && entry.fits(bytes));
            found.max_by_key(|(_, entry)| entry.used).map(|(id, _)| *id)
        };
        if let Some(id) = of(&self.entries, State::Ready) {
            self.lease(id, holder);
            return Answer::Lease(id);
        }
        if let Some(id) = of(&self.entries, State::Zeroing)
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.promised = Some(holder.user);
            return Answer::Promise(id);
        }
        // A new one, in the place of those of other sizes: first what is no segment, then what was not used for the
        // longest time.
        let mut idle: Vec<_> = self.entries().filter(|(_, entry)| entry.is_idle()).collect();
        idle.sort_by_key(|(_, entry)| (entry.bytes == self.segment, entry.used));
        let (mut room, mut dropped) = (self.free(), Vec::new());
        for (id, entry) in idle {
            if room >= bytes {
                break;
            }
            room += entry.bytes;
            dropped.push(id);
        }
        if room < bytes {
            let (asked, left) = (gib(bytes), gib(room));
            return Answer::Refused(format!("found a request of {asked}, not leased are {left}"));
        }
        dropped.iter().for_each(|id| self.remove(*id));
        Answer::Make(self.add(bytes, Some(holder.user)), dropped)
    }

    /// Records `holder` as the lessee of `id`.
    pub fn lease(&mut self, id: u64, holder: Holder) {
        self.uses += 1;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        (entry.state, entry.promised, entry.used) = (State::Leased(holder), None, self.uses);
        if entry.bytes != self.segment {
            self.sizes.push_back(entry.bytes);
            self.sizes.drain(..self.sizes.len().saturating_sub(REMEMBERED));
        }
    }

    /// Records that `id` is resident and zero. Returns whether a request waits for it.
    pub fn zeroed(&mut self, id: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.state = State::Ready;
        entry.promised.is_some()
    }

    /// Ends a lease. Returns a file of the same size to be made in its place if the size is worth one: the segment's, or
    /// one that was leased more than once of late, as long as such files have at most half of all memory.
    pub fn returned(&mut self, id: u64) -> Option<(u64, u64)> {
        let bytes = self.entries.remove(&id)?.bytes;
        let others =
            |entry: &Entry| !matches!(entry.state, State::Leased(_)) && entry.bytes != self.segment;
        let is_wanted = bytes == self.segment
            || self.sizes.iter().filter(|other| **other == bytes).count() > 1
                && self.bytes(others) + bytes <= self.capacity / 2;
        is_wanted.then(|| (self.add(bytes, None), bytes))
    }

    /// Ends the wait for a file.
    pub fn forget_promise(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.promised = None;
        }
    }

    /// Removes a file.
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
        Ask(u64, u32),
        Zeroed(usize),
        Returned(usize),
        Forget(usize),
        Fill,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1u64..9, 0u32..3).prop_map(|(bytes, user)| Step::Ask(bytes, user)),
            4 => any::<usize>().prop_map(Step::Zeroed),
            3 => any::<usize>().prop_map(Step::Returned),
            1 => any::<usize>().prop_map(Step::Forget),
            1 => Just(Step::Fill),
        ];
        proptest::collection::vec(step, 1..120)
    }

    fn nth(store: &Store, place: usize, which: impl Fn(&Entry) -> bool) -> Option<u64> {
        let found = store.entries().filter(|(_, entry)| which(entry)).map(|(id, _)| id);
        let ids: Vec<_> = found.collect();
        place.checked_rem(ids.len()).map(|place| ids[place])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Never more than there is, nothing given twice, nothing dropped that somebody has or waits for, no user above
        /// the limit, and a refusal only where it is due.
        #[test]
        fn memory_has_one_holder(steps in steps()) {
            let (capacity, most) = (16, 9);
            let mut store = Store::new(capacity, most, 2);
            for step in steps {
                let before: BTreeMap<_, _> =
                    store.entries().map(|(id, entry)| (id, *entry)).collect();
                match step {
                    Step::Ask(bytes, user) => {
                        let has = store.has(bytes, user);
                        let answer = store.ask(bytes, Holder { user, process: 1 });
                        prop_assert_eq!(has, matches!(answer, Answer::Lease(_)));
                        match answer {
                            Answer::Lease(id) | Answer::Promise(id) => {
                                let state = if has { State::Ready } else { State::Zeroing };
                                let found = before[&id];
                                prop_assert_eq!((found.state, found.promised), (state, None));
                                prop_assert_eq!(found.bytes, bytes);
                            }
                            Answer::Make(id, dropped) => {
                                prop_assert!(!before.contains_key(&id));
                                prop_assert!(dropped.iter().all(|id| before[id].is_idle()));
                            }
                            Answer::Refused(_) => {
                                let of_user = store.leased_to(user);
                                let taken = store.bytes(|entry| !entry.is_idle());
                                prop_assert!(of_user + bytes > most || taken + bytes > capacity);
                            }
                        }
                    }
                    Step::Zeroed(place) => {
                        if let Some(id) = nth(&store, place, |entry| entry.state == State::Zeroing) {
                            let promised = store.zeroed(id);
                            prop_assert_eq!(promised, before[&id].promised.is_some());
                            if let (true, Some(user)) = (promised, before[&id].promised) {
                                store.lease(id, Holder { user, process: 1 });
                            }
                        }
                    }
                    Step::Returned(place) => {
                        let leased = |entry: &Entry| matches!(entry.state, State::Leased(_));
                        if let Some(id) = nth(&store, place, leased) {
                            let again = store.returned(id);
                            prop_assert!(store.get(id).is_none());
                            prop_assert!(again.is_none_or(|(_, bytes)| bytes == before[&id].bytes));
                        }
                    }
                    Step::Forget(place) => {
                        if let Some(id) = nth(&store, place, |entry| entry.promised.is_some()) {
                            store.forget_promise(id);
                        }
                    }
                    Step::Fill => {
                        store.fill();
                    }
                }
                prop_assert!(store.bytes(|_| true) <= capacity);
                prop_assert!((0..3).all(|user| store.leased_to(user) <= most));
            }
        }
    }

    #[test]
    fn a_size_is_kept_ready_from_its_second_lease_on_in_half_of_all() {
        let holder = Holder { user: 1, process: 1 };
        let mut store = Store::new(16, 16, 8);
        let mut again = |bytes| {
            let (Answer::Make(id, _) | Answer::Promise(id)) = store.ask(bytes, holder) else {
                panic!("it was not there")
            };
            store.zeroed(id);
            store.lease(id, holder);
            store.returned(id).map(|(_, bytes)| bytes)
        };
        assert_eq!([2, 2, 8, 9, 9].map(&mut again), [None, Some(2), Some(8), None, None]);
    }
}
