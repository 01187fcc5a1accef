//! Where a secret is read from. The secret itself is never part of a plan.

use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::grammar::notation::notation_schema;
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::yaml::Node;

/// The location of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SecretSource {
    Env(String),
    File(String),
}

section! {
    /// Where a secret is stored: exactly one of the two. A secret is never written into a mapping.
    #[subject = "a secret"]
    #[exactly_one("env", "file")]
    pub struct SecretLocation {
        /// The name of an environment variable.
        env: Option<String>,
        /// The path of a file that contains it.
        file: Option<String>,
    }
}

impl<'n> FromNode<'n> for SecretSource {
    fn from_node(node: &'n Node, at: At) -> Option<SecretSource> {
        if node.as_text().is_some() {
            at.cx.add(
                Diagnostic::new(Code::InlineSecret, node.span, "secrets must not be written in a mapping")
                    .help("refer to it with `{ env: NAME }` or `{ file: PATH }`"),
            );
            return None;
        }
        let location = SecretLocation::from_node(node, at)?;
        location.env.map(SecretSource::Env).or(location.file.map(SecretSource::File))
    }
}

notation_schema!(SecretSource, |generator| generator.subschema_for::<SecretLocation>());
