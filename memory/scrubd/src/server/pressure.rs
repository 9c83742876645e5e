//! Memory that others need: what is ready goes back before somebody is ended for want of it, and is taken again when it
//! is quiet.

use super::state::{Server, Wants};
use crate::memory::empty;
use crate::pressure::Room;
use crate::store::State;
use crate::zeroer::Old;
use rustix::event::PollFlags;
use std::time::{Duration, Instant};

/// The time in which no memory is taken after some went back.
const QUIET: Duration = Duration::from_secs(10);
/// The time until it is asked again whether there is room.
const AGAIN: Duration = Duration::from_secs(1);
/// The shortest and the longest time until it is looked again at memory that did not come back.
const HELD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
const SCORE: &str = "/proc/self/oom_score_adj";
/// The score of a process that the killer ends first.
const FIRST: i32 = 1000;

/// The score that this process has now.
pub(super) fn score() -> i32 {
    std::fs::read_to_string(SCORE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

impl Server {
    /// Gives ready memory back if others need some. `came` says who waits.
    pub(super) fn relieve(&mut self, came: &[PollFlags]) {
        let Some((host, then, _)) = &mut self.host else { return };
        let (own, somebody) = host.came(came);
        if !somebody && Instant::now() < *then {
            return;
        }
        let room = self.look_at_room();
        let stalled = own || (somebody || room.at_limit) && !room.is_ample();
        let need = room.missing().max(u64::from(stalled));
        if need != 0 {
            let given = self.give_back(need);
            // Given memory is there at once: this thread emptied the files.
            if given != 0 {
                self.look_at_room();
            }
            self.fill_from = self.fill_from.max(Instant::now() + QUIET);
        }
    }

    /// The memory there is at this moment; `None` where nobody else gains by this server's.
    pub(super) fn room(&mut self) -> Option<Room> {
        self.host.is_some().then(|| self.look_at_room())
    }

    fn look_at_room(&mut self) -> Room {
        let idle = self.store.bytes(|entry| !matches!(entry.state, State::Leased(_)));
        let Some((host, next, last)) = &mut self.host else { unreachable!("asked before") };
        let room = host.look();
        // With nothing to give there is nothing to be quick about.
        let pause = if idle == 0 { AGAIN } else { host.next_look(&room) };
        (*next, *last) = (Instant::now() + pause, room);
        room
    }

    /// Gives back so much at least, if there is so much: what is not zero yet, then what is ready, the largest first. What
    /// there was of it.
    fn give_back(&mut self, need: u64) -> u64 {
        let of = |state: State| {
            move |entry: &crate::store::Entry| entry.state == state && entry.promised.is_none()
        };
        let (zeroing, ready) = (of(State::Zeroing), of(State::Ready));
        let mut idle: Vec<_> = self
            .store
            .entries()
            .filter(|(_, entry)| zeroing(entry) || ready(entry))
            .map(|(id, entry)| (entry.state == State::Ready, std::cmp::Reverse(entry.bytes), id))
            .collect();
        idle.sort_unstable();
        let mut left = self.store.bytes(ready);
        let mut given = 0;
        for (is_ready, std::cmp::Reverse(bytes), id) in idle {
            if given >= need {
                break;
            }
            if is_ready && left.saturating_sub(bytes) < self.settings.keep {
                continue;
            }
            let user = self.store.get(id).and_then(|entry| entry.user).map(Some);
            let mut queue = self.zeroer.queue();
            if queue.working == Some(id) {
                // It goes at the next piece of it.
                queue.give_up(id);
                continue;
            }
            let withdrawn = queue.withdraw(id);
            drop(queue);
            let own = self.leave(id).map(|file| Old { file, user });
            self.store.remove(id);
            for Old { file, user } in withdrawn.into_iter().chain(own) {
                match user {
                    Some(user) => self.zeroer.pins().take_back(file, user),
                    None => empty(&file),
                }
            }
            if is_ready {
                (left, given) = (left - bytes, given + bytes);
            }
        }
        self.see_held();
        self.figures.given_back += given;
        given
    }

    /// Returns whether there is room for all that is to be zeroed, with some to spare.
    pub(super) fn has_room(&mut self) -> bool {
        let pending = self.store.bytes(|entry| entry.state == State::Zeroing);
        let Some(room) = self.room() else { return true };
        let enough = room.available >= pending.saturating_add(room.margin() * 3 / 2);
        if !enough {
            self.fill_from = self.fill_from.max(Instant::now() + AGAIN);
        }
        enough
    }

    /// Counts what did not come back, and when to look again.
    pub(super) fn see_held(&mut self) {
        let pins = self.zeroer.pins();
        let (held, none) = (pins.by_user(), pins.is_empty());
        drop(pins);
        self.store.set_held(held);
        if none {
            self.held_look = None;
        } else if self.held_look.is_none() {
            self.held_look = Some((Instant::now() + HELD.0, HELD.0));
        }
    }

    /// Looks whether memory came back that had not.
    pub(super) fn look_at_held(&mut self) {
        let Some((_, pause)) = self.held_look.filter(|(then, _)| *then <= Instant::now()) else {
            return;
        };
        self.zeroer.pins().look();
        let before = self.store.held().clone();
        self.see_held();
        if self.store.held() != &before {
            self.serve_again(None);
        }
        if self.held_look.is_some() {
            let pause = (pause * 2).min(HELD.1);
            self.held_look = Some((Instant::now() + pause, pause));
        }
    }

    /// Tells the system's killer what it would gain: all that is ready, and that goes first.
    pub(super) fn tell_score(&mut self) {
        if !self.settings.goes_first {
            return;
        }
        let ready = self.store.bytes(|entry| entry.state == State::Ready);
        let waits = self.clients.iter().any(|client| matches!(client.wants, Wants::Memory { .. }));
        let (told, own) = self.score;
        let score = if ready > self.settings.keep || waits { FIRST.max(own) } else { own };
        if score != told && std::fs::write(SCORE, score.to_string()).is_ok() {
            self.score.0 = score;
        }
    }
}
