//! Messages over the loopback device, as candidates: the kernel's own copies among all the rest.
//!
//! The sender sends what the next calls will take and no more, so that nothing of it runs beside
//! another candidate. What a message costs is the CPU time of both threads; wall time includes waiting
//! for a sender that, on one core, has to take turns with the receiver.

mod ring;
pub(crate) mod stream;
mod zero_copy;

use super::prelude::*;
use cachewise_measure::clock::thread_cpu_ns;
use ring::Ring;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use zero_copy::{Mapping, PATIENCE, ZeroCopy};

/// Nanoseconds that a byte has at 10 Gb/s.
pub(super) const BYTE_NS_AT_10G: f64 = 0.8;

/// Pages in a segment of a connection whose receiver wants whole ones: 7, since the kernel takes no
/// largest segment of more than 32 KiB.
const SEGMENT_PAGES: usize = 7;

/// Bytes of a segment that its timestamps take.
const TIMESTAMPS: usize = 12;

/// How messages are sent and received, in the order of their [names](TCP_WAYS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `write` and `read`.
    Plain,
    /// `send` with `MSG_ZEROCOPY`, and `read`.
    ZeroCopySend,
    /// The same sender; what it sent is mapped rather than read.
    ZeroCopyReceive,
    /// `write`, and a receive by io_uring.
    Ring,
}

impl Way {
    #[cfg(test)]
    const ALL: [Way; 4] = [Way::Plain, Way::ZeroCopySend, Way::ZeroCopyReceive, Way::Ring];

    pub(super) fn name(self) -> &'static str {
        TCP_WAYS[self as usize]
    }

    /// Tells whether its messages are sent from their own pages.
    fn pins(self) -> bool {
        matches!(self, Way::ZeroCopySend | Way::ZeroCopyReceive)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    cpu_ns: f64,
    messages: u64,
    zero_copy: ZeroCopy,
}

enum Take {
    Read,
    Map(Mapping),
    Ring(Box<Ring>),
}

/// Both ends of a connection. The sender is a thread of its own, which ends with it.
pub(super) struct Connection {
    way: Way,
    stream: TcpStream,
    take: Take,
    requests: Sender<usize>,
    reports: Receiver<Sent>,
    failed: Option<io::Error>,
    cpu_ns: f64,
    clock_ns: f64,
    calls: u64,
    asked: u64,
    sent: Sent,
    received_bytes: u64,
    mapped_bytes: u64,
}

fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8 | 1
}

/// A connection that has carried a message of `size` bytes; none, and a remark that `what` was skipped,
/// where the system refuses.
pub(super) fn open(
    setting: &mut Setting,
    (size, way, whole_pages): (usize, Way, bool),
    what: &str,
) -> Result<Option<Connection>> {
    match Connection::open(size, way, whole_pages) {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(LabError::WrongBytes(error.to_string()))
        }
        Err(error) => {
            setting.out.note(format!("skipped {what}: {error}"))?;
            Ok(None)
        }
    }
}

