//! Before the first round: requests are checked, contents made, bytes verified.

use super::*;
use crate::MeasureError;
use crate::verify::verify;

pub(super) fn check_request(
    cell: &SampledCell<'_>,
    candidates: usize,
    plan: &Plan,
) -> Result<(), MeasureError> {
    let refuse = |what, found: String, accepted: String| {
        Err(MeasureError::BadRequest { what, found, accepted })
    };
    if candidates == 0 {
        return refuse("number of candidates", "0".into(), "1 or more".into());
    }
    if plan.rounds < MIN_ROUNDS {
        let accepted = format!("{MIN_ROUNDS} or more");
        return refuse("number of rounds", plan.rounds.to_string(), accepted);
    }
    if plan.screening_rounds > 0 && (plan.drop_ratio.is_nan() || plan.drop_ratio < 1.0) {
        return refuse("drop ratio", plan.drop_ratio.to_string(), "1 or more".into());
    }
    let room = cell.source.as_ref().map_or(usize::MAX, Operand::size).min(cell.destination.size());
    if cell.size > room {
        return refuse("size of a cell", cell.size.to_string(), format!("up to {room}, a slot"));
    }
    if let Some(reader) = &cell.reader
        && !(reader.touched_fraction > 0.0 && reader.touched_fraction <= 1.0)
    {
        let found = reader.touched_fraction.to_string();
        return refuse("touched fraction", found, "above 0, at most 1".into());
    }
    match cell.contents {
        Contents::Equal | Contents::DiffersAt(_) if cell.source.is_none() => {
            refuse("contents of the destination", "the source's".into(), "a cell with one".into())
        }
        Contents::DiffersAt(offset) if offset >= cell.size => {
            refuse("offset that differs", offset.to_string(), format!("below {}", cell.size))
        }
        _ => Ok(()),
    }
}

/// Makes the slots that will be compared with each other equal, or differ in one byte, for good:
/// comparisons write nothing. The operand with more slots is cut to a multiple of the other's, so
/// that the pairs stay pairs, and is the one that is written.
pub(super) fn equalise(cell: &mut SampledCell<'_>) {
    let differing = match cell.contents {
        Contents::Equal => None,
        Contents::DiffersAt(offset) => Some(offset),
        Contents::Overwritten | Contents::Kept => return,
    };
    let (size, destination) = (cell.size, &mut cell.destination);
    let Some(source) = cell.source.as_mut() else { return };
    let fewer = destination.slots().min(source.slots());
    destination.keep_multiple_of(fewer);
    source.keep_multiple_of(fewer);
    let pairs = destination.slots().max(source.slots());
    let destination_has_more = destination.slots() >= source.slots();
    for pair in 0..pairs {
        let (a, b) = (destination.visit(pair), source.visit(pair));
        let (to, from) = if destination_has_more { (a, b) } else { (b, a) };
        // SAFETY: slots of two operands that do not overlap, of at least that size.
        unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
        if let Some(offset) = differing {
            // SAFETY: the offset is below the size, as was checked.
            unsafe { *to.wrapping_add(offset) ^= 0x10 };
        }
    }
}

pub(super) fn check_bytes(
    cell: &SampledCell<'_>,
    candidate: &dyn Candidate,
) -> Result<(), MeasureError> {
    let dst = cell.destination.visit(0);
    let src = cell.source.as_ref().map_or(dst, |source| source.visit(0)).cast_const();
    for function in candidate.function().into_iter().chain(candidate.companion()) {
        let refused =
            |wrong| MeasureError::WrongBytes { candidate: candidate.name().into(), wrong };
        // SAFETY: slots of that size in written arenas; an operation with a source gets one of its
        // own, or is refused by its own contract's owner: the laboratory pairs operations and
        // cells.
        unsafe { verify(&function, dst, src, cell.size) }.map_err(refused)?;
    }
    Ok(())
}
