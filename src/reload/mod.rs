//! Hot reload: mapping files → a checked generation that replaces the serving one, or changes nothing.

pub mod embedded;
pub mod generation;
mod path_table;
mod pinned;
pub mod read_error;
mod reloader;
pub mod set_reader;
mod status;
pub mod supervisor;
pub mod watcher;

pub use generation::{Generation, InFlight};
pub use path_table::Target;
pub use pinned::NeedsRestart;
pub use reloader::{Cause, RejectedSet, ReloadOutcome, Reloader, read_set};
pub use set_reader::{Base, Layers};
