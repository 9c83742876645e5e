//! libc in another process, as a candidate: `GLIBC_TUNABLES` is read when a process starts, so
//! libc under other tunables cannot be called in this one.
//!
//! The child ([`serve`]) has buffers of its own, as far apart and as misaligned as the parent's, and
//! is asked for its samples over a pipe ([`TunedLibc`]) when its turn in a round comes. It makes as
//! many calls as everybody, times them itself, with the same clock and after as many untimed calls,
//! and the parent does nothing meanwhile. What turns in one process share and this one does not: its
//! buffers lie on other physical pages, and it may run on another core. So the child times the library
//! too, on the same buffers in turns with its libc, and what is compared is the two of them
//! ([`beside_the_library`](TunedLibc::beside_the_library)).

use crate::routines::{FILL_BYTE, libc_reference, library};
use cachewise_kernels::{Function, Operation, PAGE_SIZE};
use cachewise_measure::{Arena, Candidate, Clock, PagePolicy, Place};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The name under which it stands in records.
pub const TUNED_LIBC: &str = "libc+tunables";

/// Where the calls of a sample go: bytes, both operands' places in a page, how many calls, and how many
/// before those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    size: usize,
    dst: usize,
    src: usize,
    calls: usize,
    untimed: usize,
}

impl Request {
    fn parse(line: &str) -> Option<Request> {
        let mut numbers = line.split(' ').map(|word| word.parse::<usize>().ok());
        let mut next = || numbers.next().flatten();
        let request =
            Request { size: next()?, dst: next()?, src: next()?, calls: next()?, untimed: next()? };
        let fits = request.dst < PAGE_SIZE && request.src < PAGE_SIZE && request.size > 0;
        (fits && numbers.next().is_none()).then_some(request)
    }
}

/// Serves requests until the input ends: a line `SIZE DST SRC CALLS UNTIMED` is answered by a line with
/// the nanoseconds that these calls of libc took together, after that many untimed ones (one at least),
/// and those of the library.
///
/// # Errors
/// A request of another form, memory that cannot be had, bytes that come out wrong, and what reading
/// and writing can return.
pub fn serve(operation: Operation, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // Ctrl-C reaches the whole foreground group; this process ends when its input does.
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let clock = Clock::calibrate();
    let functions = [libc_reference(operation).function, library(operation).function];
    let mut operands: Option<Operands> = None;
    for (turn, line) in input.lines().enumerate() {
        let line = line?;
        let request = Request::parse(&line).ok_or_else(|| {
            io::Error::other(format!(
                "libc-loop: found \"{line}\", accepted SIZE DST SRC CALLS UNTIMED"
            ))
        })?;
        if operands.as_ref().is_none_or(|operands| !operands.serve(&request)) {
            // First the old ones are given back.
            drop(operands.take());
            let new = Operands::new(&request, operation).map_err(io::Error::other)?;
            for function in functions {
                new.check(function)?;
            }
            operands = Some(new);
        }
        let Some(operands) = &operands else { continue };
        let mut took = [0.0; 2];
        // In turns, so that neither always meets what the other left.
        for which in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            operands.call(functions[which], request.untimed.max(1));
            let from = clock.now();
            operands.call(functions[which], request.calls);
            let to = clock.now();
            took[which] = clock.nanoseconds(from, to);
        }
        writeln!(output, "{} {}", took[0], took[1])?;
        output.flush()?;
    }
    Ok(())
}

/// Two buffers, a power of two apart but for their places in a page.
struct Operands {
    request: Request,
    dst: *mut u8,
    src: *mut u8,
    /// What both pointers are into.
    _arena: Arena,
}

