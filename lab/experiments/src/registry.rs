//! Every experiment by name.

use crate::error::LabError;
use crate::experiment::Experiment;

pub use crate::EXPERIMENTS as ALL;

/// The experiment of that name that can be run; an item of a study as `study` and its name.
///
/// # Errors
/// [`LabError::Usage`] with what to use instead, or the nearest names.
pub fn find(name: &str, item: Option<&str>) -> Result<&'static Experiment, LabError> {
    let is_study = name == "study";
    let wanted = if is_study { item.unwrap_or_default() } else { name };
    let refused = |text: String| Err(LabError::Usage(text));
    if let (false, Some(item)) = (is_study, item) {
        return refused(format!("{item}: only `run study` takes an item"));
    }
    match of(wanted) {
        Some(found) if !found.is_here() => {
            refused(format!("{wanted} left; its records are drawn still: `cachewise report`"))
        }
        Some(found) if found.name != wanted || found.is_study != is_study => {
            refused(format!("{wanted}: use `run {}`", found.words()))
        }
        Some(found) => Ok(found),
        None => {
            let of_kind = here().filter(|one| one.is_study == is_study).map(|one| one.name);
            let nearest = crate::select::nearest(wanted, of_kind);
            let listed = "expected one that `cachewise list experiments` names";
            refused(format!("experiment: {listed}, found \"{wanted}\"{nearest}"))
        }
    }
}

/// Experiments that can be run.
pub fn here() -> impl Iterator<Item = &'static Experiment> {
    ALL.iter().filter(|experiment| experiment.is_here())
}

/// The experiment that measures, or measured, what a record's rows call so.
pub fn of(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.answers_to(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused_with_what_to_use() {
        for (name, item, found) in [
            ("copy-matrix", None, Ok("copy-matrix")),
            ("study", Some("aliasing"), Ok("aliasing")),
            ("aliasing", None, Err("run study aliasing")),
            ("study", Some("peers"), Err("run peers")),
            ("peers", Some("copy"), Err("only `run study`")),
            ("copy-matrices", None, Err("copy-matrix")),
            ("hints", None, Err("run reuse-map")),
            ("page-colour", None, Err("cachewise report")),
        ] {
            match (find(name, item), found) {
                (Ok(one), Ok(wanted)) => assert_eq!(one.name, wanted),
                (Err(error), Err(says)) => assert!(error.to_string().contains(says), "{error}"),
                (one, _) => panic!("{name}: {:?}", one.map(|one| one.name)),
            }
        }
    }
}
