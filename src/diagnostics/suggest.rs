//! Did-you-mean suggestions and lists of alternatives.

/// Names that other tools use, and the names that Reframe uses instead.
const FOREIGN_NAMES: &[(&str, &[&str])] = &[
    ("on", &["event", "when"]),
    ("if", &["when", "where"]),
    ("foreach", &["each", "$each"]),
    ("uri", &["url"]),
    ("base_url", &["url"]),
    ("api_key", &["key"]),
];

/// The name of `known` that was probably meant: our name for a foreign one, or else the nearest by edit distance.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word_lower = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    let foreign = FOREIGN_NAMES.iter().find(|(foreign, _)| *foreign == word_lower);
    let own_names = foreign.map_or(&[] as &[&str], |(_, own)| own);
    if let Some(own) = own_names.iter().find_map(|own| known.iter().find(|k| *k == own)) {
        return Some(own);
    }
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&word_lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| {
            // Replacing every letter, as in words of one letter, is no typo.
            let length = word.chars().count().max(k.chars().count());
            *distance <= (length / 3).max(1) && *distance < length
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// The name of `known` that is one edit away, so that `word` is probably a typo of it.
pub fn likely_typo<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known.into_iter().find(|k| k.len() > 4 && strsim::damerau_levenshtein(word, k) == 1)
}

/// The existing names, for the help line of an unknown name.
pub fn describe_known<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "there is none yet".to_owned(),
        [one] => format!("there is only `{one}`"),
        many => format!("one of {}", or_list(many.iter().copied())),
    }
}

/// `a, b or c`, for a sentence that lists the allowed values.
pub fn or_list<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
