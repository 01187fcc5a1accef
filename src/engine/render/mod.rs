//! Renders skeletons with values (frames, bodies, static routes, error envelopes) and evaluates conditions.

mod frame_cache;
mod interpreter;
mod scope;
mod writer;

pub use crate::domain::variables::Value;
pub use frame_cache::{CacheKey, CachedFrame, Markers};
pub use interpreter::{RenderError, draft, is_true, render, render_if_complete};
pub use scope::Scope;
pub use writer::write;
