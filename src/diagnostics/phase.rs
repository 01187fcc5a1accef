//! How far a set gets on its way into use, in order. Every code belongs to one phase: see `code.rs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Bytes from the disk or the binary.
    Read,
    /// Text → YAML, JSON, lines.
    Parse,
    /// Every key, word and name means something.
    Compile,
    /// What is allowed, and hardly meant.
    Lint,
    /// Every frame, filled with witness values, against its schema.
    Prove,
    /// The tests beside the mappings.
    Test,
    /// The set's own transcripts, played through its routes.
    Rehearse,
}

impl Phase {
    pub const ALL: &'static [Phase] =
        &[Phase::Read, Phase::Parse, Phase::Compile, Phase::Lint, Phase::Prove, Phase::Test, Phase::Rehearse];

    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Parse => "parse",
            Phase::Compile => "compile",
            Phase::Lint => "lint",
            Phase::Prove => "prove",
            Phase::Test => "test",
            Phase::Rehearse => "rehearse",
        }
    }
}
