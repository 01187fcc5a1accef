//! All diagnostic codes. A code is never reused; `tests/diagnostics/` has a fixture with the exact output of each.

use super::{Phase, Severity};

/// A page is `docs/CODE.md`, unless another file is named: the lint that reports the code.
macro_rules! page_source {
    ($code:literal) => {
        include_str!(concat!("docs/", $code, ".md"))
    };
    ($code:literal, $page:literal) => {
        include_str!(concat!("../mapping/lint/", $page))
    };
}

macro_rules! codes {
    ($($name:ident = $code:literal, $severity:ident, $phase:ident, $about:literal $(, $page:literal)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $about] $name),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code),* }
            }

            /// One sentence that describes the code. It is also the first line of its page.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => $about),* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity),* }
            }

            /// The loading phase that reports this code.
            pub fn phase(self) -> Phase {
                match self { $(Code::$name => Phase::$phase),* }
            }

            /// The file that contains the page of this code.
            pub(super) fn page_source(self) -> &'static str {
                match self { $(Code::$name => page_source!($code $(, $page)?)),* }
            }
        }
    };
}

codes! {
    Unreadable = "RF001", Error, Read, "a file of the set cannot be read";
    Syntax = "RF002", Error, Parse, "the text is not valid YAML (or, in schemas/, not valid JSON)";
    DuplicateKey = "RF003", Error, Parse, "a duplicate key in a map";
    LimitExceeded = "RF004", Error, Parse, "the file is too large, too deeply nested or expands too many aliases";
    UnknownKey = "RF010", Error, Compile, "an unknown key";
    MissingKey = "RF011", Error, Compile, "a required key is missing";
    WrongType = "RF012", Error, Compile, "a value of the wrong type";
    UnknownValue = "RF013", Error, Compile, "a value outside a closed list";
    DuplicateName = "RF014", Error, Compile, "two files, routes or models with the same name";
    UnknownReference = "RF020", Error, Compile, "an unknown backend, dialect, profile, script or transcript";
    BadSelector = "RF101", Error, Compile, "a selector that is not JSONPath";
    BadExpression = "RF102", Error, Compile, "an expression that does not parse";
    BadPlaceholder = "RF103", Error, Compile, "a placeholder that is unquoted, unclosed, empty, or optional inside text";
    UnknownVariable = "RF104", Error, Compile, "a variable that does not exist here";
    UnknownFilter = "RF105", Error, Compile, "a filter, test or function that does not exist";
    UnknownTable = "RF106", Error, Compile, "a table that does not exist";
    UnknownFragment = "RF107", Error, Compile, "a fragment that does not exist";
    FragmentCycle = "RF108", Error, Compile,
        "fragments that use each other, or backends that extend each other, in a cycle";
    BadDirective = "RF109", Error, Compile, "a directive that does not exist or is incomplete";
    PartialTable = "RF110", Error, Compile, "a table that does not cover all values of a closed list";
    PartialSwitch = "RF111", Error, Compile, "a `$switch` that does not cover all values of a closed list";
    UnknownEmit = "RF120", Error, Compile, "an event, item or content part that does not exist";
    UnknownField = "RF121", Error, Compile, "a field that an event, item or content part does not have";
    UnknownMoment = "RF122", Error, Compile, "a moment that does not exist";
    UnknownPolicy = "RF123", Error, Compile, "a policy that does not exist";
    BadPolicyValue = "RF124", Error, Compile, "a value that a policy does not have";
    BadOrder = "RF125", Error, Compile, "an order that is not a regular expression over moments";
    BadPatch = "RF126", Error, Compile, "a patch or a renaming of something that does not exist";
    BadFrame = "RF127", Error, Compile, "a frame without exactly one of `data:`, `text:` and `comment:`";
    BadSchema = "RF128", Error, Compile, "a schema that is missing or does not compile";
    BadTranscript = "RF129", Error, Parse, "a line of a transcript that cannot be replayed";
    UnsafeText = "RF130", Error, Compile, "a line break or an invalid character in an event name, comment or header";
    OpenSchema = "RF131", Warning, Compile, "an output schema with an object that allows undeclared members";
    InlineSecret = "RF132", Error, Compile, "a secret that is written into a mapping";
    TooManyVariants = "RF133", Error, Compile, "a route with too many variants";
    TooMuchWork = "RF134", Error, Compile, "a set that cannot be loaded within its limits of work and time";
    IndexLawBroken = "RF138", Error, Compile, "policies that break the index law of a dialect";
    FailedTest = "RF140", Error, Test, "a test that fails";
    TranscriptFailed = "RF141", Error, Replay, "a transcript that violates a schema or an order of a route";
    UnsatisfiableFrame = "RF142", Error, Verify, "a frame, body or error that violates its schema, or cannot be rendered, for a value that it can get";
    UnreachableRule = "RF201", Warning, Lint, "a rule that can never match", "unreachable_rule.rs";
    UnframedMoment = "RF202", Warning, Lint,
        "a moment in an order, or a failure, without a frame", "unframed_moment.rs";
    OrderNotGuaranteed = "RF203", Warning, Lint,
        "an order that a turn can violate under these policies", "order_not_guaranteed.rs";
    UnusedFragment = "RF204", Warning, Lint,
        "a fragment, a table or named rules that are never used", "unused_fragment.rs";
    TableWithoutDefault = "RF205", Warning, Lint,
        "a table over values that a backend or client sends, without `default:`", "table_without_default.rs";
    IneffectivePolicy = "RF206", Warning, Lint, "a policy that has no effect in this dialect", "ineffective_policy.rs";
    Loss = "RF207", Note, Lint, "a feature that is lost between a backend and a dialect", "loss.rs";
    UnservedDialect = "RF208", Note, Lint, "a dialect that no route serves", "unserved_dialect.rs";
    UnvalidatedDialect = "RF209", Warning, Lint, "a dialect without schemas", "unvalidated_dialect.rs";
    ChangedIndexLaw = "RF210", Note, Lint, "a profile that changes the index law of a dialect", "changed_index_law.rs";
    UnreadMember = "RF211", Warning, Lint, "a request member that clients may send and nothing reads", "unread_member.rs";
    UnmatchedScope = "RF212", Warning, Lint, "a scope of an API key that matches nothing", "unmatched_scope.rs";
}
