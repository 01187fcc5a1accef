//! Repairs the JSON of a call that a model wrote, where it is clear what is meant.

use crate::domain::Tree;

/// `None`: it is still no JSON.
pub(super) fn repaired(text: &str) -> Option<Tree> {
    let text = without_last_commas(text.trim_end_matches('>').trim_end());
    let shorter = text.strip_suffix('}').filter(|rest| rest.trim_end().ends_with('}'));
    let without_list_end = text.strip_suffix(']').filter(|_| text.starts_with('{'));
    let candidates = [Some(text.as_str()), shorter, without_list_end];
    candidates.into_iter().flatten().find_map(|text| Tree::parse(text.as_bytes()).ok())
}

/// Without the commas after the last member of an object or list.
fn without_last_commas(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    for character in text.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            '}' | ']' if !inside && result.trim_end().ends_with(',') => {
                let kept = result.trim_end().len() - 1;
                result.truncate(kept);
            }
            _ => {}
        }
        result.push(character);
    }
    result
}
