//! Skeletons filled with values: frames and bodies, pages, error envelopes, conditions.

mod form;
mod render;
mod scope;
mod value;

pub use form::{Form, Marks, Place};
pub use render::{RenderError, holds, render, render_whole};
pub use scope::Scope;
pub use value::Value;
