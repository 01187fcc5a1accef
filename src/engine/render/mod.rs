//! Skeletons filled with values: frames and bodies, pages, error envelopes, conditions, the steps of a script.

mod frame_cache;
mod interpreter;
mod scope;
mod value;

pub use super::script_step::choose;
pub use frame_cache::{Form, Marks, Place};
pub use interpreter::{RenderError, holds, render, render_whole};
pub use scope::Scope;
pub use value::Value;