impl Connection {
    /// Opens it and checks a first message of `size` bytes: others are invalid data. With `whole_pages` a
    /// segment carries a whole number of them: others cannot be mapped.
    fn open(size: usize, way: Way, whole_pages: bool) -> io::Result<Connection> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        if whole_pages {
            let segment = SEGMENT_PAGES * PAGE_SIZE + TIMESTAMPS;
            zero_copy::set(listener.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, segment)?;
        }
        let outgoing = TcpStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        outgoing.set_write_timeout(Some(PATIENCE))?;
        outgoing.set_nodelay(true)?;
        if way.pins() {
            zero_copy::set(outgoing.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)?;
        }
        let take = match way {
            Way::Plain | Way::ZeroCopySend => Take::Read,
            Way::ZeroCopyReceive => Take::Map(Mapping::of(&stream, size)?),
            Way::Ring => Take::Ring(Box::new(Ring::new()?)),
        };
        let (requests, wanted) = channel();
        let (report, reports) = channel();
        std::thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || serve(outgoing, size, way.pins(), &wanted, &report))?;
        let steps: Vec<f64> = (0..64).map(|_| -thread_cpu_ns() + thread_cpu_ns()).collect();
        let mut connection = Connection {
            way,
            stream,
            take,
            requests,
            reports,
            failed: None,
            cpu_ns: 0.0,
            clock_ns: stats::median(&steps),
            calls: 0,
            asked: 0,
            sent: Sent::default(),
            received_bytes: 0,
            mapped_bytes: 0,
        };
        let mut first = vec![0; size];
        let mut mapped = Vec::new();
        connection.request(1);
        connection.receive(&mut first, |at, bytes| mapped.push((at, bytes.to_vec())))?;
        for (at, bytes) in mapped {
            first[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let Some(at) = (0..size).find(|at| first[*at] != byte_at(*at)) else {
            return Ok(connection);
        };
        let (name, found, expected) = (way.name(), first[at], byte_at(at));
        let wrong = format!("{name}: byte {at} of {size} is {found}, expected {expected}");
        Err(io::Error::new(io::ErrorKind::InvalidData, wrong))
    }

    fn request(&mut self, messages: usize) {
        self.asked += messages as u64;
        if self.requests.send(messages).is_err() {
            self.failed = Some(io::ErrorKind::BrokenPipe.into());
        }
    }

    /// One message, into the buffer; or parts of it mapped, which `mapped` is shown instead.
    fn receive(&mut self, buffer: &mut [u8], mapped: impl FnMut(usize, &[u8])) -> io::Result<()> {
        self.received_bytes += buffer.len() as u64;
        match &mut self.take {
            Take::Read => self.stream.read_exact(buffer),
            Take::Map(mapping) => {
                self.mapped_bytes += mapping.receive(&mut self.stream, buffer, mapped)? as u64;
                Ok(())
            }
            Take::Ring(ring) => ring.receive(&self.stream, buffer),
        }
    }

    /// Waits until the sender has reported all that was asked for: what was received is reported soon.
    fn collect(&mut self) {
        while self.failed.is_none() && self.sent.messages < self.asked {
            match self.reports.recv_timeout(PATIENCE) {
                Ok(sent) => self.sent = sent,
                Err(error) => self.failed = Some(io::Error::other(error)),
            }
        }
    }

    /// Nanoseconds of CPU per call so far, in user and kernel mode; none before the first.
    pub(super) fn cpu_ns_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.cpu_ns / self.calls as f64)
    }

    /// The same of both ends together: the kernel's work is charged to whichever thread it interrupts.
    pub(super) fn cpu_ns_of_both(&mut self) -> Option<f64> {
        self.collect();
        let each = self.sent.cpu_ns / (self.sent.messages as f64).max(1.0);
        self.cpu_ns_per_call().map(|receiver| receiver + each)
    }

    /// Part of the zero-copy sends of which the kernel says that it copied them; none where there were
    /// none.
    pub(super) fn copied(&mut self) -> Option<f64> {
        self.collect();
        let ZeroCopy { completed, copied, .. } = self.sent.zero_copy;
        (completed > 0).then(|| copied as f64 / completed as f64)
    }

    /// Part of the bytes that was mapped; none where nothing maps them.
    pub(super) fn mapped(&self) -> Option<f64> {
        let maps = matches!(self.take, Take::Map(_));
        maps.then(|| self.mapped_bytes as f64 / self.received_bytes.max(1) as f64)
    }

    /// Takes the error, if there was one: its times mean nothing then.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Sends and receives so many messages: nanoseconds of CPU at both ends, a message.
    pub(super) fn exchange(&mut self, place: &Place, messages: usize) -> Option<f64> {
        self.collect();
        let before = self.cpu_ns + self.sent.cpu_ns;
        self.request(messages);
        for _ in 0..messages {
            self.call(place);
        }
        self.collect();
        let took = self.cpu_ns + self.sent.cpu_ns - before;
        self.failed.is_none().then(|| took / messages as f64)
    }
}

