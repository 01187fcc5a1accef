//! shared.yaml: tables and fragments for every file of the set.

use crate::mapping::grammar::collections::{Entries, Map};
use crate::mapping::grammar::section;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::table::TableNode;

section! {
    /// Tables and fragments for every file of the set. A table or fragment of the same name in the file itself takes
    /// precedence.
    #[subject = "shared.yaml"]
    #[title = "shared.yaml"]
    #[extend("type" = ["null", "object"])]
    pub struct Shared<'n> {
        /// Tables, by name.
        tables: Entries<'n, Map<TableNode>> = Entries::default(),
        /// Fragments, by name: skeletons for `$use`.
        fragments: Entries<'n, Map<SkeletonNode<'n>>> = Entries::default(),
    }
}
