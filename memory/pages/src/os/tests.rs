//! Limits and stalls, from the texts that the system has for them.

use super::{limits, stalled};

#[test]
fn what_the_system_says_of_memory_is_read() {
    let text =
        "some avg10=1.53 avg60=0.20 avg300=0.05 total=8110\nfull avg10=0.00 avg60=0 total=1\n";
    assert!((stalled(text) - 1.53).abs() < 1e-9);
    assert_eq!((stalled(""), stalled("some avg10=x total=1")), (0.0, 0.0));
    assert_eq!(limits("low 9\nhigh 3\nmax 40\noom 1\noom_kill 7\n"), 44);
    assert_eq!((limits(""), limits("high\nmax x\n"), limits("17\n")), (0, 0, 17));
}
