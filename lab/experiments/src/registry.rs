//! Every experiment by name.

use crate::error::LabError;
use crate::experiment::Experiment;

pub use crate::EXPERIMENTS as ALL;

/// The experiment of that name.
///
/// # Errors
/// [`LabError::Usage`] with the names there are.
pub fn find(name: &str) -> Result<&'static Experiment, LabError> {
    ALL.iter().find(|experiment| experiment.name == name).ok_or_else(|| {
        if let Some(Experiment { name: now, .. }) = of(name) {
            let text =
                format!("experiment: found \"{name}\", accepted {now}, which measures it too");
            return LabError::Usage(text);
        }
        let nearest = crate::select::nearest(name, ALL.iter().map(|experiment| experiment.name));
        LabError::Usage(format!(
            "experiment: found \"{name}\", accepted one that `cachewise list experiments` \
             names{nearest}"
        ))
    })
}

/// The experiment that measures what a record's rows call so.
pub fn of(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.answers_to(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused_with_the_list() {
        assert_eq!(find("copy-matrix").map(|e| e.name).ok(), Some("copy-matrix"));
        let error = find("copy-matrices").err().expect("unknown").to_string();
        assert!(error.ends_with("names; nearest: copy-matrix"), "{error}");
        let error = find("hints").err().expect("a part").to_string();
        assert!(error.ends_with("accepted reuse-map, which measures it too"), "{error}");
        assert_eq!(of("hints").map(|found| found.name), Some("reuse-map"));
    }
}
