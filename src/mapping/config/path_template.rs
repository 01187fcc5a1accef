//! The path of an endpoint: literal text, and parameters in braces as in `/v1/models/{model}`.

use percent_encoding::percent_decode_str;
use regex::Regex;

/// A parameter matches a part of one segment, and at the end the rest of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate<'p> {
    /// The texts before, between and after the parameters. Two paths with the same texts match the same requests.
    pub literals: Vec<&'p str>,
    /// The names of the parameters.
    pub parameters: Vec<&'p str>,
}

impl<'p> PathTemplate<'p> {
    /// Parses a path; the error is what is wrong with it.
    pub fn parse(path: &'p str) -> Result<PathTemplate<'p>, &'static str> {
        if path.chars().any(|c| !c.is_ascii_graphic() || matches!(c, '?' | '#')) {
            return Err("a space, `?`, `#` or a character that is not ASCII must be percent-encoded");
        }
        let mut template = PathTemplate { literals: Vec::new(), parameters: Vec::new() };
        let mut rest = path;
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` is not closed")?;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err("a parameter is a name in braces, such as `{model}`");
            }
            if after.starts_with('{') {
                return Err("there must be text between two parameters");
            }
            template.literals.push(literal);
            template.parameters.push(name);
            rest = after;
        }
        template.literals.push(rest);
        Ok(template)
    }
}

/// Reads the values of the parameters from the path of a request.
#[derive(Clone, Debug)]
pub struct PathMatcher {
    regex: Regex,
    names: Vec<String>,
}

impl PathMatcher {
    /// `None` for a path without parameters.
    pub fn new(path: &str) -> Option<PathMatcher> {
        let PathTemplate { literals, parameters } = PathTemplate::parse(path).ok()?;
        let (last, literals) = literals.split_last()?;
        let count = parameters.len();
        let parameter = |at: usize| if at + 1 == count && last.is_empty() { "(.+)" } else { "([^/]+)" };
        let before = literals.iter().enumerate().map(|(at, text)| regex::escape(text) + parameter(at));
        let regex = Regex::new(&format!("^{}{}$", before.collect::<String>(), regex::escape(last))).ok()?;
        (count > 0).then(|| PathMatcher { regex, names: parameters.into_iter().map(str::to_owned).collect() })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The parameters of a path, percent-decoded: some clients escape the slash in `vendor/model`.
    pub fn parameters(&self, path: &str) -> Vec<(String, String)> {
        let Some(found) = self.regex.captures(path) else { return Vec::new() };
        let values = found.iter().skip(1).flatten();
        let decoded = values.map(|value| percent_decode_str(value.as_str()).decode_utf8_lossy().into_owned());
        self.names.iter().cloned().zip(decoded).collect()
    }
}
