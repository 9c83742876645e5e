//! What the rows of `zeroing-engines` amount to. Pure.

use crate::words::*;

/// The sentences, the headline first.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let of_engines: Vec<Row> =
        rows.iter().filter(|row| row.cell.state == ENGINE).cloned().collect();
    let cells = by_cell(&of_engines);
    let Some((key, largest)) = cells.iter().max_by_key(|(key, _)| key.size) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    let whole = |row: &&&Row| stats::median(&row.total_ns());
    let parts = match largest.iter().any(|row| row.bystander_ns.is_empty()) {
        true => "CPU and reader",
        false => "CPU, reader and bystander",
    };
    let least = largest.iter().min_by(|one, other| whole(one).total_cmp(&whole(other)));
    texts.extend(least.map(|least| {
        let batches = bytes(key.size);
        let open = largest.iter().filter(|row| row.candidate != least.candidate).find(|row| {
            !PairedRatio::paired(&least.total_ns(), &row.total_ns()).verdict(MARGIN).is_different()
        });
        let name = &least.candidate;
        match open {
            Some(row) => format!(
                "In batches of {batches} no engine costs less than {name}; cannot tell it from {} \
                 ({parts})",
                row.candidate
            ),
            None => {
                format!("In batches of {batches} {name} costs least ({parts})")
            }
        }
    }));
    texts.extend(hardware(largest));
    for row in largest {
        let [rate, cpu] =
            [ENGINE_GBPS, CPU_PER_GB].map(|name| row.figure(name).unwrap_or(f64::NAN));
        let lost = row.figure(BYSTANDER_PER_GB).map_or_else(String::new, |_| match lost_by(row) {
            Some(lost) => format!(", a bystander loses {lost:.1} ms"),
            None => ", a bystander's loss is lost in noise".to_owned(),
        });
        texts.push(format!("{}: {rate:.1} GB/s; for a GB {cpu:.3} s of CPU{lost}", row.candidate));
    }
    texts.extend(services(rows));
    texts
}

/// What a bystander loses for a GB, ms; nothing where noise made it negative.
pub(super) fn lost_by(row: &Row) -> Option<f64> {
    row.figure(BYSTANDER_PER_GB).filter(|lost| *lost >= 0.0)
}

/// "With hardware support there will be minimal impact of zeroing on the performance of the system." (003.19)
fn hardware(of_cell: &[&Row]) -> Option<String> {
    let lost = |name: &str| lost_by(named(of_cell, name)?);
    let cpu = |name: &str| named(of_cell, name)?.figure(CPU_PER_GB);
    let Some(used) = cpu(ENGINE_CUDA) else {
        return Some("Hardware that zeroes (003.19): none here, not tested".to_owned());
    };
    let part = used / cpu(ENGINE_AROUND)?;
    let bystander =
        lost(ENGINE_CUDA).zip(lost(ENGINE_AROUND)).map_or(String::new(), |(gpu, cpu)| {
            format!("; a bystander loses {gpu:.1} ms for a GB against {cpu:.1}")
        });
    // A twentieth of the CPU's work is minimal.
    let answer = if part <= 0.05 { "still true" } else { "no longer true here" };
    Some(format!(
        "With hardware the impact of zeroing is minimal (003.19): {answer} of CPU time: the GPU takes \
         {:.1} % of the CPU's{bystander}",
        part * 100.0
    ))
}

/// What a busy service gains by an engine over zeroing at hand-out.
fn services(rows: &[Row]) -> Vec<String> {
    let of_service: Vec<Row> =
        rows.iter().filter(|row| row.cell.state == SERVICE).cloned().collect();
    let mut texts = Vec::new();
    for (_, of_cell) in by_cell(&of_service) {
        for name in [ENGINE_AROUND, ENGINE_CUDA] {
            let Some(row) = named(&of_cell, name) else { continue };
            let Some(ratio) = row.ratio else { continue };
            let gain =
                told(ratio, ["{} less time a request", "{} more time a request", "cannot tell"]);
            let [p99, share] =
                ["p99_ns", HIT_SHARE].map(|name| row.figure(name).unwrap_or(f64::NAN));
            texts.push(format!(
                "A service with all CPUs busy, {:.1} ms of own work, zeroing by {name} over zeroing at \
                 hand-out: {gain}; p99 of a zeroed block {:.1} us, {:.0} % found zeroed",
                axis(row, WORK_US) / 1000.0,
                p99 / 1000.0,
                share * 100.0
            ));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_said() {
        crate::made_up::keeps("zeroing-engines", |case| super::verdicts(&case.rows));
    }
}
