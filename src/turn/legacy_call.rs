//! Calls in a legacy form (`function_call` of a chat backend). Some backends send a call in both forms, so a legacy call
//! waits until the finish, and is used only if the choice has no other call.

use super::tool_calls::CallIdent;
use super::{OnMoment, Turn, deltas};
use crate::domain::policy::LegacyFunctionCall;
use crate::domain::{CallIdentity, CallKind, Delta, Finish};

#[derive(Debug, Default)]
pub(super) struct LegacyCall {
    ident: CallIdent,
    arguments: String,
    pending_surrogate: Option<u16>,
}

impl CallIdent {
    /// A custom call has no legacy form.
    pub(super) fn is_legacy(&self) -> bool {
        self.legacy && self.kind != Some(CallKind::Custom)
    }
}

impl Turn {
    /// A choice has at most one legacy call, so every delta belongs to it.
    pub(super) fn legacy_call(
        &mut self,
        choice: usize,
        ident: CallIdent,
        delta: Option<Delta>,
        on_moment: &mut OnMoment,
    ) {
        if self.is_late(choice) || !self.ensure_choice(choice, on_moment) {
            return;
        }
        let call = self.choices[choice].legacy_call.get_or_insert_default();
        let delta = delta.map(|delta| deltas::join_surrogates(&mut call.pending_surrogate, delta));
        let text = delta.map(|delta| deltas::new_suffix(delta, || call.arguments.as_str())).unwrap_or_default();
        call.arguments.push_str(&text);
        let known = call.ident.heap_bytes();
        call.ident.merge(ident);
        let size = text.len() + call.ident.heap_bytes() - known;
        self.charge(size, on_moment);
    }

    /// At the finish of a choice.
    pub(super) fn use_legacy_call(&mut self, choice: usize, on_moment: &mut OnMoment) {
        let Some(LegacyCall { ident, arguments, .. }) = self.choices[choice].legacy_call.take() else { return };
        self.release(arguments.len() + ident.heap_bytes());
        if !self.has_calls(choice) {
            let legacy = self.policies.legacy_function_call == LegacyFunctionCall::Preserve;
            let ident = CallIdent { legacy, ..ident };
            self.tool(choice, ident, CallIdentity::Id, Some(Delta::Append(arguments)), on_moment);
        }
    }

    /// The finish reason of a choice with calls.
    pub(super) fn finish_of_calls(&self, choice: usize) -> Finish {
        match self.choices[choice].calls.iter().any(|call| call.ident.is_legacy()) {
            true => Finish::FunctionCall,
            false => Finish::ToolCalls,
        }
    }
}
