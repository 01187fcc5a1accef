//! Finds metadata inside a line of text: a known key with `:` or `=` that is not at the beginning, as in
//! `Done. session_id: 7`.

/// What of a line was searched and sent.
#[derive(Clone, Debug, Default)]
pub struct LineSearch {
    start: Start,
    /// The last character.
    last: Option<char>,
    /// The last character that is no space.
    last_visible: Option<char>,
    quotes: usize,
}

/// How the line begins: a line with a key of its own, such as `Note: …`, is no metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Start {
    #[default]
    Word,
    SpaceAfterWord,
    Other,
    /// The line has a key: nothing else in it is searched.
    Key,
}

/// What is found in the next text of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No metadata.
    Text,
    /// Metadata begins at this byte.
    Metadata(usize),
    /// At this byte, metadata may begin.
    Undecided(usize),
}

impl LineSearch {
    /// Searches the next text of the line. What is undecided is passed again, with what follows it.
    pub fn find<'k>(&mut self, text: &str, keys: impl Iterator<Item = &'k str> + Clone) -> Found {
        for (at, c) in text.char_indices() {
            if self.start == Start::Key {
                break;
            }
            let is_inside_word = self.last.is_some_and(is_word);
            if !is_inside_word && (is_word(c) || is_quote(c)) {
                match keys.clone().map(|key| token(&text[at..], key)).max() {
                    Some(Token::Whole) => return Found::Metadata(at),
                    Some(Token::Beginning) => return Found::Undecided(at),
                    Some(Token::None) | None => {}
                }
            }
            self.pass(c);
        }
        Found::Text
    }

    fn pass(&mut self, c: char) {
        let ends_key = match c {
            ':' => self.last_visible == Some('"') && self.quotes > 1 || self.begins_with_word(),
            '=' => self.begins_with_word(),
            _ => false,
        };
        self.start = match self.start {
            _ if ends_key => Start::Key,
            // Spaces before the word.
            Start::Word if c.is_whitespace() && self.last_visible.is_none() => Start::Word,
            Start::Word if c.is_whitespace() => Start::SpaceAfterWord,
            Start::Word if is_word(c) || is_quote(c) || c == '.' => Start::Word,
            Start::SpaceAfterWord if c.is_whitespace() => Start::SpaceAfterWord,
            Start::Key => Start::Key,
            Start::Word | Start::SpaceAfterWord | Start::Other => Start::Other,
        };
        self.quotes += usize::from(c == '"');
        self.last = Some(c);
        if !c.is_whitespace() {
            self.last_visible = Some(c);
        }
    }

    fn begins_with_word(&self) -> bool {
        matches!(self.start, Start::Word | Start::SpaceAfterWord) && self.last_visible.is_some()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    None,
    Beginning,
    Whole,
}

/// Whether the text begins with the key, in quotes or without them, and `:` or `=`.
fn token(text: &str, key: &str) -> Token {
    let mut text = text.chars().peekable();
    if text.peek().is_some_and(|c| is_quote(*c)) {
        text.next();
    }
    for expected in key.chars() {
        match text.next() {
            None => return Token::Beginning,
            Some(c) if c.to_lowercase().eq([expected]) => {}
            Some(_) => return Token::None,
        }
    }
    let next = text.next();
    let next = if next.is_some_and(is_quote) { text.next() } else { next };
    match next {
        None => Token::Beginning,
        Some(':' | '=') => Token::Whole,
        Some(_) => Token::None,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}
