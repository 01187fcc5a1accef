//! Did you mean.

/// What other tools call it, and what it is called here.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("on", &["event", "when"]),
    ("if", &["when", "where"]),
    ("foreach", &["each", "$each"]),
    ("uri", &["url"]),
    ("base_url", &["url"]),
    ("api_key", &["key"]),
];

/// The nearest of `known`, if one is near enough to be a slip of the finger, or is what others call it.
pub fn did_you_mean<'k>(said: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let said_lower = said.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    let here = ELSEWHERE.iter().find(|(other, _)| *other == said_lower).map_or(&[] as &[&str], |(_, here)| here);
    if let Some(word) = here.iter().find_map(|word| known.iter().find(|k| *k == word)) {
        return Some(word);
    }
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&said_lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| {
            // Of a word of one letter nothing remains but its length.
            let longest = said.chars().count().max(k.chars().count());
            *distance <= (longest / 3).max(1) && *distance < longest
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// The one of `known` that is a single letter away: so near that it was hardly meant as it is.
pub fn slip_of<'k>(said: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known.into_iter().find(|k| k.len() > 4 && strsim::damerau_levenshtein(said, k) == 1)
}

/// What there is, for the help line under an unknown word.
pub fn there_is<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "there is none yet".to_owned(),
        [one] => format!("there is only `{one}`"),
        several => format!("one of {}", one_of(several.iter().copied())),
    }
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
