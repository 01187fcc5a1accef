//! Schema locations: the path of a document and a JSON pointer into it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is escaped in a URI: all characters that are not allowed in both a path and a fragment.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// The two parts of a reference like `chat/chunk.json#/$defs/choice`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SchemaLocation {
    pub(super) document: String,
    /// Empty for the whole document.
    pub(super) pointer: String,
}

/// The target of a `$ref`.
pub(super) enum Target {
    SchemaLocation(SchemaLocation),
    /// An `$anchor`, or a schema of the JSON Schema project: the validator resolves both.
    BuiltIn,
    /// A remote URL. Remote schemas are never fetched.
    Remote,
}

impl SchemaLocation {
    /// Parses a reference as written in mappings: the pointer is not percent-encoded.
    pub(super) fn parse(reference: &str) -> SchemaLocation {
        let (document, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        SchemaLocation { document: document.to_owned(), pointer: pointer.to_owned() }
    }

    /// Resolves a `$ref` of this document by RFC 3986.
    pub(super) fn follow(&self, reference: &str) -> Target {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let decode = |text| percent_decode_str(text).decode_utf8_lossy();
        let fragment = decode(fragment);
        let is_known = |site| path.starts_with(site);
        if ["https://json-schema.org/", "http://json-schema.org/"].into_iter().any(is_known) {
            return Target::BuiltIn;
        }
        if path.contains(':') || path.starts_with("//") {
            return Target::Remote;
        }
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Target::BuiltIn;
        }
        Target::SchemaLocation(SchemaLocation { document: self.sibling(&decode(path)), pointer: fragment.into_owned() })
    }

    /// The URI under which the location is registered with the validator.
    pub(super) fn uri(&self) -> String {
        let path = utf8_percent_encode(&self.document, ESCAPED);
        match self.pointer.as_str() {
            "" => format!("schema:///{path}"),
            pointer => format!("schema:///{path}#{}", utf8_percent_encode(pointer, ESCAPED)),
        }
    }

    /// The document and the pointer of a URI of the validator.
    pub(super) fn of_uri(uri: &str) -> Option<(String, String)> {
        let (path, pointer) = uri.strip_prefix("schema:///")?.split_once('#')?;
        let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some((decode(path), decode(pointer)))
    }

    pub(super) fn sibling(&self, path: &str) -> String {
        if path.is_empty() {
            return self.document.clone();
        }
        let mut steps: Vec<&str> = match path.starts_with('/') {
            true => Vec::new(),
            false => self.document.split('/').collect(),
        };
        steps.pop();
        for step in path.trim_start_matches('/').split('/') {
            match step {
                "." => {}
                ".." => {
                    steps.pop();
                }
                step => steps.push(step),
            }
        }
        steps.join("/")
    }
}
