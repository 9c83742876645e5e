//! A stream: both ends run at once, and neither waits for the other's message (001.7). Over the loopback
//! device, and over a pair of virtual Ethernet devices, of which the kernel can be told to copy what a
//! program sends with non-temporal stores (`tx-nocache-copy`): its own policy for `copyin` (001.9).
//!
//! The devices lie in two network namespaces that no name leads to, one a thread; they are gone when the
//! threads are.

use crate::prelude::*;
use cachewise_measure::clock::thread_cpu_ns;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// The two ends' addresses, of a range for documentation.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const DEVICES: [&str; 2] = ["cachewise0", "cachewise1"];

/// Bytes of a sample.
const BYTES: usize = 64 << 20;

/// Time of an end for a sample: seconds of the clock, nanoseconds of its CPU.
type Took = io::Result<(f64, f64)>;

/// One end: told how many messages, tells what they took.
struct End {
    messages: Sender<usize>,
    took: Receiver<Took>,
}

impl End {
    fn took(&self) -> Took {
        self.took.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Both ends of a stream of messages of one size.
struct Stream {
    name: &'static str,
    receiver: End,
    sender: End,
    cpu_ns: Vec<f64>,
    received_ns: Vec<f64>,
    seconds: Vec<f64>,
}

/// Runs a program of the system's in this thread's namespace.
fn command(words: &[&str]) -> io::Result<()> {
    let ended = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let ended =
        ended.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", words[0])))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Err(io::Error::other(format!("{}: {said}", words.join(" "))))
}

fn leave_network() -> io::Result<()> {
    // SAFETY: it concerns this thread alone, which has no socket yet.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Brings up this thread's end of the pair.
fn bring_up(end: usize, around: bool) -> io::Result<()> {
    let address = format!("{}/30", ADDRESSES[end]);
    command(&["ip", "address", "add", &address, "dev", DEVICES[end]])?;
    command(&["ip", "link", "set", DEVICES[end], "up"])?;
    match around {
        true => command(&["ethtool", "-K", DEVICES[end], "tx-nocache-copy", "on"]),
        false => Ok(()),
    }
}

impl Stream {
    fn open(name: &'static str, size: usize) -> io::Result<Stream> {
        let around = name == STREAMS[2];
        Stream::set_up(name, size, move || match name == STREAMS[0] {
            true => Ok(()),
            false => bring_up(1, around),
        })
    }

    /// `sends_from` is what the sender does before it connects.
    fn set_up(
        name: &'static str,
        size: usize,
        sends_from: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Stream> {
        let (receiver, receives) = end();
        let (sender, sends) = end();
        let is_apart = name != STREAMS[0];
        let (tell_thread, thread) = channel::<i32>();
        let (tell_address, address) = channel();
        let (tell_connected, connected) = channel();
        std::thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            let opened = (|| -> io::Result<TcpStream> {
                if is_apart {
                    leave_network()?;
                    let other = thread.recv().map_err(io::Error::other)?.to_string();
                    let pair = ["type", "veth", "peer", "name", DEVICES[1], "netns", &other];
                    command(&[&["ip", "link", "add", DEVICES[0]][..], &pair].concat())?;
                    bring_up(0, false)?;
                }
                let far = ADDRESSES[0].parse::<Ipv4Addr>().map_err(io::Error::other)?;
                let own = if is_apart { far } else { Ipv4Addr::LOCALHOST };
                let listener = TcpListener::bind((own, 0))?;
                tell_address.send(listener.local_addr()?).map_err(io::Error::other)?;
                // A sender that failed does not connect, and nobody waits for it.
                connected.recv().map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
                Ok(listener.accept()?.0)
            })();
            drop(tell_address);
            let mut buffer = vec![0; size];
            serve(opened, &receives, |stream: &mut TcpStream| stream.read_exact(&mut buffer));
        })?;
        std::thread::Builder::new().name("sender".to_owned()).spawn(move || {
            let opened = (|| -> io::Result<TcpStream> {
                if is_apart {
                    leave_network()?;
                    tell_thread
                        .send(rustix::thread::gettid().as_raw_nonzero().get())
                        .map_err(io::Error::other)?;
                }
                let to =
                    address.recv().map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
                sends_from()?;
                let stream = TcpStream::connect(to)?;
                tell_connected.send(()).map_err(io::Error::other)?;
                Ok(stream)
            })();
            drop((tell_thread, tell_connected));
            let message = vec![0xA5; size];
            serve(opened, &sends, |stream: &mut TcpStream| stream.write_all(&message));
        })?;
        let mut stream = Stream {
            name,
            receiver,
            sender,
            cpu_ns: Vec::new(),
            received_ns: Vec::new(),
            seconds: Vec::new(),
        };
        // The first fills the windows, and says what cannot be.
        stream.sample(BYTES / size)?;
        stream.cpu_ns.clear();
        stream.received_ns.clear();
        stream.seconds.clear();
        Ok(stream)
    }

    fn sample(&mut self, messages: usize) -> io::Result<()> {
        for end in [&self.receiver, &self.sender] {
            // An end that is gone is told by what it took.
            let _ = end.messages.send(messages);
        }
        let (seconds, receiving, sending) = match (self.receiver.took(), self.sender.took()) {
            (Ok((seconds, receiving)), Ok((_, sending))) => (seconds, receiving, sending),
            // An end is not connected because of what the other could not set up.
            (Err(received), Err(sent)) if received.kind() == io::ErrorKind::NotConnected => {
                return Err(sent);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        self.cpu_ns.push((receiving + sending) / messages as f64);
        self.received_ns.push(receiving / messages as f64);
        self.seconds.push(seconds / messages as f64);
        Ok(())
    }
}

/// The channels to and from an end.
struct Told {
    messages: Receiver<usize>,
    took: Sender<Took>,
}

fn end() -> (End, Told) {
    let (messages, told) = channel();
    let (tell, took) = channel();
    (End { messages, took }, Told { messages: told, took: tell })
}

/// One end's work, until nobody asks any more.
fn serve(
    opened: io::Result<TcpStream>,
    told: &Told,
    mut message: impl FnMut(&mut TcpStream) -> io::Result<()>,
) {
    let mut opened = opened.and_then(|stream| {
        stream.set_read_timeout(Some(super::zero_copy::PATIENCE))?;
        stream.set_write_timeout(Some(super::zero_copy::PATIENCE))?;
        Ok(stream)
    });
    while let Ok(messages) = told.messages.recv() {
        let took = match &mut opened {
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            Ok(stream) => {
                let (begun, cpu) = (Instant::now(), thread_cpu_ns());
                let done = (0..messages).try_for_each(|_| message(stream));
                done.map(|()| (begun.elapsed().as_secs_f64(), thread_cpu_ns() - cpu))
            }
        };
        if told.took.send(took).is_err() {
            break;
        }
    }
}

/// A row for each device, of messages of one size.
pub(crate) fn rows(setting: &mut Setting, size: usize) -> Result<Vec<Row>> {
    let mut streams = Vec::new();
    for name in STREAMS {
        match Stream::open(name, size) {
            Ok(stream) => streams.push(stream),
            Err(error) => {
                setting.out.note(format!("skipped {name} at {}: {error}", bytes(size)))?
            }
        }
    }
    setting.in_turns(streams.len(), 0, |turn| {
        let stream = &mut streams[turn];
        stream.sample(BYTES / size).map_err(|error| {
            LabError::Child(format!("{} at {}: {error}", stream.name, bytes(size)))
        })
    })?;
    // Over the loopback device; what the kernel was told, over the same devices untold.
    let of = |name: &str| streams.iter().find(|stream| stream.name == name);
    let row = |stream: &Stream| {
        let other = if stream.name == STREAMS[2] { of(STREAMS[1]) } else { of(STREAMS[0]) };
        let other = other.unwrap_or(stream);
        let cell = CellKey::new("copy", size, STREAM);
        let at_10g = |ns: &[f64]| stats::median(ns) / size as f64 / super::BYTE_NS_AT_10G;
        let figures = [
            (GBIT, size as f64 * 8e-9 / stats::median(&stream.seconds)),
            (CPU_SHARE, at_10g(&stream.received_ns)),
            (BOTH_ENDS, at_10g(&stream.cpu_ns)),
        ];
        let row =
            setting.compared(cell, (stream.name, &stream.cpu_ns), (other.name, &other.cpu_ns));
        Row { calls: (BYTES / size) as u32, ..row.with(&figures) }
    };
    Ok(streams.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_cannot_be_set_up_is_said_and_not_waited_for() {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let refusal = || Err(io::Error::other("no such device"));
            tell.send(Stream::set_up(STREAMS[0], 1 << 20, refusal).map(drop))
        });
        let found = told.recv_timeout(super::super::zero_copy::PATIENCE).expect("it ends");
        assert_eq!(found.expect_err("no stream").to_string(), "no such device");
    }

    #[test]
    fn a_stream_flows_or_says_why_not() {
        let mut stream = Stream::open(STREAMS[0], 1 << 20).expect("the loopback device");
        stream.sample(4).expect("a sample");
        assert!(stream.cpu_ns[0] > 0.0 && stream.seconds[0] > 0.0);
        for name in &STREAMS[1..] {
            // Without the right to, without the programs, or as it should be.
            match Stream::open(name, 1 << 20) {
                Ok(mut stream) => stream.sample(4).expect("a sample"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