/// The sender: a message for each that is wanted, and a report after each request.
fn serve(
    mut outgoing: TcpStream,
    size: usize,
    pins: bool,
    wanted: &Receiver<usize>,
    report: &Sender<Sent>,
) {
    let message: Vec<u8> = (0..size).map(byte_at).collect();
    let mut sent = Sent::default();
    while let Ok(messages) = wanted.recv() {
        let from = thread_cpu_ns();
        let mut send = |last: bool| match pins {
            true => sent.zero_copy.send(&outgoing, &message, last),
            false => outgoing.write_all(&message),
        };
        // The receiver notices by its own timeout.
        if (1..=messages).any(|nth| send(nth == messages).is_err()) {
            return;
        }
        sent.cpu_ns += (thread_cpu_ns() - from).max(0.0);
        sent.messages += messages as u64;
        if report.send(sent).is_err() {
            return;
        }
    }
}

impl Candidate for Connection {
    fn name(&self) -> &str {
        self.way.name()
    }

    fn before(&mut self, _places: &[Place], calls: usize) {
        if self.failed.is_none() {
            self.request(calls);
        }
    }

    fn call(&mut self, place: &Place) {
        if self.failed.is_some() {
            return;
        }
        // SAFETY: the sampler's place is written memory, valid for n bytes, and nobody else uses
        // it during the call.
        let buffer = unsafe { std::slice::from_raw_parts_mut(place.dst, place.n) };
        let from = thread_cpu_ns();
        if let Err(error) = self.receive(buffer, |_, _| ()) {
            self.failed = Some(error);
        }
        self.cpu_ns += (thread_cpu_ns() - from - self.clock_ns).max(0.0);
        self.calls += 1;
    }

    fn stays(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_cost_cpu() {
        for way in Way::ALL {
            for size in [100_000, 64 * PAGE_SIZE] {
                // A kernel that has not got it says so; the plain way is everywhere.
                let is_refusal = |error: &io::Error| error.kind() != io::ErrorKind::InvalidData;
                let mut connection = match Connection::open(size, way, true) {
                    Err(error) if way != Way::Plain && is_refusal(&error) => continue,
                    opened => opened.unwrap_or_else(|error| panic!("{}: {error}", way.name())),
                };
                let mut buffer = vec![0_u8; size];
                let place = Place { dst: buffer.as_mut_ptr(), src: buffer.as_ptr(), n: size };
                connection.before(&[place], 3);
                for _ in 0..3 {
                    connection.call(&place);
                }
                assert!(connection.take_failure().is_none(), "{}", way.name());
                let receiver = connection.cpu_ns_per_call().expect("it was called");
                assert!(receiver > 0.0);
                let exchanged = connection.exchange(&place, 5).expect("no failure");
                assert!(exchanged > 0.0, "{}", way.name());
                assert_eq!(connection.sent.messages, 1 + 3 + 5, "{}", way.name());
                assert!(connection.cpu_ns_of_both() >= connection.cpu_ns_per_call());
                assert_eq!(connection.copied().is_some(), way.pins(), "{}", way.name());
                assert_eq!(connection.mapped().is_some(), way == Way::ZeroCopyReceive);
                let whole = buffer.iter().enumerate().all(|(at, byte)| *byte == byte_at(at));
                assert!(whole || connection.mapped() > Some(0.0), "{}", way.name());
            }
        }
    }

    #[test]
    fn a_sender_that_is_gone_is_a_failure_not_a_hang() {
        for way in Way::ALL {
            let Ok(mut connection) = Connection::open(PAGE_SIZE, way, true) else { continue };
            connection.stream.shutdown(std::net::Shutdown::Both).expect("open until now");
            let mut buffer = [0_u8; PAGE_SIZE];
            let place = Place { dst: buffer.as_mut_ptr(), src: buffer.as_ptr(), n: PAGE_SIZE };
            connection.before(&[place], 1);
            connection.call(&place);
            assert!(connection.take_failure().is_some(), "{}", way.name());
        }
    }
}
