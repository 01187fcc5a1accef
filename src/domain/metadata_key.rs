//! The keys of metadata lines: lines of a model's text that repeat metadata (`metadata_lines:` of a dialect).

/// The normal form of a key: lower case, with `_` for everything but letters and digits.
pub fn normal_key(key: &str) -> String {
    let mut normal = String::new();
    for c in key.trim().chars() {
        match c.is_alphanumeric() {
            true => normal.extend(c.to_lowercase()),
            false if !normal.ends_with('_') && !normal.is_empty() => normal.push('_'),
            false => {}
        }
    }
    normal.trim_end_matches('_').to_owned()
}
