//! Token usage.

use super::emit::{EmitField, EmitSpec, EmittedFields, specs};
use super::named_enum;

named_enum! {
    /// How a later usage report is combined with an earlier one.
    pub enum Merge {
        Replace = "replace",
        Add = "add",
        Max = "max",
    }
}

/// Declares the token counts, each once.
macro_rules! counts {
    ($($count:ident),* $(,)?) => {
        /// Token counts as far as they are known. Unknown counts are absent, not zero.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Usage {
            $(pub $count: Option<u64>,)*
        }

        impl Usage {
            pub const ZERO: Usage = Usage { $($count: Some(0)),* };

            pub fn merge(&mut self, later: Usage, how: Merge) {
                $(self.$count = merged(self.$count, later.$count, how);)*
            }
        }

        impl EmitField for Usage {
            const SPEC: EmitSpec = EmitSpec::Group(specs!($($count: u64),*));

            fn take(_: &str, fields: &mut EmittedFields) -> Option<Usage> {
                Some(Usage { $($count: u64::take(stringify!($count), fields)),* })
            }
        }
    };
}

counts! { input, output, total, cached, cache_write, reasoning }

impl Usage {
    /// The reported total, otherwise the sum of input and output, as far as it is an integer of JSON schemas.
    pub fn total(&self) -> u64 {
        let total = self.total.unwrap_or_else(|| self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0)));
        total.min(i64::MAX as u64)
    }

    pub fn is_known(&self) -> bool {
        *self != Usage::default()
    }
}

fn merged(old: Option<u64>, new: Option<u64>, how: Merge) -> Option<u64> {
    match (old, new) {
        (Some(old), Some(new)) => Some(match how {
            Merge::Replace => new,
            Merge::Add => old.saturating_add(new),
            Merge::Max => old.max(new),
        }),
        (old, new) => new.or(old),
    }
}
