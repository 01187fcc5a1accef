//! Source files, spans in them, and lines and columns.

use std::sync::Arc;

/// The file of the set that a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// For diagnostics about the set as a whole.
    pub const NOWHERE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end.max(start) as u32 }
    }
}

/// Line and column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug)]
pub struct Source {
    /// The name inside the set: `dialects/chat.yaml`.
    pub name: String,
    /// The path to display: `mappings/dialects/chat.yaml`.
    pub shown: String,
    /// 0 for the base of the set, else the position of its folder among the added ones.
    pub layer: usize,
    pub text: Arc<str>,
}

impl Source {
    /// The folder of its layer, as the user knows it: `(embedded) mappings`, `examples/parrot`.
    pub fn layer_name(&self) -> &str {
        match self.shown.strip_suffix(self.name.as_str()).map(|folder| folder.trim_end_matches('/')) {
            Some("") => ".",
            Some(folder) => folder,
            None => &self.shown,
        }
    }
}

/// The texts of all files of a set, kept so that any span can be displayed.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    pub fn add(&mut self, name: impl Into<String>, shown: impl Into<String>, text: Arc<str>) -> FileId {
        self.add_to_layer(0, name, shown, text)
    }

    pub fn add_to_layer(
        &mut self,
        layer: usize,
        name: impl Into<String>,
        shown: impl Into<String>,
        text: Arc<str>,
    ) -> FileId {
        self.files.push(Source { name: name.into(), shown: shown.into(), layer, text });
        FileId((self.files.len() - 1) as u32)
    }

    /// The layer that a span belongs to.
    pub fn layer(&self, span: Span) -> usize {
        self.get(span.file).map_or(0, |source| source.layer)
    }

    /// The last layer that has a file.
    pub fn last_layer(&self) -> usize {
        self.files.iter().map(|source| source.layer).max().unwrap_or_default()
    }

    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.files.iter().enumerate().map(|(i, s)| (FileId(i as u32), s))
    }

    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).and_then(|s| s.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    pub fn location(&self, span: Span) -> SourceLocation {
        let text = self.get(span.file).map(|s| &*s.text).unwrap_or("");
        let before = text.get(..span.start as usize).unwrap_or(text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        SourceLocation { line, column }
    }

    /// The location after the last character of `span`.
    pub fn end_location(&self, span: Span) -> SourceLocation {
        self.location(Span { start: span.end, ..span })
    }

    /// `mappings/dialects/chat.yaml:10:69`
    pub fn show(&self, span: Span) -> String {
        let location = self.location(span);
        let file = self.get(span.file).map(|s| s.shown.as_str()).unwrap_or("?");
        format!("{file}:{}:{}", location.line, location.column)
    }

    /// `chat:10`: short enough for a table of rules.
    pub fn show_short(&self, span: Span) -> String {
        let name = self.get(span.file).map(|s| s.name.as_str()).unwrap_or("?");
        let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".yaml");
        format!("{stem}:{}", self.location(span).line)
    }

    /// The part of `span` that reads `needle`, so that the carets underline that word only: `id` is found in `{{ id
    /// }}`, not in `{{ item.id }}`. Returns `span` if the word is not found, for example because it is written with an
    /// escape.
    pub fn within(&self, span: Span, needle: &str) -> Span {
        let text = self.text(span);
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        let is_word = |at: &usize| {
            let (before, after) = (&text[..*at], &text[at + needle.len()..]);
            let quoted = ['\'', '"'].iter().any(|q| before.ends_with(*q) && after.starts_with(*q));
            !before.ends_with(|c: char| inside(c) || c == '.') && !after.starts_with(inside) && !quoted
        };
        let mut found = text.match_indices(needle).map(|(at, _)| at);
        match found.clone().find(is_word).or_else(|| found.next()) {
            Some(at) if !needle.is_empty() => {
                let start = span.start as usize + at;
                Span::new(span.file, start, start + needle.len())
            }
            _ => span,
        }
    }
}
