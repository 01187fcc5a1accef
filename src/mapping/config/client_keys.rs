//! `api_keys:` and `auth:` of gateway.yaml: the API keys of clients, where they are sent, and what each allows.

use super::secret::SecretSource;
use crate::domain::named_enum;
use crate::mapping::grammar::collections::List;
use crate::mapping::grammar::notation::{HeaderName, PositiveCount, notation_schema, text_notation};
use crate::mapping::grammar::section;

named_enum! {
    /// How clients authenticate. `keys`: with an API key; if none is set, only local requests are accepted.
    pub enum Auth {
        Keys = "keys",
        None = "none",
    }
}

section! {
    /// An API key of clients.
    #[derive(PartialEq, Eq)]
    #[subject = "a client's API key"]
    #[title = "API key"]
    pub struct ClientKey {
        /// The name of the key in logs.
        name: String,
        /// Where the key is stored.
        secret: SecretSource,
        /// The headers in which clients may send it: as `Bearer KEY` in `authorization`, as it is in others.
        headers: List<HeaderName> = List(vec![HeaderName("authorization".to_owned())]),
        /// The parameter of the query in which clients may send it. Default: none.
        query: Option<String>,
        /// The models that it allows: names, or prefixes before `*`. All others do not exist for its clients. Default: all.
        models: List<NamePattern> = List(vec![NamePattern("*".to_owned())]),
        /// The paths that it allows, or prefixes of paths before `*`; requests to others are a 403. Default: all.
        routes: List<NamePattern> = List(vec![NamePattern("*".to_owned())]),
        /// Limits of the clients of this key.
        limits: KeyLimits = KeyLimits::default(),
    }
}

section! {
    /// Limits of the clients of one API key.
    #[derive(Copy, PartialEq, Eq)]
    #[subject = "`limits:` of an API key"]
    pub struct KeyLimits: Default {
        /// The number of its turns in flight; more are rejected with 429. Default: `streams_per_client` of the gateway.
        streams: Option<PositiveCount>,
        /// The requests that they may send in a minute. Default: `requests_per_minute` of the gateway.
        requests_per_minute: Option<PositiveCount>,
        /// The tokens that they may use in a minute. Default: `tokens_per_minute` of the gateway.
        tokens_per_minute: Option<PositiveCount>,
    }
}

text_notation! {
    /// A name, or a prefix before `*`.
    NamePattern(String), |text, _node, _at| Some(text.to_owned())
}
notation_schema!(NamePattern, { "type": "string", "minLength": 1 });

impl NamePattern {
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.0,
        }
    }
}

impl ClientKey {
    pub fn allows_model(&self, name: &str) -> bool {
        self.models.iter().any(|pattern| pattern.matches(name))
    }

    pub fn allows_path(&self, path: &str) -> bool {
        self.routes.iter().any(|pattern| pattern.matches(path))
    }
}
