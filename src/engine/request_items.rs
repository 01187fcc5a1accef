//! What the rules of a dialect's `request:` emitted → the items of the request.

use crate::domain::request_item::{Content, RequestItem};
use crate::engine::rules::Emission;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The items of a request. Ids of calls are made unique, and results get the name and kind of their call.
pub fn items(emissions: Vec<Emission>) -> Vec<Arc<RequestItem>> {
    let mut items: Vec<RequestItem> = emissions.into_iter().filter_map(item).collect();
    if items.iter().all(|item| item.tool().is_none()) {
        return items.into_iter().map(Arc::new).collect();
    }
    make_call_ids_unique(&mut items);
    let mut tools = HashMap::new();
    for call in items.iter().filter_map(RequestItem::call) {
        tools.entry(call.id.clone()).or_insert(call.tool.clone());
    }
    for item in &mut items {
        if let RequestItem::Result { call_id, tool, .. } = item {
            tool.0 = tools.get(call_id).cloned().unwrap_or_default();
        }
    }
    items.into_iter().map(Arc::new).collect()
}

fn item(emission: Emission) -> Option<RequestItem> {
    let mut item = RequestItem::from_emission(emission.name, emission.fields)?;
    if let Some(content) = item.content_mut() {
        match emission.parts {
            Some(parts) => content.parts = parts,
            None if content.parts.is_empty() => *content = Content::from(String::new()),
            None => {}
        }
    }
    if item.is_instruction()
        && let Some(content) = item.content_mut()
    {
        content.separate_paragraphs();
    }
    Some(item)
}

/// Some clients use the function's name as the id of a call, so a second call of it gets a suffix. Results are assigned
/// to the calls of their id in order.
fn make_call_ids_unique(items: &mut [RequestItem]) {
    // By the client's id: the unique ids of its calls that have no result yet, and the next suffix to try.
    let mut calls: HashMap<String, (VecDeque<String>, usize)> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for item in items {
        match item {
            RequestItem::Call { call } => {
                let id = call.id.clone().unwrap_or_default();
                let (open, next) = calls.entry(id.clone()).or_insert((VecDeque::new(), 2));
                let mut unique = id.clone();
                while !taken.insert(unique.clone()) {
                    unique = format!("{id}_{next}");
                    *next += 1;
                }
                if unique != id {
                    call.id = Some(unique.clone());
                }
                open.push_back(unique);
            }
            RequestItem::Result { call_id, .. } => {
                let id = call_id.as_deref().unwrap_or_default();
                if let Some(unique) = calls.get_mut(id).and_then(|(open, _)| open.pop_front()) {
                    *call_id = Some(unique);
                }
            }
            RequestItem::Message { .. } | RequestItem::Reasoning { .. } | RequestItem::Other { .. } => {}
        }
    }
}
