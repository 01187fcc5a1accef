//! Limits of selectors. The JSONPath library parses filters recursively, visits all nodes once for each `..`, and
//! compiles a regular expression for every node that it tests.

use jsonpath_rust::parser::model::{
    Comparable, Filter, FilterAtom, FnArg, JpQuery, Literal, Segment, Selector, Test, TestFunction,
};
use regex::RegexBuilder;

/// Limit for the text of a selector, in bytes.
const MAX_LENGTH: usize = 1_000;
/// Limit for brackets inside brackets. The parser tries an opening bracket several times, for each way to read it.
const MAX_NESTING: usize = 8;
/// Limit for steps that visit every node below another one.
const MAX_DESCENDANTS: usize = 2;
/// Limit for filters inside filters: each visits every child of each node that the one around it visits.
const MAX_NESTED_FILTERS: usize = 2;
/// Limit for a compiled regular expression, in bytes: compiling it takes about a millisecond.
const MAX_REGEX_SIZE: usize = 256 * 1024;

/// Why a text cannot be parsed as a selector.
pub(super) fn text_error(text: &str) -> Option<String> {
    if text.len() > MAX_LENGTH {
        return Some(format!("a selector can have at most {MAX_LENGTH} bytes, not {}", text.len()));
    }
    let mut nesting: usize = 0;
    for byte in text.bytes() {
        match byte {
            b'[' | b'(' => nesting += 1,
            b']' | b')' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > MAX_NESTING {
            return Some(format!("brackets of a selector can be nested at most {MAX_NESTING} levels deep"));
        }
    }
    None
}

/// Why a selector that was parsed cannot be used.
pub(super) fn query_error(query: &JpQuery) -> Option<String> {
    let mut costs = Costs::default();
    costs.segments(&query.segments);
    if costs.descendants > MAX_DESCENDANTS {
        return Some(format!("a selector can have at most {MAX_DESCENDANTS} steps with `..`"));
    }
    if costs.deepest_filter > MAX_NESTED_FILTERS {
        return Some(format!("filters can be nested at most {MAX_NESTED_FILTERS} levels deep"));
    }
    costs.pattern_error
}

/// What makes a query expensive, and the first regular expression that cannot be used.
#[derive(Default)]
struct Costs {
    descendants: usize,
    /// The number of filters around the current one.
    filters: usize,
    deepest_filter: usize,
    pattern_error: Option<String>,
}

impl Costs {
    fn segments(&mut self, segments: &[Segment]) {
        for segment in segments {
            self.segment(segment);
        }
    }

    fn segment(&mut self, segment: &Segment) {
        match segment {
            Segment::Descendant(inner) => {
                self.descendants += 1;
                self.segment(inner);
            }
            Segment::Selector(selector) => self.selector(selector),
            Segment::Selectors(selectors) => selectors.iter().for_each(|selector| self.selector(selector)),
        }
    }

    fn selector(&mut self, selector: &Selector) {
        match selector {
            Selector::Filter(filter) => {
                self.filters += 1;
                self.deepest_filter = self.deepest_filter.max(self.filters);
                self.filter(filter);
                self.filters -= 1;
            }
            Selector::Name(_) | Selector::Wildcard | Selector::Index(_) | Selector::Slice(..) => {}
        }
    }

    fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Or(filters) | Filter::And(filters) => filters.iter().for_each(|filter| self.filter(filter)),
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.filter(expr),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.test(expr),
            Filter::Atom(FilterAtom::Comparison(comparison)) => {
                let (left, right) = comparison.vals();
                for side in [left, right] {
                    if let Comparable::Function(function) = side {
                        self.function(function);
                    }
                }
            }
        }
    }

    fn test(&mut self, test: &Test) {
        match test {
            Test::RelQuery(segments) => self.segments(segments),
            Test::AbsQuery(query) => self.segments(&query.segments),
            Test::Function(function) => self.function(function),
        }
    }

    fn function(&mut self, function: &TestFunction) {
        match function {
            TestFunction::Search(text, pattern) | TestFunction::Match(text, pattern) => {
                self.argument(text);
                let error = pattern_error(pattern);
                self.pattern_error = self.pattern_error.take().or(error);
            }
            TestFunction::Length(argument) => self.argument(argument),
            TestFunction::Value(argument) | TestFunction::Count(argument) => self.argument(argument),
            TestFunction::Custom(_, arguments) => arguments.iter().for_each(|argument| self.argument(argument)),
        }
    }

    fn argument(&mut self, argument: &FnArg) {
        match argument {
            FnArg::Literal(_) => {}
            FnArg::Test(test) => self.test(test),
            FnArg::Filter(filter) => self.filter(filter),
        }
    }
}

/// The library takes a regular expression that does not compile for one that never matches.
fn pattern_error(pattern: &FnArg) -> Option<String> {
    let FnArg::Literal(Literal::String(pattern)) = pattern else {
        return Some("a regular expression must be written in the selector, not read from the data".to_owned());
    };
    match RegexBuilder::new(pattern).size_limit(MAX_REGEX_SIZE).build() {
        Ok(_) => None,
        Err(regex::Error::CompiledTooBig(_)) => {
            Some(format!("the regular expression `{pattern}` is too large: repeat less, or name fewer characters"))
        }
        Err(_) => Some(format!("`{pattern}` is not a valid regular expression")),
    }
}