impl Operands {
    fn new(
        request: &Request,
        operation: Operation,
    ) -> Result<Operands, cachewise_measure::MeasureError> {
        let apart = (request.size + PAGE_SIZE).next_power_of_two();
        let arena = Arena::new(2 * apart, PagePolicy::Huge, 0x7BED)?;
        let start = arena.as_mut_ptr();
        let (dst, src) = (start.wrapping_add(apart + request.dst), start.wrapping_add(request.src));
        if matches!(operation, Operation::Compare | Operation::Equal) {
            for at in 0..request.size {
                // SAFETY: inside the arena: request.size and a place in a page fit in `apart`.
                let byte = unsafe { src.wrapping_add(at).read() };
                // SAFETY: as above.
                unsafe { dst.wrapping_add(at).write(byte) };
            }
        }
        Ok(Operands { request: *request, dst, src, _arena: arena })
    }

    fn serve(&self, request: &Request) -> bool {
        let place = |request: &Request| Request { calls: 0, untimed: 0, ..*request };
        place(&self.request) == place(request)
    }

    fn call(&self, function: Function, calls: usize) {
        let (dst, src, n) = (self.dst, self.src.cast_const(), self.request.size);
        macro_rules! calls {
            ($call:expr) => {
                for _ in 0..calls {
                    // SAFETY: both are valid for n bytes and apart (`new`), and the function runs on
                    // every CPU.
                    std::hint::black_box(unsafe { $call });
                }
            };
        }
        match function {
            Function::Copy(f) | Function::Move(f) => calls!(f(dst, src, n)),
            Function::Fill(f) => calls!(f(dst, i32::from(FILL_BYTE), n)),
            Function::Zero(f) => calls!(f(dst, n)),
            Function::Compare(f) | Function::Equal(f) => calls!(f(dst, src, n)),
            Function::CopyPages(f) => calls!(f(dst, src, (n / PAGE_SIZE).max(1).ilog2())),
            Function::ZeroPages(f) => calls!(f(dst, (n / PAGE_SIZE).max(1).ilog2())),
        }
    }

    /// Calls once and looks at every byte: nobody else checks this process.
    fn check(&self, function: Function) -> io::Result<()> {
        self.call(function, 1);
        let byte = |start: *mut u8, at: usize| {
            // SAFETY: below the size, so inside the arena (`new`).
            unsafe { start.wrapping_add(at).read() }
        };
        let wrong = (0..self.request.size).find(|&at| match function {
            Function::Fill(_) => byte(self.dst, at) != FILL_BYTE,
            Function::Zero(_) | Function::ZeroPages(_) => byte(self.dst, at) != 0,
            _ => byte(self.dst, at) != byte(self.src, at),
        });
        match wrong {
            Some(at) => Err(io::Error::other(format!("libc-loop: byte {at} is wrong"))),
            None => Ok(()),
        }
    }
}

/// The candidate: a child process whose libc has other tunables.
pub struct TunedLibc {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Untimed calls that the next sample has to make first.
    untimed: usize,
    /// Of each sample, the library's time over this libc's.
    library_over_it: Vec<f64>,
    failed: Option<io::Error>,
}

impl TunedLibc {
    /// Starts `program libc-loop --op operation` under `GLIBC_TUNABLES=tunables`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub fn start(program: &Path, tunables: &str, operation: Operation) -> io::Result<TunedLibc> {
        let mut child = Command::new(program)
            .args(["libc-loop", "--op", operation.name()])
            .env("GLIBC_TUNABLES", tunables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe_missing = || io::Error::other("the child has no pipe");
        let requests = Some(child.stdin.take().ok_or_else(pipe_missing)?);
        let answers = BufReader::new(child.stdout.take().ok_or_else(pipe_missing)?);
        let library_over_it = Vec::new();
        let mut started =
            TunedLibc { child, requests, answers, untimed: 0, library_over_it, failed: None };
        started.ask(&Request { size: 1, dst: 0, src: 0, calls: 1, untimed: 1 })?;
        Ok(started)
    }

