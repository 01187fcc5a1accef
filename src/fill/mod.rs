//! Skeletons filled with values: frames and bodies, pages, error envelopes, conditions, the steps of a script.

mod form;
mod render;
mod scope;
mod step;
mod value;

pub use form::{Form, Marks, Place};
pub use render::{RenderError, holds, render, render_whole};
pub use scope::Scope;
pub use step::choose;
pub use value::Value;
