//! The language of mapping files: selectors, conditions, rules, templates, expressions, skeletons.

pub mod cacheable;
pub mod condition;
pub mod directives;
pub mod expression;
pub mod expression_check;
pub mod expression_paths;
pub mod expression_tokens;
pub mod field;
pub mod field_schema;
pub mod items_sent;
pub mod read_paths;
pub mod rule;
pub mod rule_index;
pub mod rule_schema;
pub mod scope;
pub mod selector;
mod selector_limits;
pub mod skeleton;
pub mod skeleton_compiler;
pub mod state_read;
pub mod table;
pub mod template;
pub mod variables_read;
pub mod visitor;
