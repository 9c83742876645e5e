//! The server's figures, as text, as JSON, and as Prometheus reads them.

use cachewise_measure::units::bytes as size;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The figures of one moment; bytes unless the name says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// All memory, at most.
    pub size: u64,
    /// The kind of pages.
    pub pages: String,
    /// The engine that zeroes.
    pub engine: String,
    /// Threads that zero at once where a client waits.
    pub threads: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Resident and zero.
    pub ready: u64,
    /// Being zeroed, or waiting for that.
    pub zeroing: u64,
    /// With clients.
    pub leased: u64,
    /// Memory of leases that ended, but in use still: in a pipe, by a device.
    pub held: Vec<Held>,
    /// The part of the size that is neither taken nor given away.
    pub untaken: u64,
    /// True if others need memory, so that none is taken.
    pub short: bool,
    /// True if it zeroes no more than it must, since no CPU is idle.
    pub low: bool,
    /// Available to a program that takes memory from the system (`MemAvailable`, or the control group's rest); 0 where it
    /// does not matter.
    pub available: u64,
    /// Given back to the system under pressure, since the start.
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
    /// Seconds that one of them waited at most.
    pub waited_longest_seconds: f64,
    /// Requests for a size that was not there, number.
    pub made: u64,
    /// Files whose memory the system refused, number.
    pub failed: u64,
    /// Questions whether a lease has ended that the system did not answer, number.
    pub unanswered: u64,
    /// Zeroed since the start.
    pub zeroed: u64,
    /// CPU seconds of that.
    pub zeroed_cpu_seconds: f64,
    /// CPU seconds of the whole server.
    pub cpu_seconds: f64,
    /// Turns of its loop, number.
    pub turns: u64,
}

/// Files of one size that are ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The size of each.
    pub bytes: u64,
    /// Their number.
    pub number: u64,
}

/// Memory of leases that ended which did not come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The user whose leases they were; `None` where users cannot be told apart.
    pub user: Option<u32>,
    /// The amount.
    pub bytes: u64,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leased {
    /// The user; `None` if it is outside this user namespace.
    pub user: Option<u32>,
    /// The process that asked; 0 if it is outside this PID namespace.
    pub process: i32,
    /// Its size.
    pub bytes: u64,
    /// Seconds since it was given.
    pub seconds: f64,
}

/// A user in words.
fn named(user: Option<u32>) -> String {
    user.map_or("an unknown user".into(), |user| format!("user {user}"))
}

