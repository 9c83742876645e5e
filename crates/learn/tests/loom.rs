//! All interleavings of threads at a site's gate, and of the first threads of a forked child:
//! `RUSTFLAGS="--cfg loom_gate" cargo test --release -p cachewise-learn --test loom`, or
//! `cargo run -p xtask -- ci loom`.
#![cfg(loom_gate)]

use cachewise_learn::gate::{Epochs, Gated};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

struct Child {
    epochs: Epochs,
    /// The child's own page: zero at first.
    here: AtomicU32,
    site: Gated<u32>,
}

impl Child {
    /// A call of the site. Two at once, and what the other wrote unseen, are what loom reports.
    fn call(&self) -> u32 {
        let epoch = self.epochs.of(&self.here);
        u32::from(self.site.with(epoch, |calls| *calls += 1).is_some())
    }
}

fn child(left_by: u32) -> Arc<Child> {
    let child = Child { epochs: Epochs::new(), here: AtomicU32::new(0), site: Gated::new(0) };
    for _ in 0..left_by {
        // As its ancestors took theirs.
        child.epochs.of(&AtomicU32::new(0));
    }
    child.site.left_by(left_by);
    Arc::new(child)
}

fn from_two_threads(left_by: u32) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let child = child(left_by);
        let other = Arc::clone(&child);
        let other = thread::spawn(move || other.call());
        let counted = child.call() + other.join().expect("no panic");
        assert!(counted >= 1, "somebody found the gate open");
        let epoch = child.epochs.of(&child.here);
        assert!(epoch > left_by, "no ancestor's number");
        assert_eq!(child.site.with(epoch, |calls| *calls), Some(counted), "and it is open again");
    });
}

#[test]
fn one_thread_at_a_time_and_each_that_was_is_seen() {
    from_two_threads(0);
}

/// The thread that the parent had at the site is not here.
#[test]
fn a_forked_childs_first_threads_agree_and_take_the_gate_over() {
    from_two_threads(1);
}
