//! What the integration tests and benches use of the library, by module. Not a public API: it changes without notice.

pub mod fuzz;

pub mod capture {
    pub use crate::capture::{ValidationReport, fit, read, validate};
}
pub mod cli {
    pub mod check {
        pub use crate::cli::check::report;
    }
}
pub mod diagnostics {
    pub use crate::diagnostics::{Code, CodePage, Diagnostic, FileId, Findings, Phase, Sources, render_all};
}
pub mod domain {
    pub use crate::domain::{
        Annotation, AnnotationKind, CallIdentity, CallKind, Delta, Derived, Event, Fault, FaultKind, Finish, Frame,
        FrameBody, IndexLaw, ItemKind, Merge, Moment, MomentKind, Policies, ReasoningKind, RoleNames, Scope, SentItems,
        StreamEnd, StreamFormat, ToolAliases, Tree, TurnRequest, TurnState, Usage, WorkBudget,
    };
    pub mod emit {
        pub use crate::domain::emit::{
            DeltaKind, EVENTS, FORMAT, ITEMS, OBSERVATIONS, PARTS, SCALARS, TOOL_CHOICE, TOOLS,
        };
    }
    pub mod policy {
        pub use crate::domain::policy::{ALIASES, BUILT_IN, ItemsOverlap, OutputIndex, PolicySpec, ReasoningPolicy};
    }
    pub mod variables {
        pub use crate::domain::variables::{Record, RecordType, Value};
    }
}
pub mod engine {
    pub mod backend_request {
        pub use crate::engine::backend_request::prepare;
    }
    pub mod conversation {
        pub use crate::engine::conversation::{prepare, preview};
    }
    pub mod decode {
        pub use crate::engine::decode::{decode_event, unread_members};
    }
    pub mod encode {
        pub use crate::engine::encode::error;
    }
    pub mod event_cache {
        pub use crate::engine::event_cache::{DeltaEvent, EventCache, SharedShapes};
    }
    pub mod pipeline {
        pub use crate::engine::pipeline::{Observer, Pipeline, RenderMode, ResponseMode, TraceEvent, TurnSpec};
    }
    pub mod unread {
        pub use crate::engine::unread::ReadRecord;
    }
    pub mod emission_budget {
        pub use crate::engine::emission_budget::{Cancelled, EmissionBudget};
    }
    pub mod request {
        pub use crate::engine::request::{RequestLimits, read, read_tree, read_within};
    }
    pub mod script_step {
        pub use crate::engine::script_step::select_transcript;
    }
    pub mod sse {
        pub use crate::engine::sse::write;
    }
}
pub mod mapping {
    pub use crate::mapping::{
        Before, CheckedSet, Overrides, Plan, SourceFile, load, load_after, load_with, load_within,
    };
    pub mod config {
        pub mod backend {
            pub use crate::mapping::config::backend::{BackendPlan, Framing, Transport, Unmatched};
        }
        pub mod capabilities {
            pub use crate::mapping::config::capabilities::{OnUnsupported, StreamMode, SystemMessages};
        }
        pub mod dialect {
            pub use crate::mapping::config::dialect::DialectPlan;
        }
        pub mod dialect_request {
            pub use crate::mapping::config::dialect_request::RequiredType;
        }
        pub mod gateway {
            pub use crate::mapping::config::client_keys::Auth;
            pub use crate::mapping::config::gateway::Validation;
        }
        pub mod transcript {
            pub use crate::mapping::config::transcript::{RecordedEvent, Transcript, TranscriptLine, parse};
        }
    }
    pub mod language {
        pub mod field {
            pub use crate::mapping::language::field::Conversion;
        }
    }
    pub mod source {
        pub mod field_reader {
            pub use crate::mapping::source::field_reader::{LoadContext, constant};
        }
        pub mod yaml {
            pub use crate::mapping::source::yaml::{Node, parse};
        }
    }
    pub mod spec {
        pub use crate::mapping::spec::{FILE_KINDS, FileKind};
    }
}
pub mod order {
    pub mod turn_model {
        pub use crate::order::turn_model::{ChoiceCount, OutputKinds, TurnModel};
    }
}
pub mod reload {
    pub use crate::reload::supervisor::Supervisor;
    pub use crate::reload::{Base, Layers, read_set};
    pub mod embedded {
        pub use crate::reload::embedded::files;
    }
    pub mod generation {
        pub use crate::reload::generation::build;
    }
}
pub mod turn {
    pub use crate::turn::{Ids, Turn};
}
pub mod upstream {
    pub mod decode {
        pub use crate::upstream::decode::{Decoder, DecoderOutput, EventTooLarge};
    }
    pub mod secrets {
        pub use crate::upstream::secrets::Secret;
    }
}
pub mod verify {
    pub use crate::verify::{TestSuite, check_witnesses, run, suites, test_turn_spec, verify, verify_within};
}
