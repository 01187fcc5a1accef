//! What a skeleton is rendered into: a draft, or text without a draft.

use crate::domain::Draft;
use reframe_json::{DocumentShape, OuterShape, write_str};
use std::borrow::Cow;
use std::mem;

/// Values arrive in their order. A list or map that has begun always ends, except after an error.
pub trait Target<'a> {
    /// What is around a list or map.
    type Outer;

    fn put(&mut self, value: Draft<'a>);
    /// `length`: how many elements it has at most.
    fn begin_list(&mut self, length: usize) -> Self::Outer;
    fn end_list(&mut self, outer: Self::Outer);
    fn begin_map(&mut self, length: usize) -> Self::Outer;
    /// The name of the next value. If that is left out, the next name replaces it.
    fn set_key(&mut self, key: &'a str);
    fn end_map(&mut self, outer: Self::Outer);
}

/// Renders a draft.
#[derive(Default)]
pub struct Drafts<'a> {
    open: Open<'a>,
    key: &'a str,
}

/// What the next value belongs to.
pub enum Open<'a> {
    Root(Option<Draft<'a>>),
    List(Vec<Draft<'a>>),
    Map(Vec<(Cow<'a, str>, Draft<'a>)>),
}

impl Default for Open<'_> {
    fn default() -> Self {
        Open::Root(None)
    }
}

impl<'a> Drafts<'a> {
    /// `None`: it was left out.
    pub fn into_root(self) -> Option<Draft<'a>> {
        match self.open {
            Open::Root(root) => root,
            Open::List(list) => Some(Draft::List(list)),
            Open::Map(map) => Some(Draft::Map(map)),
        }
    }

    fn begin(&mut self, inner: Open<'a>) -> (Open<'a>, &'a str) {
        (mem::replace(&mut self.open, inner), self.key)
    }

    fn end(&mut self, (open, key): (Open<'a>, &'a str)) {
        let inner = Drafts { open: mem::replace(&mut self.open, open), key: "" };
        self.key = key;
        if let Some(value) = inner.into_root() {
            self.put(value);
        }
    }
}

impl<'a> Target<'a> for Drafts<'a> {
    type Outer = (Open<'a>, &'a str);

    fn put(&mut self, value: Draft<'a>) {
        match &mut self.open {
            Open::Root(root) => *root = Some(value),
            Open::List(list) => list.push(value),
            Open::Map(map) => map.push((Cow::Borrowed(self.key), value)),
        }
    }

    fn begin_list(&mut self, length: usize) -> Self::Outer {
        self.begin(Open::List(Vec::with_capacity(length)))
    }

    fn end_list(&mut self, outer: Self::Outer) {
        self.end(outer);
    }

    fn begin_map(&mut self, length: usize) -> Self::Outer {
        self.begin(Open::Map(Vec::with_capacity(length)))
    }

    fn set_key(&mut self, key: &'a str) {
        self.key = key;
    }

    fn end_map(&mut self, outer: Self::Outer) {
        self.end(outer);
    }
}

/// Appends compact JSON.
pub struct JsonText<'o, 'a> {
    out: &'o mut Vec<u8>,
    /// Where the first element or member of the list or map begins.
    start: usize,
    key: Option<&'a str>,
}

impl<'o> JsonText<'o, '_> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        JsonText { out, start: usize::MAX, key: None }
    }

    /// What comes before a value.
    fn separate(&mut self) {
        if self.out.len() > self.start {
            self.out.push(b',');
        }
        if let Some(key) = self.key {
            write_str(key, self.out);
            self.out.push(b':');
        }
    }

    fn begin(&mut self, bracket: u8) -> usize {
        self.separate();
        self.out.push(bracket);
        self.key = None;
        mem::replace(&mut self.start, self.out.len())
    }

    fn end(&mut self, bracket: u8, outer: usize) {
        self.out.push(bracket);
        self.start = outer;
    }
}

impl<'a> Target<'a> for JsonText<'_, 'a> {
    type Outer = (usize, Option<&'a str>);

    fn put(&mut self, value: Draft<'a>) {
        self.separate();
        value.write(self.out);
    }

    fn begin_list(&mut self, _: usize) -> Self::Outer {
        let key = self.key;
        (self.begin(b'['), key)
    }

    fn end_list(&mut self, (start, key): Self::Outer) {
        self.end(b']', start);
        self.key = key;
    }

    fn begin_map(&mut self, _: usize) -> Self::Outer {
        let key = self.key;
        (self.begin(b'{'), key)
    }

    fn set_key(&mut self, key: &'a str) {
        self.key = Some(key);
    }

    fn end_map(&mut self, (start, key): Self::Outer) {
        self.end(b'}', start);
        self.key = key;
    }
}

/// Appends compact JSON, and adds the same values to the shape of the document.
pub struct ShapedText<'o, 'a, 's> {
    text: JsonText<'o, 'a>,
    shape: DocumentShape<'s>,
}

impl<'o, 's> ShapedText<'o, '_, 's> {
    pub fn new(out: &'o mut Vec<u8>, shape: DocumentShape<'s>) -> Self {
        ShapedText { text: JsonText::new(out), shape }
    }

    pub fn into_shape(self) -> DocumentShape<'s> {
        self.shape
    }

    /// The name of a value that is not left out.
    fn add_key(&mut self) {
        if let Some(key) = self.text.key {
            self.shape.key(key);
        }
    }
}

impl<'a> Target<'a> for ShapedText<'_, 'a, '_> {
    type Outer = (<JsonText<'static, 'a> as Target<'a>>::Outer, OuterShape);

    fn put(&mut self, value: Draft<'a>) {
        self.add_key();
        self.shape.add(&value);
        self.text.put(value);
    }

    fn begin_list(&mut self, length: usize) -> Self::Outer {
        self.add_key();
        (self.text.begin_list(length), self.shape.begin_list())
    }

    fn end_list(&mut self, (text, shape): Self::Outer) {
        self.text.end_list(text);
        self.shape.end(shape);
    }

    fn begin_map(&mut self, length: usize) -> Self::Outer {
        self.add_key();
        (self.text.begin_map(length), self.shape.begin_map())
    }

    fn set_key(&mut self, key: &'a str) {
        self.text.set_key(key);
    }

    fn end_map(&mut self, (text, shape): Self::Outer) {
        self.text.end_map(text);
        self.shape.end(shape);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../../tests/unit/engine_target.rs"]
mod tests;
