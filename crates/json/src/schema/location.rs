//! Schema locations: the path of a document and a JSON pointer into it.

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
        let fragment = percent_decode(fragment);
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
        Target::SchemaLocation(SchemaLocation { document: self.sibling(&percent_decode(path)), pointer: fragment })
    }

    /// The URI under which the location is registered with the validator.
    pub(super) fn uri(&self) -> String {
        let path = percent_encode(&self.document);
        match self.pointer.as_str() {
            "" => format!("schema:///{path}"),
            pointer => format!("schema:///{path}#{}", percent_encode(pointer)),
        }
    }

    fn sibling(&self, path: &str) -> String {
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

/// Escapes all characters that are not allowed in both a path and a fragment.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn percent_decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%');
        let byte = hex.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = if byte.is_some() { &tail[2..] } else { tail };
        decoded.push(byte.unwrap_or(*first));
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
