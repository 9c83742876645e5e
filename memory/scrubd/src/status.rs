//! The server's figures, as text and as JSON.

use cachewise_host::units::bytes as size;
use serde::{Deserialize, Serialize};

/// The figures of one moment; bytes unless the name says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// All memory, at most.
    pub size: u64,
    /// The kind of pages.
    pub pages: String,
    /// Seconds since the start.
    pub seconds: f64,
    /// Resident and zero.
    pub ready: u64,
    /// Being zeroed, or waiting for that.
    pub zeroing: u64,
    /// With clients.
    pub leased: u64,
    /// The part of the size that is not taken.
    pub untaken: u64,
    /// True if others need memory, so that none is taken.
    pub short: bool,
    /// Available to a program that takes memory from the system (`MemAvailable`, or the control group's rest); 0 where the
    /// memory is reserved.
    pub available: u64,
    /// Given back to the system since the start, for others.
    pub given_back: u64,
    /// In small pages, of what is ready.
    pub small: u64,
    /// Files that are ready, by size.
    pub files: Vec<Files>,
    /// Leases.
    pub leases: Vec<Leased>,
    /// Leases given since the start, number.
    pub given: u64,
    /// Leases that ended, number.
    pub returned: u64,
    /// Requests refused, number.
    pub refused: u64,
    /// Requests that waited for memory to be zeroed, number.
    pub waited: u64,
    /// Seconds that these waited in all.
    pub waited_seconds: f64,
    /// Requests for a size that was not there, number.
    pub made: u64,
    /// Files whose memory the system refused, number.
    pub failed: u64,
    /// Zeroed since the start.
    pub zeroed: u64,
    /// CPU seconds of the server.
    pub cpu_seconds: f64,
}

/// Files of one size that are ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The size of each.
    pub bytes: u64,
    /// Their number.
    pub number: u64,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leased {
    /// The user; all outside this user namespace have one number.
    pub user: u32,
    /// The process that asked; 0 if it is outside this PID namespace.
    pub process: i32,
    /// Its size.
    pub bytes: u64,
    /// Seconds since it was given.
    pub seconds: f64,
}

impl Status {
    /// The figures as lines.
    #[must_use]
    pub fn text(&self) -> String {
        let files =
            self.files.iter().map(|files| format!("{} of {}", files.number, size(files.bytes)));
        let files: Vec<_> = files.collect();
        let mut lines = vec![
            ("memory", format!("{}, {}", size(self.size), self.pages)),
            ("ready", format!("{} ({})", size(self.ready), files.join(", "))),
        ];
        if self.small != 0 {
            lines.push((
                "",
                format!("{} of it in small pages, which gain nothing", size(self.small)),
            ));
        }
        lines.push(("zeroing", size(self.zeroing)));
        lines.push(("leased", size(self.leased)));
        for Leased { user, process, bytes, seconds } in &self.leases {
            let process = match process {
                0 => "a process of another namespace".into(),
                process => format!("process {process}"),
            };
            lines.push(("", format!("{} by user {user}, {process}, {seconds:.0} s", size(*bytes))));
        }
        if self.untaken != 0 {
            let why = if self.short { ": others need it" } else { "" };
            lines.push(("not taken", format!("{}{why}", size(self.untaken))));
        }
        if self.available != 0 {
            let [now, with] = [self.available, self.available + self.ready].map(size);
            let to = "to programs that take it from the system";
            lines.push(("available", format!("{now} {to}; {with} with what is ready here")));
        }
        let Status { given, returned, refused, made, failed, .. } = self;
        lines.push(("requests", format!("{given} given, {returned} returned, {refused} refused")));
        let made =
            format!("{made} for a size that was not there, {failed} the system had no memory for");
        lines.push(("", made));
        lines.push((
            "waits",
            format!("{} requests, {:.3} s in all", self.waited, self.waited_seconds),
        ));
        lines.push((
            "zeroed",
            format!("{}, {} given back", size(self.zeroed), size(self.given_back)),
        ));
        lines.push(("CPU", format!("{:.3} s in {:.0} s", self.cpu_seconds, self.seconds)));
        lines.into_iter().map(|(name, value)| format!("{name:<10} {value}\n")).collect()
    }
}
