//! The phases of loading a mapping set, in order. Every code belongs to one phase: see `code.rs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Files are read from disk or from the binary.
    Read,
    /// Text becomes YAML, JSON or transcript lines.
    Parse,
    /// Every key, value and reference is resolved.
    Compile,
    /// Valid but probably unintended.
    Lint,
    /// Every frame is rendered with witness values and checked against its schema.
    Verify,
    /// The `*.test.yaml` files of the set.
    Test,
    /// The transcripts of the set are replayed through its routes.
    Replay,
}

impl Phase {
    pub const ALL: &'static [Phase] =
        &[Phase::Read, Phase::Parse, Phase::Compile, Phase::Lint, Phase::Verify, Phase::Test, Phase::Replay];

    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Parse => "parse",
            Phase::Compile => "compile",
            Phase::Lint => "lint",
            Phase::Verify => "verify",
            Phase::Test => "test",
            Phase::Replay => "replay",
        }
    }
}
