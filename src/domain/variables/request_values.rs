//! Values of a request that consist of several items or parts.

use super::{Record, Value};
use crate::domain::RoleNames;
use crate::domain::request_item::{Content, ContentPart, RequestItem};
use std::sync::Arc;

pub(super) fn request_items<'a>(roles: &'a RoleNames, items: &'a [Arc<RequestItem>]) -> Value<'a> {
    Value::list(items.iter().map(|item| Record::RequestItem(roles, item)))
}

pub(super) fn request_messages<'a>(
    roles: &'a RoleNames,
    messages: impl Iterator<Item = &'a [Arc<RequestItem>]>,
) -> Value<'a> {
    Value::list(messages.map(|items| Record::RequestMessage(roles, items)))
}

pub(super) fn request_parts<'a>(parts: impl IntoIterator<Item = &'a ContentPart>) -> Value<'a> {
    Value::list(parts.into_iter().map(Record::RequestPart))
}

pub(super) fn contents(items: &[Arc<RequestItem>]) -> impl Iterator<Item = &Content> {
    items.iter().filter_map(|item| item.content())
}
