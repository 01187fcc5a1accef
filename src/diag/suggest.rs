//! Did you mean.

/// The nearest of `known`, if one is near enough to be a slip of the finger.
pub fn did_you_mean<'k>(said: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let said_lower = said.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&said_lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= (said.len().max(k.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// `a, b or c`, for the sentence that lists what may stand here.
pub fn one_of<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
