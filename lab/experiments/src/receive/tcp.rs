//! A receive from a real TCP connection over the loopback device: `write` and `read`.

use crate::prelude::*;
use cachewise_measure::clock::thread_cpu_ns;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Nanoseconds that a byte has at 10 Gb/s.
pub(super) const BYTE_NS_AT_10G: f64 = 0.8;

/// A receive that takes this long will not come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Work of the sender so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    cpu_ns: f64,
    messages: u64,
}

/// Both ends of a connection. The sender is a thread of its own, which ends with it.
pub(super) struct Connection {
    stream: TcpStream,
    requests: Sender<usize>,
    reports: Receiver<Sent>,
    failed: Option<io::Error>,
    cpu_ns: f64,
    clock_ns: f64,
    calls: u64,
    asked: u64,
    sent: Sent,
}

fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8 | 1
}

/// A connection that has carried a message of `size` bytes; none, and a remark, where the system refuses.
pub(super) fn open(setting: &mut Setting, size: usize) -> Result<Option<Connection>> {
    match Connection::open(size) {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(LabError::WrongBytes(error.to_string()))
        }
        Err(error) => {
            setting.out.note(format!("skipped {TCP}: {error}"))?;
            Ok(None)
        }
    }
}

impl Connection {
    /// Opens it and checks a first message of `size` bytes: others are invalid data.
    fn open(size: usize) -> io::Result<Connection> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let outgoing = TcpStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        outgoing.set_write_timeout(Some(PATIENCE))?;
        outgoing.set_nodelay(true)?;
        let (requests, wanted) = channel();
        let (report, reports) = channel();
        std::thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || serve(outgoing, size, &wanted, &report))?;
        let steps: Vec<f64> = (0..64).map(|_| -thread_cpu_ns() + thread_cpu_ns()).collect();
        let mut connection = Connection {
            stream,
            requests,
            reports,
            failed: None,
            cpu_ns: 0.0,
            clock_ns: stats::median(&steps),
            calls: 0,
            asked: 0,
            sent: Sent::default(),
        };
        let mut first = vec![0; size];
        connection.request(1);
        connection.stream.read_exact(&mut first)?;
        let Some(at) = (0..size).find(|at| first[*at] != byte_at(*at)) else {
            return Ok(connection);
        };
        let (found, expected) = (first[at], byte_at(at));
        let wrong = format!("{TCP}: byte {at} of {size}: expected {expected}, found {found}");
        Err(io::Error::new(io::ErrorKind::InvalidData, wrong))
    }

    fn request(&mut self, messages: usize) {
        self.asked += messages as u64;
        if self.requests.send(messages).is_err() {
            self.failed = Some(io::ErrorKind::BrokenPipe.into());
        }
    }

    /// Nanoseconds of CPU per call so far, in user and kernel mode; none before the first.
    pub(super) fn cpu_ns_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.cpu_ns / self.calls as f64)
    }

    /// CPU time a call of both ends together: the kernel's work is charged to whichever thread it interrupts.
    pub(super) fn cpu_ns_of_both(&mut self) -> Option<f64> {
        // What was received is reported soon.
        while self.failed.is_none() && self.sent.messages < self.asked {
            match self.reports.recv_timeout(PATIENCE) {
                Ok(sent) => self.sent = sent,
                Err(error) => self.failed = Some(io::Error::other(error)),
            }
        }
        let each = self.sent.cpu_ns / (self.sent.messages as f64).max(1.0);
        self.cpu_ns_per_call().map(|receiver| receiver + each)
    }

    /// Takes the error, if there was one: its times mean nothing then.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}

/// The sender: a message for each that is wanted, and a report after each request.
fn serve(mut outgoing: TcpStream, size: usize, wanted: &Receiver<usize>, report: &Sender<Sent>) {
    let message: Vec<u8> = (0..size).map(byte_at).collect();
    let mut sent = Sent::default();
    while let Ok(messages) = wanted.recv() {
        let from = thread_cpu_ns();
        // The receiver notices by its own timeout.
        if (0..messages).any(|_| outgoing.write_all(&message).is_err()) {
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
        TCP
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
        if let Err(error) = self.stream.read_exact(buffer) {
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
    fn messages_arrive_whole_and_a_sender_that_is_gone_is_a_failure() {
        let size = 100_000;
        let mut connection = Connection::open(size).expect("the loopback device");
        let mut buffer = vec![0_u8; size];
        let place = Place { dst: buffer.as_mut_ptr(), src: buffer.as_ptr(), n: size };
        connection.before(&[place], 3);
        for _ in 0..3 {
            connection.call(&place);
        }
        assert!(connection.take_failure().is_none());
        assert!(connection.cpu_ns_of_both() >= connection.cpu_ns_per_call());
        assert_eq!(connection.sent.messages, 4);
        assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)));
        connection.stream.shutdown(std::net::Shutdown::Both).expect("open until now");
        connection.before(&[place], 1);
        connection.call(&place);
        assert!(connection.take_failure().is_some());
    }
}
