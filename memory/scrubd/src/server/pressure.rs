//! Memory that others need, on the machine or in the same control group: what is ready goes back before somebody is ended
//! for want of it, and is taken again when it is quiet.

use super::{LOOK, QUIET, Server};
use crate::store::State;
use cachewise_host::Room;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// Bytes a second that all programs take at most: looks are so frequent that half of the margin is left for the next one.
const TAKEN: f64 = 32e9;
/// The shortest time between two looks.
const SOONEST: Duration = Duration::from_millis(5);
const SCORE: &str = "/proc/self/oom_score_adj";
/// The score of a process that the killer ends first.
const FIRST: i32 = 1000;

/// Bytes that are left to others: a 32nd, 16 MiB at least and 1 GiB at most.
pub(super) fn margin(room: Room) -> u64 {
    (room.whole / 32).clamp(16 << 20, 1 << 30)
}

/// Bytes that are missing from the margin.
pub(super) fn missing(room: Room) -> u64 {
    margin(room).saturating_sub(room.available)
}

/// The time until the next look.
pub(super) fn pause(room: Room) -> Duration {
    let spare = room.available.saturating_sub(margin(room) / 2) as f64;
    Duration::from_secs_f64(spare / TAKEN).max(SOONEST)
}

/// The score that this process has now.
pub(super) fn score() -> i32 {
    std::fs::read_to_string(SCORE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

impl Server<'_> {
    /// Gives ready memory back if others need some.
    pub(super) fn relieve(&mut self) {
        if Instant::now() < self.next_look {
            return;
        }
        let need = self.look_at_room().map_or(0, missing);
        if need != 0 {
            if self.give_back(need) != 0 {
                self.look_at_room();
            }
            self.fill_from = self.fill_from.max(Instant::now() + QUIET);
        }
    }

    /// Gives back `need` bytes if there are so many: what is not zero yet, then what is ready, the largest first. Returns
    /// the ready bytes of them.
    fn give_back(&mut self, need: u64) -> u64 {
        let idle = self.store.entries().filter(|(_, entry)| entry.is_idle());
        let mut idle: Vec<_> = idle
            .map(|(id, entry)| (entry.state == State::Ready, Reverse(entry.bytes), id))
            .collect();
        idle.sort_unstable();
        let mut left: u64 = idle.iter().filter(|(ready, ..)| *ready).map(|(_, b, _)| b.0).sum();
        let mut given = 0;
        for (is_ready, Reverse(bytes), id) in idle {
            if given >= need {
                break;
            }
            if is_ready && left - bytes < self.settings.keep {
                continue;
            }
            self.zeroer.withdraw(id);
            self.leave(id);
            self.store.remove(id);
            if is_ready {
                (left, given) = (left - bytes, given + bytes);
            }
        }
        self.figures.given_back += given;
        given
    }

    /// Returns whether there is room for all that is to be zeroed, with some to spare.
    pub(super) fn has_room(&mut self) -> bool {
        let pending = self.store.bytes(|entry| entry.state == State::Zeroing);
        let Some(room) = self.look_at_room() else { return true };
        let enough = room.available >= pending.saturating_add(margin(room) * 3 / 2);
        if !enough {
            self.fill_from = self.fill_from.max(Instant::now() + LOOK);
        }
        enough
    }

    /// Tells the system's killer what it would gain: all that is ready, and that goes first.
    pub(super) fn tell_score(&mut self) {
        let ready = self.store.bytes(|entry| entry.state == State::Ready);
        let (told, own) = self.score;
        let score = if ready > self.settings.keep { FIRST.max(own) } else { own };
        if score != told && std::fs::write(SCORE, score.to_string()).is_ok() {
            self.score.0 = score;
        }
    }
}
