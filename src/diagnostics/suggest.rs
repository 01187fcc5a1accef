//! Did-you-mean suggestions, lists of alternatives, and counts.

/// Names that other tools or earlier versions use, and the names that are used now. The first one that is legal at the
/// place is suggested.
const FOREIGN_NAMES: &[(&str, &[&str])] = &[
    ("on", &["event", "when"]),
    ("if", &["when", "where"]),
    ("foreach", &["each", "$each"]),
    ("uri", &["url"]),
    ("base_url", &["url"]),
    // Earlier names of keys.
    ("parts", &["fragments", "content_parts"]),
    ("own_policies", &["custom_policies"]),
    ("as_asked", &["as_requested"]),
    ("names", &["rename_fields"]),
    ("pages", &["static_routes"]),
    ("keys", &["api_keys"]),
    ("key", &["api_key", "event_name"]),
    ("join", &["merge_adjacent"]),
    ("instructions", &["system_messages"]),
    ("text_only", &["text_only_roles"]),
    ("effort", &["reasoning_effort"]),
    ("parallel", &["parallel_tool_calls"]),
    ("previous", &["previous_response_id"]),
    ("refused", &["rejected_fields"]),
    ("refuse", &["reject"]),
    ("unless", &["allowed_values", "disable_for"]),
    ("arguments", &["delta"]),
    ("piece", &["delta"]),
    ("begin", &["start"]),
    ("wrong", &["invalid"]),
    ("number", &["sequence"]),
    ("also", &["extra_frames"]),
    ("first", &["first_sequence"]),
    ("cut", &["disconnect", "truncated"]),
    ("said", &["content"]),
    // Earlier names of policies.
    ("head", &["stream_start"]),
    ("terminal_order", &["close_items"]),
    ("tools_overlap", &["items_overlap"]),
    ("message_pick", &["message_content"]),
    ("stream_idle_result", &["on_idle"]),
    ("stream2json.on_empty", &["aggregate.on_empty"]),
    ("stream2json.on_partial", &["aggregate.on_partial"]),
    ("stream2json.on_malformed", &["aggregate.on_malformed"]),
    ("stream2json.usage", &["usage"]),
    ("aggregate.usage", &["usage"]),
    // Earlier names of values.
    ("at_once", &["immediately"]),
    ("by_item", &["when_complete"]),
    ("at_end", &["at_finish"]),
    ("error502", &["error"]),
    ("empty", &["empty_string"]),
    ("nothing", &["null_value", "absent"]),
    ("absent", &["omitted"]),
    ("last_non_empty", &["last"]),
    ("merged", &["merge"]),
    ("field", &["keep"]),
    ("events", &["keep"]),
    ("breach", &["violation"]),
    ("garbled", &["malformed"]),
    // YAML's and other languages' names of JSON's types.
    ("list", &["non_empty_array", "array"]),
    ("map", &["object"]),
    ("text", &["string"]),
    ("bool", &["boolean"]),
    ("int", &["number"]),
    ("integer", &["number"]),
];

/// Longer texts, in bytes, are no misspelled names; comparing them takes time.
const MAX_WORD: usize = 128;

/// How many existing names a help line lists.
const MAX_LISTED: usize = 60;

/// What a foreign name is called here.
fn own_names(word: &str) -> &'static [&'static str] {
    FOREIGN_NAMES.iter().find(|(foreign, _)| *foreign == word).map_or(&[], |(_, own)| own)
}

/// The name of `known` that was probably meant: our name for a foreign one, or else the nearest by edit distance.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let word_lower = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().filter(|name| name.len() <= MAX_WORD).collect();
    if let Some(own) = own_names(&word_lower).iter().find_map(|own| known.iter().find(|k| *k == own)) {
        return Some(own);
    }
    // A field of a variable, such as `request.effort`.
    if let Some((root, field)) = word_lower.rsplit_once('.')
        && let Some(path) =
            own_names(field).iter().find_map(|own| known.iter().find(|k| **k == format!("{root}.{own}")))
    {
        return Some(path);
    }
    known
        .into_iter()
        .filter_map(|k| Some((typo_distance(&word_lower, &k.to_lowercase())?, k)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// The number of edits between two names, if they are few for their length. Of paths such as `item.input`, only the
/// names that differ count: `item.` must not make `input` and `index` similar.
fn typo_distance(word: &str, known: &str) -> Option<usize> {
    let (mut word, mut known) = (word, known);
    while let (Some((a, rest_a)), Some((b, rest_b))) = (word.split_once('.'), known.split_once('.'))
        && a == b
    {
        (word, known) = (rest_a, rest_b);
    }
    while let (Some((rest_a, a)), Some((rest_b, b))) = (word.rsplit_once('.'), known.rsplit_once('.'))
        && a == b
    {
        (word, known) = (rest_a, rest_b);
    }
    let distance = strsim::damerau_levenshtein(word, known);
    let length = word.chars().count().max(known.chars().count());
    // `add` for `added`.
    let is_beginning = word.len() >= 3 && known.starts_with(word) && distance <= 2;
    // Replacing every letter, as in words of one letter, is no typo.
    (is_beginning || distance <= (length / 3).max(1) && distance < length).then_some(distance)
}

/// The name of `known` that is one edit away, so that `word` is probably a typo of it.
pub fn likely_typo<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let mut known = known.into_iter().filter(|name| word.len().max(name.len()) <= MAX_WORD);
    known.find(|k| k.len() > 4 && strsim::damerau_levenshtein(word, k) == 1)
}

/// The existing names, for the help line of an unknown name.
pub fn describe_known<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "none is defined".to_owned(),
        [one] => format!("the only one is `{one}`"),
        many if many.len() > MAX_LISTED => {
            format!("one of {} and {} more", many[..MAX_LISTED].join(", "), many.len() - MAX_LISTED)
        }
        many => format!("one of {}", or_list(many.iter().copied())),
    }
}

/// `1 file`, `2 files`
pub fn count_noun(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
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
