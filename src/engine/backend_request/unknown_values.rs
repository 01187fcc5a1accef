//! Words that the client's dialect does not define: forwarded if the backend may know them and its template reads them,
//! else rejected.

use crate::domain::{Fault, TurnRequest, UnknownValue};
use crate::engine::selector::Cursor;
use crate::mapping::config::backend_request::RequestFieldsRead;
use crate::mapping::config::capabilities::{Capabilities, OnUnknownValue};
use crate::mapping::config::dialect_request::RequestPlan;
use crate::mapping::language::field::FieldMapping;

pub fn check(
    request: &TurnRequest,
    reads: &RequestFieldsRead,
    capabilities: &Capabilities,
    client: &RequestPlan,
) -> Result<(), Fault> {
    let rejected = |unknown: &&UnknownValue| match capabilities.on_unknown_value() {
        OnUnknownValue::Reject => true,
        OnUnknownValue::Forward => !is_read(&unknown.param, request, reads, client),
    };
    request.unknown_values.iter().find(rejected).map_or(Ok(()), |unknown| Err(unknown.fault()))
}

/// Whether the template reads the field as the client sent it.
fn is_read(param: &str, request: &TurnRequest, reads: &RequestFieldsRead, client: &RequestPlan) -> bool {
    let cursor = Cursor::new(&request.raw);
    let sets = |read: &FieldMapping| read.selectors().iter().any(|selector| selector.param(&cursor) == param);
    if client.format.iter().any(sets) {
        return reads.unknown("format");
    }
    if client.tool_choice.iter().any(sets) {
        return reads.unknown("tool_choice");
    }
    if let Some(scalar) = client.scalars.iter().find(|read| sets(read)) {
        return reads.scalar(scalar.field.name);
    }
    let (member, name) = param.split_once('.').unwrap_or((param, ""));
    reads.nested(member, name)
}