    /// Nanoseconds of that libc's calls, and of the library's.
    fn ask(&mut self, request: &Request) -> io::Result<(f64, f64)> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let Request { size, dst, src, calls, untimed } = request;
        // One write: a line in two pieces could wake the child twice.
        requests.write_all(format!("{size} {dst} {src} {calls} {untimed}\n").as_bytes())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let numbers = answer.trim().split_once(' ');
        numbers
            .and_then(|(its, library)| Some((its.parse().ok()?, library.parse().ok()?)))
            .ok_or_else(|| {
                let found = answer.trim();
                io::Error::other(format!(
                    "found \"{found}\", accepted nanoseconds of libc and library"
                ))
            })
    }

    /// What this libc would take where the library takes `library_ns` in this process, round by round:
    /// the ratio of the two is the one measured in the child, on the same buffers. Forgets the
    /// samples of this cell.
    pub fn beside_the_library(&mut self, library_ns: &[f64]) -> Vec<f64> {
        let ratios = std::mem::take(&mut self.library_over_it);
        // The last ones: those before sized the samples.
        let rounds = library_ns.len().min(ratios.len());
        let last = &ratios[ratios.len() - rounds..];
        library_ns.iter().zip(last).map(|(ns, ratio)| ns / ratio).collect()
    }

    /// What went wrong, if anything did: its times mean nothing then.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}

impl Candidate for TunedLibc {
    fn name(&self) -> &str {
        TUNED_LIBC
    }

    fn call(&mut self, place: &Place) {
        self.call_all(std::slice::from_ref(place));
    }

    /// Remembered: the child makes them when it is asked for the sample that they come before.
    fn call_all(&mut self, places: &[Place]) {
        self.untimed += places.len();
    }

    fn timed_elsewhere(&mut self, places: &[Place], calls: usize) -> Option<f64> {
        let place = places.first()?;
        let request = Request {
            size: place.n,
            dst: place.dst.addr() % PAGE_SIZE,
            src: place.src.addr() % PAGE_SIZE,
            calls,
            untimed: std::mem::take(&mut self.untimed),
        };
        let told = match &self.failed {
            Some(_) => None,
            None => self.ask(&request).map_err(|error| self.failed = Some(error)).ok(),
        };
        // Of a child that has died nothing is kept; the rounds have to end somehow.
        let (its, library) = told.unwrap_or((1.0, 1.0));
        self.library_over_it.push(library / its);
        Some(its)
    }
}

impl Drop for TunedLibc {
    fn drop(&mut self) {
        // The end of its input ends the child.
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_five_numbers_that_fit() {
        let request = Request { size: 7, dst: 1, src: 4095, calls: 9, untimed: 3 };
        assert_eq!(Request::parse("7 1 4095 9 3"), Some(request));
        for line in
            ["", "7 1 2 3", "7 1 2 3 4 5", "7 1 4096 9 1", "0 0 0 1 1", "x 1 2 3 4", "7 -1 2 3 4"]
        {
            assert_eq!(Request::parse(line), None, "{line}");
        }
    }

    #[test]
    fn every_operation_is_served_checked_and_timed() {
        for operation in [
            Operation::Copy,
            Operation::Move,
            Operation::Fill,
            Operation::Zero,
            Operation::Compare,
            Operation::Equal,
        ] {
            let mut told = Vec::new();
            serve(
                operation,
                "100 24 521 1000 0\n100 24 521 1 32\n5000 0 512 50 1\n".as_bytes(),
                &mut told,
            )
            .expect("served");
            let told = String::from_utf8(told).expect("text");
            let times: Vec<Vec<f64>> = told
                .lines()
                .map(|line| line.split(' ').map(|time| time.parse().expect("a time")).collect())
                .collect();
            assert_eq!(times.len(), 3);
            assert!(times[0].len() == 2 && times[0].iter().all(|time| *time > 0.0), "{operation}");
        }
        let error = serve(Operation::Copy, "nonsense\n".as_bytes(), Vec::new()).expect_err("bad");
        assert!(error.to_string().contains("found \"nonsense\", accepted SIZE"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_refused() {
        assert!(TunedLibc::start(Path::new("/bin/true"), "", Operation::Copy).is_err());
        assert!(TunedLibc::start(Path::new("/nonexistent/x"), "", Operation::Copy).is_err());
    }
}
