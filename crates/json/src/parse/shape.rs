//! Shapes: the text of a JSON document with gaps in place of some scalars. A text that differs only in the gaps need not
//! be parsed.

use super::{Parsed, Parser};
use crate::{Limits, Tree};

/// One step from a document to a scalar in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeStep {
    /// Into the member of a map.
    Member(String),
    /// Into an element of a list.
    Element(usize),
}

/// What may be in place of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Any string, of which the value is wanted.
    Wanted,
    /// Any string.
    String,
    /// Any number.
    Number,
    /// A number without a sign, a fraction or an exponent, and with at most 15 digits.
    Count,
}

/// The text of a JSON document with gaps, one of which is [`Gap::Wanted`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Each with the gap after it.
    parts: Vec<(Box<str>, Gap)>,
    /// The text after the last gap.
    end: Box<str>,
}

impl Shape {
    /// The shape of a text. `gap` decides for each string and number, by its path and value; `None` keeps it as it is.
    ///
    /// There is no shape of a text that is no JSON, has a key twice in one map, or does not get exactly one
    /// [`Gap::Wanted`].
    pub fn of(text: &str, gap: &mut dyn FnMut(&[ShapeStep], &Tree) -> Option<Gap>) -> Option<Shape> {
        let limits = Limits { max_bytes: text.len(), ..Limits::default() };
        let mut builder = Builder {
            parser: Parser::new(text, &limits),
            path: Vec::new(),
            gap,
            parts: Vec::new(),
            from: 0,
            has_duplicate: false,
        };
        builder.parser.skip_space();
        builder.value().ok()?;
        builder.parser.skip_space();
        let is_whole = builder.parser.at == text.len() && !builder.has_duplicate;
        let wanted = builder.parts.iter().filter(|(_, gap)| *gap == Gap::Wanted).count();
        let end = text[builder.from..].into();
        (is_whole && wanted == 1).then_some(Shape { parts: builder.parts, end })
    }

    /// The string in the gap that is wanted, if the text has this shape: parsed, it would differ only in the gaps.
    pub fn read(&self, text: &str) -> Option<Tree> {
        let mut parser = Parser::new(text, &Limits::default());
        let mut wanted = None;
        for (part, gap) in &self.parts {
            parser.skip_text(part)?;
            match gap {
                Gap::Wanted => wanted = Some(parser.string_at_quote()?),
                Gap::String => parser.string_at_quote().map(drop)?,
                Gap::Number => parser.number_at_digit()?,
                Gap::Count => parser.count_at_digit()?,
            }
        }
        (parser.bytes[parser.at..] == *self.end.as_bytes()).then_some(())?;
        wanted
    }
}

impl Parser<'_> {
    fn skip_text(&mut self, text: &str) -> Option<()> {
        self.bytes[self.at..].starts_with(text.as_bytes()).then_some(())?;
        self.at += text.len();
        Some(())
    }

    fn string_at_quote(&mut self) -> Option<Tree> {
        (self.peek() == Some(b'"')).then_some(())?;
        self.string().ok()
    }

    fn number_at_digit(&mut self) -> Option<()> {
        matches!(self.peek(), Some(b'-' | b'0'..=b'9')).then_some(())?;
        self.number().ok().map(drop)
    }

    fn count_at_digit(&mut self) -> Option<()> {
        let start = self.at;
        self.number_at_digit()?;
        is_count(&self.bytes[start..self.at]).then_some(())
    }
}

fn is_count(number: &[u8]) -> bool {
    number.len() <= 15 && number.iter().all(u8::is_ascii_digit)
}

struct Builder<'t, 'g> {
    parser: Parser<'t>,
    path: Vec<ShapeStep>,
    gap: &'g mut dyn FnMut(&[ShapeStep], &Tree) -> Option<Gap>,
    parts: Vec<(Box<str>, Gap)>,
    /// Where the constant text after the last gap begins.
    from: usize,
    has_duplicate: bool,
}

impl Builder<'_, '_> {
    /// Expects the position at the first byte of the value.
    fn value(&mut self) -> Parsed<()> {
        match self.parser.peek() {
            Some(b'{') => self.map(),
            Some(b'[') => self.list(),
            _ => self.scalar(),
        }
    }

    fn map(&mut self) -> Parsed<()> {
        let mut keys: Vec<String> = Vec::new();
        self.enter()?;
        while !self.parser.take(b'}') {
            if !keys.is_empty() {
                self.parser.expect(b',', "expected `,` or `}`")?;
                self.parser.skip_space();
            }
            self.parser.is_at_quote()?;
            let key = self.parser.key()?.to_string();
            self.has_duplicate |= keys.contains(&key);
            keys.push(key.clone());
            self.parser.skip_space();
            self.parser.expect(b':', "expected `:`")?;
            self.parser.skip_space();
            self.inside(ShapeStep::Member(key))?;
        }
        self.parser.depth_left += 1;
        Ok(())
    }

    fn list(&mut self) -> Parsed<()> {
        let mut at = 0;
        self.enter()?;
        while !self.parser.take(b']') {
            if at > 0 {
                self.parser.expect(b',', "expected `,` or `]`")?;
                self.parser.skip_space();
            }
            self.inside(ShapeStep::Element(at))?;
            at += 1;
        }
        self.parser.depth_left += 1;
        Ok(())
    }

