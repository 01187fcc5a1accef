//! Which call a delta belongs to.
//!
//! A delta belongs to the call with its id, unless key or name contradict that, or it has a name and the arguments of
//! that call are complete: some backends repeat ids. A new id starts a new call. A delta without an id belongs to the
//! call with its key; without a key, to the last open call. With `calls_by: key`, ids are ignored.

use super::Turn;
use super::tool_calls::{CallIdent, CallState};
use crate::domain::{CallIdentity, Delta};

impl CallIdent {
    pub(super) fn heap_bytes(&self) -> usize {
        [&self.key, &self.id, &self.name, &self.literal].into_iter().flatten().map(String::len).sum()
    }

    /// Adds what is not known yet.
    pub(super) fn merge(&mut self, other: CallIdent) {
        self.key = self.key.take().or(other.key);
        self.id = self.id.take().or(other.id);
        self.name = self.name.take().or(other.name);
        self.kind = self.kind.take().or(other.kind);
        self.legacy |= other.legacy;
        self.literal = self.literal.take().or(other.literal);
    }

    /// Whether both have a key, or a name, and these differ.
    fn contradicts(&self, other: &CallIdent) -> bool {
        differ(&self.key, &other.key) || differ(&self.name, &other.name)
    }
}

fn differ(one: &Option<String>, other: &Option<String>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

impl Turn {
    /// `None`: the delta begins a new call.
    pub(super) fn find_call(
        &self,
        choice: usize,
        ident: &CallIdent,
        by: CallIdentity,
        delta: Option<&Delta>,
    ) -> Option<usize> {
        let calls = &self.choices[choice].calls;
        let by_key = by == CallIdentity::Key && ident.key.is_some();
        if ident.id.is_some() && !by_key {
            let is_same = |call: &CallState| call.ident.id == ident.id && !call.ident.contradicts(ident);
            if let Some(found) = calls.iter().rposition(is_same) {
                // A snapshot may have the same arguments in another spelling.
                let may_be_new = ident.key.is_none() && !matches!(delta, Some(Delta::Snapshot(_)));
                return (!may_be_new || !calls[found].is_before(ident, delta)).then_some(found);
            }
            // A new id starts a new call even if the key was used before, unless the call with that key has no id yet.
            let has_no_id = |call: &CallState| !call.closed && call.item.is_none() && call.ident.id.is_none();
            return calls.iter().rposition(|call| {
                has_no_id(call) && ident.key.is_some() && call.ident.key == ident.key && !call.ident.contradicts(ident)
            });
        }
        if ident.key.is_some() {
            let found = calls.iter().rposition(|call| call.ident.key == ident.key)?;
            // A key that is reused with a name after its call was closed starts a new call.
            let is_reused = calls[found].closed && ident.name.is_some();
            return (!is_reused && !calls[found].ident.contradicts(ident)).then_some(found);
        }
        let last = calls.iter().rposition(|call| !call.closed)?;
        let is_new = calls[last].ident.contradicts(ident) || calls[last].is_before(ident, delta);
        (!is_new).then_some(last)
    }
}

impl CallState {
    /// Whether its arguments are complete, and this is the first delta of another call: it has a name and arguments.
    fn is_before(&self, ident: &CallIdent, delta: Option<&Delta>) -> bool {
        let has_more = match delta {
            None => false,
            Some(Delta::Append(text)) => !text.trim().is_empty(),
            Some(Delta::AppendSurrogates(_)) => true,
            Some(Delta::Snapshot(text)) => !text.starts_with(&self.received) && !self.received.starts_with(&**text),
        };
        has_more && ident.name.is_some() && self.progress.is_complete()
    }
}
