//! The engines of a pool, each with memory of its own: what one engine pins, no other may drop.

use crate::prelude::*;
use cachewise_pages::engine::{CpuEngine, CudaEngine, Engine, Progress, Range};
use memmap2::{Advice, MmapMut};
use std::time::Duration;

/// Longest time of an engine for a batch.
const DEADLINE: Duration = Duration::from_secs(5);
/// The byte that memory holds before it is zeroed.
const WRITTEN: u8 = 0x55;

/// An engine and its memory.
pub(super) struct Arm {
    pub(super) name: &'static str,
    // Goes first: it may have registered the memory.
    engine: Box<dyn Engine>,
    memory: MmapMut,
}

/// The time of zeroing all of the memory.
pub(super) struct Zeroed {
    /// Nanoseconds of time, and of CPU.
    pub(super) wall: f64,
    pub(super) cpu: f64,
}

/// All engines that there are here with so many bytes each; and why there is no other.
pub(super) fn all(size: usize) -> Result<(Vec<Arm>, Option<String>)> {
    let mut arms = vec![
        Arm::new(ENGINE_AROUND, Box::new(CpuEngine::around()), size)?,
        Arm::new("cpu-through", Box::new(CpuEngine::through()), size)?,
        Arm::new("system", Box::new(CpuEngine::system()), size)?,
    ];
    let device = CudaEngine::new().map_err(|error| error.to_string()).and_then(|engine| {
        let mut arm = Arm::new(ENGINE_CUDA, Box::new(engine), size).map_err(|e| e.to_string())?;
        let memory = Range { start: arm.memory.as_mut_ptr(), length: size };
        // SAFETY: the memory is mapped for as long as the engine is there, and was touched.
        unsafe { arm.engine.adopt(memory) }.map_err(|error| error.to_string())?;
        Ok(arm)
    });
    let why_not = device.map(|arm| arms.push(arm)).err();
    Ok((arms, why_not.map(|why| format!("no GPU: {why}"))))
}

impl Arm {
    fn new(name: &'static str, engine: Box<dyn Engine>, size: usize) -> Result<Arm> {
        let refused = |error| LabError::Nothing(format!("{size} bytes of memory: {error}"));
        let mut memory = MmapMut::map_anon(size).map_err(refused)?;
        let _ = memory.advise(Advice::HugePage);
        memory.fill(WRITTEN);
        Ok(Arm { name, engine, memory })
    }

    /// Fills the memory with something else, as a program does.
    pub(super) fn write(&mut self) {
        self.memory.fill(WRITTEN);
    }

    /// Zeroes all of it in batches of so many bytes. Whether that is so is asked behind the reader, which would
    /// find in the cache what is read here ([`check`](Arm::check)).
    pub(super) fn zero(&mut self, clock: &Clock, batch: usize) -> Result<Zeroed> {
        let cpu = |engine: &dyn Engine| {
            (cachewise_pages::thread_cpu_time() + engine.cpu_time()).as_secs_f64() * 1e9
        };
        let before = cpu(&*self.engine);
        let mut ended = Ok(());
        let wall = clock.time(|| ended = self.pass(batch));
        ended?;
        Ok(Zeroed { wall, cpu: cpu(&*self.engine) - before })
    }

    /// Checks that all of it is zero.
    pub(super) fn check(&self) -> Result {
        match self.memory.as_chunks::<8>().0.iter().all(|word| *word == [0; 8]) {
            true => Ok(()),
            false => Err(LabError::WrongBytes(format!("{}: memory is not zero", self.name))),
        }
    }

    /// Zeroes all of it once.
    pub(super) fn pass(&mut self, batch: usize) -> Result {
        for part in self.memory.chunks_mut(batch) {
            let range = Range { start: part.as_mut_ptr(), length: part.len() };
            // SAFETY: whole pages of this arm's own memory, of which nobody else has a part meanwhile.
            let submitted = unsafe { self.engine.submit(&[range]) };
            let ended = submitted.map(|token| self.engine.wait(token, DEADLINE));
            if !matches!(ended, Ok(Progress::Done)) {
                return Err(LabError::Nothing(format!("{}: {ended:?}", self.name)));
            }
        }
        Ok(())
    }

    /// Reads a byte of each line of the last batch: nanoseconds.
    pub(super) fn read_last(&self, clock: &Clock, batch: usize) -> f64 {
        let last = &self.memory[self.memory.len() - batch..];
        let mut sum = 0;
        let took = clock.time(|| {
            let lines = last.iter().step_by(LINE);
            sum = lines.fold(0_u64, |sum, byte| sum + u64::from(*byte));
        });
        std::hint::black_box(sum);
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_that_is_here_zeroes_all_of_its_memory() {
        let (arms, why_not) = all(2 * HUGE_PAGE).expect("memory");
        assert_eq!(arms.len() + usize::from(why_not.is_some()), 4, "{why_not:?}");
        for mut arm in arms {
            arm.write();
            assert!(arm.check().is_err(), "{}", arm.name);
            arm.pass(HUGE_PAGE).expect("it zeroes");
            arm.check().expect("zero");
        }
    }
}