    fn enter(&mut self) -> Parsed<()> {
        self.parser.enter()?;
        self.parser.at += 1;
        self.parser.skip_space();
        Ok(())
    }

    fn inside(&mut self, step: ShapeStep) -> Parsed<()> {
        self.path.push(step);
        self.value()?;
        self.path.pop();
        self.parser.skip_space();
        Ok(())
    }

    fn scalar(&mut self) -> Parsed<()> {
        let start = self.parser.at;
        let value = self.parser.value()?;
        let gap = match (&value, (self.gap)(&self.path, &value)) {
            (Tree::Num(_), Some(Gap::Number)) => Gap::Number,
            (Tree::Num(_), Some(Gap::Count)) if is_count(&self.parser.bytes[start..self.parser.at]) => Gap::Count,
            (Tree::Str(_) | Tree::SurrogateString(_), Some(gap @ (Gap::Wanted | Gap::String))) => gap,
            _ => return Ok(()),
        };
        self.parts.push((self.parser.text[self.from..start].into(), gap));
        self.from = self.parser.at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gaps for `text` (wanted), `any` and `number`, at any depth.
    fn gap(path: &[ShapeStep], _: &Tree) -> Option<Gap> {
        let Some(ShapeStep::Member(name)) = path.last() else { return None };
        match name.as_str() {
            "text" => Some(Gap::Wanted),
            "any" => Some(Gap::String),
            "number" => Some(Gap::Number),
            "count" => Some(Gap::Count),
            _ => None,
        }
    }

    fn shape(text: &str) -> Option<Shape> {
        Shape::of(text, &mut gap)
    }

    #[test]
    fn a_text_that_differs_in_the_gaps_is_read() {
        let shape = shape(r#" {"id":"x", "number":1,"list":[{"text":"a"}],"any":"q" } "#).unwrap();
        let read = |text: &str| shape.read(text).map(|tree| tree.to_json());
        let same = r#" {"id":"x", "number":-2.5e3,"list":[{"text":"b\u00e9\n"}],"any":"" } "#;
        assert_eq!(read(same).as_deref(), Some("\"bé\\n\""));
        let lone = r#" {"id":"x", "number":1,"list":[{"text":"\ud83d"}],"any":"\\\"" } "#;
        assert_eq!(read(lone).as_deref(), Some("\"\\ud83d\""));
        for other in [
            r#" {"id":"y", "number":1,"list":[{"text":"a"}],"any":"q" } "#,
            r#" {"id":"x", "number":"1","list":[{"text":"a"}],"any":"q" } "#,
            r#" {"id":"x", "number":01,"list":[{"text":"a"}],"any":"q" } "#,
            r#" {"id":"x", "number":1,"list":[{"text":null}],"any":"q" } "#,
            r#" {"id":"x", "number":1,"list":[{"text":"a"}],"any":"\x" } "#,
            r#" {"id":"x", "number":1,"list":[{"text":"a"}],"any":"q" }"#,
            r#" {"id":"x", "number":1,"list":[{"text":"a"}],"any":"q" } x"#,
            r#" {"id":"x", "number":1,"list":[{"text":"a"}],"any":"q"#,
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_count_is_no_other_number() {
        let counted = shape(r#"{"count":17,"text":"a"}"#).unwrap();
        let read = |count: &str| counted.read(&format!(r#"{{"count":{count},"text":"b"}}"#)).is_some();
        assert!(["0", "7", "123456789012345"].into_iter().all(read));
        assert!(!["-1", "1.5", "1e3", "1234567890123456", "007", "\"1\"", "null", ""].into_iter().any(read));
        let other = shape(r#"{"count":1.5,"text":"a"}"#).unwrap();
        assert!(other.read(r#"{"count":1.5,"text":"b"}"#).is_some());
        assert!(other.read(r#"{"count":2,"text":"b"}"#).is_none());
    }

    #[test]
    fn some_texts_have_no_shape() {
        for text in [
            r#"{"other":"a"}"#,
            r#"{"text":1}"#,
            r#"[{"text":"a"},{"text":"b"}]"#,
            r#"{"text":"a","text":"b"}"#,
            r#"{"x":{"a":1,"a":2},"text":"b"}"#,
            r#"{"text":"a""#,
            r#"{"text":"a"} x"#,
        ] {
            assert!(shape(text).is_none(), "{text}");
        }
    }

    proptest! {
        /// A text has the shape of another one exactly if its tree is the same apart from the gaps.
        #[test]
        fn a_text_of_a_shape_has_its_tree(text in ".*", any in ".*", number: i64, id in "[a-b]") {
            let shape = shape(r#"{"id":"a","deep":[{"text":"b","number":1}],"any":"c"}"#).unwrap();
            let string = |text: &str| Tree::from(text).to_json();
            let (text_json, any_json) = (string(&text), string(&any));
            let other = format!(r#"{{"id":"{id}","deep":[{{"text":{text_json},"number":{number}}}],"any":{any_json}}}"#);
            let tree = Tree::parse(other.as_bytes()).unwrap();
            let expected = (id == "a").then(|| tree.get("deep").unwrap().at(0).unwrap().get("text").unwrap().to_json());
            prop_assert_eq!(shape.read(&other).map(|tree| tree.to_json()), expected);
        }
    }
}