impl Status {
    /// The figures as lines.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<10} {value}");
        };
        line("memory", format!("{}, {}, zeroed by {}", size(self.size), self.pages, self.engine));
        let ready: Vec<_> = self
            .files
            .iter()
            .map(|files| format!("{} of {}", files.number, size(files.bytes)))
            .collect();
        let files =
            if ready.is_empty() { String::new() } else { format!(" ({})", ready.join(", ")) };
        line("ready", format!("{}{files}", size(self.ready)));
        if self.small != 0 {
            line("", format!("{} of it in small pages, which gain nothing", size(self.small)));
        }
        let low = if self.low { ", slowly: no CPU is idle" } else { "" };
        line("zeroing", format!("{}{low}", size(self.zeroing)));
        line("leased", size(self.leased));
        for lease in &self.leases {
            let Leased { user, process, bytes, seconds } = lease;
            let process = match process {
                0 => "a process of another namespace".into(),
                process => format!("process {process}"),
            };
            line("", format!("{} by {}, {process}, {seconds:.0} s", size(*bytes), named(*user)));
        }
        for Held { user, bytes } in &self.held {
            line("", format!("{} in use by {} after its lease", size(*bytes), named(*user)));
        }
        if self.untaken != 0 {
            let why = if self.short { ": others need it" } else { "" };
            line("not taken", format!("{}{why}", size(self.untaken)));
        }
        if self.given_back != 0 {
            line("given back", format!("{} under pressure", size(self.given_back)));
        }
        if self.available != 0 {
            let [now, with] = [self.available, self.available + self.ready].map(size);
            line(
                "available",
                format!(
                    "{now} to programs that take it from the system; {with} with what is ready here"
                ),
            );
        }
        let Status { given, returned, refused, made, failed, .. } = self;
        line("requests", format!("{given} given, {returned} returned, {refused} refused"));
        line(
            "",
            format!("{made} for a size that was not there, {failed} the system had no memory for"),
        );
        let (longest, all) = (self.waited_longest_seconds, self.waited_seconds);
        line(
            "waits",
            format!("{} requests, {all:.3} s in all, {longest:.3} s at most", self.waited),
        );
        let rate = self.zeroed as f64 / self.zeroed_cpu_seconds / 1e9;
        let rate =
            if rate.is_finite() { format!(", {rate:.1} GB a CPU second") } else { String::new() };
        line("zeroed", format!("{}{rate}", size(self.zeroed)));
        line("CPU", format!("{:.3} s in {:.0} s", self.cpu_seconds, self.seconds));
        text
    }

    /// In Prometheus's text format.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP cachewise_scrubd_{name} {help}");
            let _ = writeln!(text, "# TYPE cachewise_scrubd_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "cachewise_scrubd_{name}{labels} {value}");
            }
        };
        let one = |value: f64| vec![(String::new(), value)];
        let state = |name: &str, bytes: u64| (format!("{{state=\"{name}\"}}"), bytes as f64);
        let states = [
            state("ready", self.ready),
            state("zeroing", self.zeroing),
            state("leased", self.leased),
            state("held", self.held.iter().map(|held| held.bytes).sum()),
        ];
        metric("size_bytes", "gauge", "Most memory that is held.", &one(self.size as f64));
        metric("memory_bytes", "gauge", "Memory by state.", &states);
        metric(
            "small_page_bytes",
            "gauge",
            "Ready memory in small pages.",
            &one(self.small as f64),
        );
        metric(
            "available_bytes",
            "gauge",
            "Memory available beside it.",
            &one(self.available as f64),
        );
        let mut users: std::collections::BTreeMap<Option<u32>, f64> =
            std::collections::BTreeMap::new();
        for lease in &self.leases {
            *users.entry(lease.user).or_default() += lease.bytes as f64;
        }
        let users: Vec<_> = users
            .into_iter()
            .map(|(user, bytes)| {
                let user = user.map_or("unknown".into(), |user| user.to_string());
                (format!("{{user=\"{user}\"}}"), bytes)
            })
            .collect();
        metric("leased_bytes", "gauge", "Leased memory by user.", &users);
        for (name, help, value) in [
            ("leases_total", "Leases given.", self.given as f64),
            ("returned_total", "Leases that ended.", self.returned as f64),
            ("refused_total", "Requests refused.", self.refused as f64),
            ("made_total", "Requests for a size that was not there.", self.made as f64),
            ("failed_total", "Files whose memory the system refused.", self.failed as f64),
            ("given_back_bytes_total", "Bytes given back under pressure.", self.given_back as f64),
            ("waits_total", "Requests that waited for zeroing.", self.waited as f64),
            ("wait_seconds_total", "Seconds that these waited.", self.waited_seconds),
            ("zeroed_bytes_total", "Bytes zeroed.", self.zeroed as f64),
            ("zeroing_cpu_seconds_total", "CPU seconds of zeroing.", self.zeroed_cpu_seconds),
            ("cpu_seconds_total", "CPU seconds of the server.", self.cpu_seconds),
        ] {
            metric(name, "counter", help, &one(value));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        let lease = |user, bytes| Leased { user: Some(user), process: 7, bytes, seconds: 1.5 };
        Status {
            size: 16 << 30,
            pages: "tmpfs".into(),
            leased: 3 << 30,
            leases: vec![lease(0, 1 << 30), lease(1000, 1 << 30), lease(0, 1 << 30)],
            files: vec![Files { bytes: 1 << 30, number: 13 }],
            ..Status::default()
        }
    }

    #[test]
    fn each_form_has_the_leases() {
        let text = status().text();
        assert!(text.contains("13 of 1 GiB") && text.contains("by user 1000, process 7"), "{text}");
        assert!(!text.contains("NaN"), "{text}");
        let prometheus = status().prometheus();
        assert!(prometheus.contains("leased_bytes{user=\"0\"} 2147483648\n"), "{prometheus}");
        for line in prometheus.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(name.starts_with("cachewise_scrubd_"), "{line}");
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        }
        let json = serde_json::to_string(&status()).expect("JSON");
        assert_eq!(serde_json::from_str::<Status>(&json).expect("its own"), status());
    }
}
