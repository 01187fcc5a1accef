//! Values that must not change within a captured stream.

use super::FindingList;

/// Names and values, each with the line where it first occurred.
#[derive(Debug, Default)]
pub struct Facts(Vec<(&'static str, String, usize)>);

impl Facts {
    /// Compares the values that are present with the known ones. `of` completes "the id of …".
    pub fn check<const N: usize>(
        &mut self,
        of: &str,
        observed: [(&'static str, Option<String>); N],
        findings: &mut FindingList,
    ) {
        for (name, value) in observed {
            let Some(value) = value else { continue };
            match self.0.iter().find(|(n, ..)| *n == name) {
                Some((_, known, first_line)) if *known != value => {
                    let text = format!("the {name} of {of} is `{value}` here, but was `{known}` on line {first_line}");
                    findings.add(text);
                }
                Some(_) => {}
                None => self.0.push((name, value, findings.line)),
            }
        }
    }
}
