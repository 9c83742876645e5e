//! A small sampling for real: kernels on placed operands, from the machine's description to a
//! record on disk. Structure is checked, not timing, except the order of things that differ by
//! a factor of ten.

use cachewise_kernels::{Function, find};
use cachewise_measure::{
    Bystander, Candidate, Cell, CellKey, Clock, Delay, Header, Level, Machine, NoiseSnapshot,
    Operand, PairedRatio, Place, Plan, Proof, ReaderSpec, Row, Verdict, Writer, record, sampler,
    warnings,
};

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
    let operand =
        |level, seed| Operand::new(level, 256, 0, 0.5, &machine.caches, seed).expect("an operand");
    let mut bystander = Bystander::new(32 << 10, 5).expect("a bystander");
    let mut cell = Cell {
        reader: Some(ReaderSpec { touched_fraction: 0.5, delay: Delay::Nanoseconds(50.0) }),
        bystander: Some(&mut bystander),
        ..Cell::new(operand(Level::L2, 1)).with_source(operand(Level::L1, 2))
    };
    let mut once = Copy { name: "once", times: 1 };
    let mut twice = Copy { name: "twice", times: 2 };
    let mut often = Copy { name: "often", times: 30 };
    let mut candidates: [&mut dyn Candidate; 3] = [&mut once, &mut twice, &mut often];
    let plan = Plan { seed: 3, screening_rounds: 0, ..Plan::default() };
    let result =
        sampler::run(&mut cell, &mut candidates, &plan, &clock, &|| false).expect("a result");

    assert_eq!(result.rounds, 15);
    assert!(result.calls_per_sample >= 1);
    let levels = |proof: &Option<Proof>| proof.as_ref().map(|proof| proof.level);
    assert_eq!(
        (levels(&result.proofs.0), levels(&result.proofs.1)),
        (Some(Level::L1), Some(Level::L2))
    );
    let reference = &result.candidates[0];
    for samples in &result.candidates {
        assert_eq!(samples.operation_ns.len(), 15);
        assert_eq!(samples.reader_ns.len(), 15);
        assert_eq!(samples.bystander_ns.len(), 15);
        assert!(samples.operation_ns.iter().all(|time| time.is_finite() && *time >= 0.0));
    }
    let ratio = |index: usize| {
        PairedRatio::new(&result.candidates[index].operation_ns, &reference.operation_ns, 1)
    };
    assert_eq!(ratio(2).verdict(0.02), Verdict::Slower, "thirty times the work: {:?}", ratio(2));
    assert!(ratio(2).median > ratio(1).median);

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
            proofs: result.proofs.0.iter().chain(&result.proofs.1).cloned().collect(),
            drift: Some(result.drift),
            dropped: samples.dropped_after.is_some(),
            ..Row::new("test", cell, &samples.name, &reference.name, times)
        };
        let row = row.with_ratio(ratio(index)).with(&[("timer_costs", result.timer_costs)]);
        writer.row(&row).expect("a row");
    }
    writer.finish(false).expect("the end");
    let read = record::read(&path).expect("a record");
    assert_eq!(read.rows.len(), 3);
    assert_eq!(read.header.machine, machine);
    let close = |a: f64, b: f64| (a - b).abs() <= 5e-5 * b.abs();
    assert!(close(read.rows[2].operation_ns[7], result.candidates[2].operation_ns[7]));
}

#[test]
fn reused_buffers_are_measured_without_proofs() {
    let machine = Machine::describe();
    let clock = Clock::calibrate();
    let arena = std::sync::Arc::new(
        cachewise_measure::Arena::new(1 << 20, cachewise_measure::PagePolicy::Default, 1)
            .expect("an arena"),
    );
    let at = |from| Operand::reused(&arena, from, 100, 24, &machine.caches, 1).expect("fits");
    let mut cell = Cell::new(at(0)).with_source(at(4096));
    let mut once = Copy { name: "once", times: 1 };
    let mut candidates: [&mut dyn Candidate; 1] = [&mut once];
    let result = sampler::run(&mut cell, &mut candidates, &Plan::default(), &clock, &|| false)
        .expect("a result");
    assert_eq!(result.proofs, (None, None));
    assert_eq!(result.visits_per_slot, f64::from(result.calls_per_sample));
}
