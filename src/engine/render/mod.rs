//! Renders skeletons with values (frames, bodies, static routes, error envelopes) and evaluates conditions.

mod conditions;
mod frame_cache;
mod interpreter;
mod scope;
mod target;

pub use crate::domain::variables::Value;
pub use conditions::is_true;
pub use frame_cache::{CacheKey, CachedFrame, Markers};
pub use interpreter::{RenderError, draft, render, render_if_complete, write, write_known};
pub use scope::Scope;
