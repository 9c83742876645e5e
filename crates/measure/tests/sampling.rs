//! A small sampling for real: kernels on placed operands, from the machine's description to a
//! record on disk. Structure is checked, not timing, except the order of things that differ by
//! a factor of ten.

use cachewise_kernels::{Function, find};
use cachewise_measure::{
    Arena, Bystander, Candidate, Cell, CellKey, Clock, Contents, Delay, Header, Level, Machine,
    NoiseSnapshot, Operand, PagePolicy, PairedRatio, Place, Plan, Proof, ReaderSpec, Row, Samples,
    Slots, Verdict, Writer, record, sampler, warnings,
};
use std::sync::Arc;

/// A copy kernel, called so many times per call.
struct Copy {
    name: &'static str,
    times: usize,
}

impl Candidate for Copy {
    fn name(&self) -> &str {
        self.name
    }

    fn call(&mut self, place: &Place) {
        let Some(Function::Copy(copy)) = self.function() else { unreachable!("copies only") };
        for _ in 0..self.times {
            // SAFETY: the sampler's places are valid for n bytes and apart.
            unsafe { copy(place.dst, place.src, place.n) };
        }
    }

    fn function(&self) -> Option<Function> {
        find("copy.bytes").map(|kernel| kernel.function)
    }

    fn stays(&self) -> bool {
        self.times == 1
    }
}

#[test]
fn from_the_machine_to_a_record() {
    let before = NoiseSnapshot::take();
    let machine = Machine::describe();
    let clock = Clock::calibrate();
    let operand = |level, seed| {
        let slots = Slots::placed(level, 256, 0, 0.5, &machine.caches).expect("slots");
        let arena = Arena::new(slots.bytes(), PagePolicy::Huge, seed).expect("an arena");
        Operand::new(&Arc::new(arena), 0, slots, seed).expect("an operand")
    };
    let mut bystander = Bystander::new(32 << 10, 5).expect("a bystander");
    let mut cell = Cell {
        size: 256,
        destination: operand(Level::L2, 1),
        source: Some(operand(Level::L1, 2)),
        contents: Contents::Overwritten,
        reader: Some(ReaderSpec { touched_fraction: 0.5, delay: Delay::Nanoseconds(50.0) }),
        bystander: Some(&mut bystander),
    };
    let mut once = Copy { name: "once", times: 1 };
    let mut often = Copy { name: "often", times: 30 };
    let mut candidates: [&mut dyn Candidate; 2] = [&mut once, &mut often];
    let plan = Plan { seed: 3, screening_rounds: 0, ..Plan::default() };
    let result =
        sampler::run(&mut cell, &mut candidates, &plan, &clock, &|| false).expect("a result");

    assert_eq!(result.rounds, 15);
    assert!(result.calls_per_sample >= 1);
    let proofs: Vec<Proof> = result.proofs.0.iter().chain(&result.proofs.1).cloned().collect();
    assert_eq!(proofs.iter().map(|proof| proof.level).collect::<Vec<_>>(), [Level::L1, Level::L2]);
    let reference = &result.candidates[0];
    for samples in &result.candidates {
        let Samples { operation_ns, reader_ns, bystander_ns, .. } = samples;
        assert_eq!([operation_ns, reader_ns, bystander_ns].map(Vec::len), [15; 3]);
        assert!(samples.operation_ns.iter().all(|time| time.is_finite() && *time >= 0.0));
    }
    let ratio = |index: usize| {
        PairedRatio::new(&result.candidates[index].operation_ns, &reference.operation_ns, 1)
    };
    assert_eq!(ratio(1).verdict(0.02), Verdict::Slower, "thirty times the work: {:?}", ratio(1));

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.jsonl");
    let mut header = Header::now("a test", machine.clone(), clock.facts(), plan.seed);
    header.warnings = warnings(&before, &NoiseSnapshot::take(), &machine);
    let mut writer = Writer::create(&path).expect("a writer");
    writer.header(&header).expect("the header");
    for (index, samples) in result.candidates.iter().enumerate() {
        let cell = CellKey {
            source: Some("L1".into()),
            destination: Some("L2".into()),
            reader: Some(0.5),
            bystander: Some(32 << 10),
            ..CellKey::new("copy", 256, "placed")
        };
        let times = samples.operation_ns.clone();
        let row = Row {
            calls: result.calls_per_sample,
            reader_ns: samples.reader_ns.clone(),
            bystander_ns: samples.bystander_ns.clone(),
            proofs: proofs.clone(),
            drift: Some(result.drift),
            dropped: samples.dropped_after.is_some(),
            ..Row::new("test", cell, &samples.name, &reference.name, times)
        };
        let row = row.with_ratio(ratio(index)).with(&[("visits", result.visits_per_slot)]);
        writer.row(&row).expect("a row");
    }
    writer.finish(false).expect("the end");
    let read = record::read(&path).expect("a record");
    assert_eq!(read.rows.len(), 2);
    assert_eq!(read.header.machine, machine);
    let close = |a: f64, b: f64| (a - b).abs() <= 5e-5 * b.abs();
    assert!(close(read.rows[1].operation_ns[7], result.candidates[1].operation_ns[7]));
}
