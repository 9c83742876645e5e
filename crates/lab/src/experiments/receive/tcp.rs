//! A real TCP receive over loopback, as a candidate: the kernel's own copyout among all the rest.
//!
//! The sender sends what the next calls will take and no more, so that nothing of it runs beside
//! another candidate. The receiver's cost is its CPU time; its wall time includes waiting for a
//! sender that, on one core, has to take turns with it.

use cachewise_measure::record::names::TCP;
use cachewise_measure::{Candidate, Place, clock::thread_cpu_ns};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A receive that takes this long will not come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Refused {
    /// The network refused.
    Io(io::Error),
    /// It came, with other bytes.
    WrongBytes(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}

/// Both ends of a connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// Messages wanted.
    requests: Option<Sender<usize>>,
    sender: Option<JoinHandle<()>>,
    failed: Option<io::Error>,
    cpu_ns: f64,
    clock_ns: f64,
    calls: u64,
    /// Nanoseconds of CPU that the sender has had, and the messages it sent.
    sent: Arc<[AtomicU64; 2]>,
}

/// The byte at a place of the message.
fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8 | 1
}

impl Connection {
    /// Opens it and checks a first message of `size` bytes.
    pub(super) fn open(size: usize) -> Result<Connection, Refused> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut outgoing = TcpStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        outgoing.set_write_timeout(Some(PATIENCE))?;
        outgoing.set_nodelay(true)?;
        let (requests, wanted) = channel::<usize>();
        let sent = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let of_sender = Arc::clone(&sent);
        let sender = std::thread::Builder::new().name("sender".to_owned()).spawn(move || {
            let message: Vec<u8> = (0..size).map(byte_at).collect();
            while let Ok(messages) = wanted.recv() {
                let from = thread_cpu_ns();
                for _ in 0..messages {
                    // The receiver notices by its own timeout.
                    if outgoing.write_all(&message).is_err() {
                        return;
                    }
                }
                let took = (thread_cpu_ns() - from).max(0.0) as u64;
                of_sender[0].fetch_add(took, Ordering::Relaxed);
                of_sender[1].fetch_add(messages as u64, Ordering::Relaxed);
            }
        })?;
        let mut steps: Vec<f64> = (0..64).map(|_| -thread_cpu_ns() + thread_cpu_ns()).collect();
        steps.sort_unstable_by(f64::total_cmp);
        let mut connection = Connection {
            stream,
            requests: Some(requests),
            sender: Some(sender),
            failed: None,
            cpu_ns: 0.0,
            clock_ns: steps[steps.len() / 2],
            calls: 0,
            sent,
        };
        let mut first = vec![0; size];
        connection.request(1);
        connection.stream.read_exact(&mut first)?;
        match first.iter().enumerate().find(|(at, byte)| **byte != byte_at(*at)) {
            None => Ok(connection),
            Some((at, byte)) => Err(Refused::WrongBytes(format!(
                "{TCP}: byte {at} of {size} is {byte}, expected {}",
                byte_at(at)
            ))),
        }
    }

    fn request(&mut self, messages: usize) {
        let sent = self.requests.as_ref().is_some_and(|to| to.send(messages).is_ok());
        if !sent {
            self.failed = Some(io::ErrorKind::BrokenPipe.into());
        }
    }

    /// Nanoseconds of CPU per call so far, in user and kernel mode; none before the first.
    pub(super) fn cpu_ns_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.cpu_ns / self.calls as f64)
    }

    /// The same of both ends together: the kernel's work is charged to whichever thread it interrupts.
    pub(super) fn cpu_ns_of_both(&self) -> Option<f64> {
        let [cpu, messages] = [0, 1].map(|at: usize| self.sent[at].load(Ordering::Relaxed) as f64);
        (messages > 0.0).then(|| Some(self.cpu_ns_per_call()? + cpu / messages))?
    }

    /// What went wrong, if anything did: its times mean nothing then.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
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

impl Drop for Connection {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_cost_cpu() {
        let size = 100_000;
        let mut connection = Connection::open(size).expect("loopback");
        let mut buffer = vec![0_u8; size];
        let place = Place { dst: buffer.as_mut_ptr(), src: buffer.as_ptr(), n: size };
        connection.before(&[place], 3);
        for _ in 0..3 {
            connection.call(&place);
        }
        assert!(connection.take_failure().is_none());
        assert!(connection.cpu_ns_per_call().is_some_and(|cpu| cpu > 0.0));
        let receiver = connection.cpu_ns_per_call().expect("it was called");
        let both = connection.cpu_ns_of_both().expect("the first message was counted before these");
        assert!(both >= receiver);
        assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)));
    }

    #[test]
    fn a_sender_that_is_gone_is_a_failure_not_a_hang() {
        let mut connection = Connection::open(64).expect("loopback");
        connection.stream.shutdown(std::net::Shutdown::Both).expect("open until now");
        let mut buffer = [0_u8; 64];
        let place = Place { dst: buffer.as_mut_ptr(), src: buffer.as_ptr(), n: 64 };
        connection.before(&[place], 1);
        connection.call(&place);
        assert!(connection.take_failure().is_some());
    }
}
