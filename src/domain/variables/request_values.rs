//! Values of a request that consist of several items or parts.

use super::{Record, Value};
use crate::domain::RoleNames;
use crate::domain::request_item::{Content, ContentPart, RequestItem, Tool};
use std::ops::Range;
use std::sync::Arc;

/// Several records of a request, made one by one when they are read: most lists are only tested for being empty.
#[derive(Clone, Copy, Debug)]
pub enum RequestRecords<'a> {
    Tools(&'a [Arc<Tool>]),
    Items(&'a RoleNames, &'a [Arc<RequestItem>]),
    /// Each is a range of the items.
    Messages(&'a RoleNames, &'a [Arc<RequestItem>], &'a [Range<usize>]),
    Parts(&'a [ContentPart]),
}

impl<'a> RequestRecords<'a> {
    pub fn len(self) -> usize {
        match self {
            RequestRecords::Tools(tools) => tools.len(),
            RequestRecords::Items(_, items) => items.len(),
            RequestRecords::Messages(_, _, ranges) => ranges.len(),
            RequestRecords::Parts(parts) => parts.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn get(self, at: usize) -> Option<Record<'a>> {
        Some(match self {
            RequestRecords::Tools(tools) => Record::Tool(tools.get(at)?),
            RequestRecords::Items(roles, items) => Record::RequestItem(roles, items.get(at)?),
            RequestRecords::Messages(roles, items, ranges) => {
                Record::RequestMessage(roles, items.get(ranges.get(at)?.clone())?)
            }
            RequestRecords::Parts(parts) => Record::RequestPart(parts.get(at)?),
        })
    }
}

impl<'a> From<RequestRecords<'a>> for Value<'a> {
    fn from(records: RequestRecords<'a>) -> Value<'a> {
        Value::RequestRecords(records)
    }
}

/// The parts of all items of a message.
pub(super) fn message_parts(items: &[Arc<RequestItem>]) -> Value<'_> {
    let mut with_parts = contents(items).map(|content| &content.parts[..]).filter(|parts| !parts.is_empty());
    let first = with_parts.next().unwrap_or_default();
    match with_parts.next() {
        None => RequestRecords::Parts(first).into(),
        Some(second) => Value::list([first, second].into_iter().chain(with_parts).flatten().map(Record::RequestPart)),
    }
}

pub(super) fn contents(items: &[Arc<RequestItem>]) -> impl Iterator<Item = &Content> {
    items.iter().filter_map(|item| item.content())
}
