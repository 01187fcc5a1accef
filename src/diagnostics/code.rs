//! All diagnostic codes. A code is never reused; `tests/diagnostics/` has a fixture with the exact output of each.

use super::{Phase, Severity};

macro_rules! codes {
    ($($name:ident = $code:literal, $severity:ident, $phase:ident, $about:literal;)*) => {
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
        }
    };
}

codes! {
    Unreadable = "RF001", Error, Read, "a file of the set cannot be read";
    Syntax = "RF002", Error, Parse, "the text is not YAML (or, in schemas/, not JSON)";
    DuplicateKey = "RF003", Error, Parse, "a key stands twice in one map";
    LimitExceeded = "RF004", Error, Parse, "the file is too big, too deep or expands too many aliases";
    UnknownKey = "RF010", Error, Compile, "a key that nobody reads";
    MissingKey = "RF011", Error, Compile, "a key that must be there";
    WrongType = "RF012", Error, Compile, "a value of the wrong type";
    UnknownValue = "RF013", Error, Compile, "a word outside a closed list";
    DuplicateName = "RF014", Error, Compile, "two files, routes or models claim the same name";
    UnknownReference = "RF020", Error, Compile, "a backend, dialect, profile, script or transcript that does not exist";
    BadSelector = "RF101", Error, Compile, "a selector that is not JSONPath";
    BadExpression = "RF102", Error, Compile, "an expression that does not parse";
    BadPlaceholder = "RF103", Error, Compile, "a hole that has no quotes, is not closed, is empty, or is optional inside text";
    UnknownVariable = "RF104", Error, Compile, "a variable that does not exist here";
    UnknownFilter = "RF105", Error, Compile, "a filter, test or function that does not exist";
    UnknownTable = "RF106", Error, Compile, "a table that does not exist";
    UnknownFragment = "RF107", Error, Compile, "a named part that does not exist";
    FragmentCycle = "RF108", Error, Compile, "parts that use each other in a circle";
    BadDirective = "RF109", Error, Compile, "a directive that does not exist or lacks what it needs";
    PartialTable = "RF110", Error, Compile, "a table over a closed set that does not cover it";
    PartialSwitch = "RF111", Error, Compile, "a switch over a closed set that does not cover it";
    UnknownEmit = "RF120", Error, Compile, "an event, item or part that does not exist";
    UnknownField = "RF121", Error, Compile, "a field that an event, item or part does not have";
    UnknownMoment = "RF122", Error, Compile, "a moment that does not exist";
    UnknownPolicy = "RF123", Error, Compile, "a policy that does not exist";
    BadPolicyValue = "RF124", Error, Compile, "a value that a policy never has";
    BadOrder = "RF125", Error, Compile, "an order that is not a regular expression over moments";
    BadPatch = "RF126", Error, Compile, "a patch on something that does not exist";
    BadFrame = "RF127", Error, Compile, "a frame that says nothing, or too much";
    BadSchema = "RF128", Error, Compile, "a schema that is missing or does not compile";
    BadTranscript = "RF129", Error, Parse, "a line of a transcript that cannot be played";
    UnsafeText = "RF130", Error, Compile, "a line break or a foreign sign in an event name, a comment or a header";
    OpenSchema = "RF131", Warning, Compile, "a schema of what leaves that lets members pass which nobody declared";
    InlineSecret = "RF132", Error, Compile, "a key that stands in a mapping";
    TooManyVariants = "RF133", Error, Compile, "a route whose clients can choose among too many variants";
    FailedTest = "RF140", Error, Test, "a test beside a mapping does not hold";
    TranscriptFailed = "RF141", Error, Replay, "a transcript of the set, played through a route, breaks a schema or an order";
    UnsatisfiableFrame = "RF142", Error, Verify, "a frame, body or error that no values can make satisfy its schema";
    UnreachableRule = "RF201", Warning, Lint, "a rule that can never hold";
    UnframedMoment = "RF202", Warning, Lint, "a moment that has a place in an order, or a failure, and no frame that tells it";
    OrderNotGuaranteed = "RF203", Warning, Lint, "an order that a turn can violate under these policies";
    UnusedFragment = "RF204", Warning, Lint, "a part, a table or named rules that nobody uses";
    TableWithoutDefault = "RF205", Warning, Lint, "a table over words of others that has no `default:`";
    IneffectivePolicy = "RF206", Warning, Lint, "a policy that changes nothing in this dialect";
    Loss = "RF207", Note, Lint, "what a backend can say and a dialect cannot, or a dialect's request can ask and a backend does not take";
}
