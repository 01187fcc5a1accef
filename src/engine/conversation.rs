//! TurnRequest → the calls of a turn, by a backend's `conversation:`. Without IO: tests and `explain` render the same
//! calls as the server.

use super::backend_request::adapt::{AdaptedRequest, adapt};
use super::backend_request::{in_headers, render_fault};
use super::param::with_client_param;
use super::selector::Cursor;
use crate::domain::variables::{self, Record};
use crate::domain::{Fault, FaultKind, RequestContent, ToolAliases, Tree, TurnRequest};
use crate::engine::render::{self, Scope};
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::backend_request::RequestSettings;
use crate::mapping::config::capabilities::StreamMode;
use crate::mapping::config::conversation::{AnswerPlan, CallPlan, ConversationPlan, OnFault};
use crate::mapping::config::dialect_request::RequestPlan;
use std::sync::Arc;

/// A call that is ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingCall {
    pub method: String,
    pub params: Option<Tree>,
    /// Its index in the list of calls.
    pub step: usize,
    pub is_answered: bool,
}

/// What the calls of a process have in common.
#[derive(Clone, Debug)]
pub struct SessionValues {
    /// The environment of the gateway.
    pub env: Arc<Tree>,
    /// What the calls of the session kept.
    pub session: Arc<Tree>,
}

/// The calls of one turn.
pub struct TurnCalls {
    plan: Arc<BackendPlan>,
    settings: RequestSettings,
    request: Arc<TurnRequest>,
    content: RequestContent,
    stream: bool,
    /// The client's name of the member with the messages, for errors.
    content_param: Option<String>,
}

/// A request after it was adapted to the backend, and what is needed to decode the response.
pub struct PreparedCalls {
    pub calls: TurnCalls,
    /// Fields of the client's request that are not sent, by the client's names.
    pub dropped: Vec<String>,
    pub tool_aliases: ToolAliases,
}

/// The lists of calls that need no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallList {
    Session,
    Cancel,
    Close,
    Fault,
    Silence,
}

impl SessionValues {
    /// Without an environment and without a session, for tests and `explain`.
    pub fn empty() -> SessionValues {
        let empty = Arc::new(Tree::Map(Vec::new()));
        SessionValues { env: empty.clone(), session: empty }
    }

    fn scope(&self) -> Scope<'_> {
        let scope = Scope::default().set(variables::ENV, &*self.env).set(variables::SESSION, &*self.session);
        in_headers(&scope, None)
    }
}

pub fn prepare(
    plan: &Arc<BackendPlan>,
    settings: &RequestSettings,
    request: &Arc<TurnRequest>,
    client: &RequestPlan,
) -> Result<PreparedCalls, Fault> {
    let conversation = plan.conversation.as_ref().ok_or_else(no_conversation)?;
    let capabilities = &settings.capabilities;
    let AdaptedRequest { content, forwarded, mut dropped, tool_aliases } =
        adapt(request, &conversation.reads, capabilities, client)?;
    // There is no body that they could be members of.
    dropped.extend(forwarded.into_iter().map(|(name, _)| name.to_string()));
    let stream = match capabilities.stream_mode() {
        StreamMode::Always => true,
        StreamMode::Never => false,
        StreamMode::AsRequested => request.stream,
    };
    let (plan, settings, request) = (plan.clone(), settings.clone(), request.clone());
    let calls = TurnCalls { plan, settings, request, content, stream, content_param: client.content_param() };
    Ok(PreparedCalls { calls, dropped, tool_aliases })
}

impl TurnCalls {
    pub fn plan(&self) -> &Arc<BackendPlan> {
        &self.plan
    }

    /// The next call from this step on; `None` after the last one.
    pub fn next(&self, from: usize, kept: &Tree, values: &SessionValues) -> Result<Option<OutgoingCall>, Fault> {
        let conversation = self.plan.conversation.as_ref().ok_or_else(no_conversation)?;
        let roles = &self.settings.capabilities.role_map;
        let scope = values
            .scope()
            .set(variables::REQUEST, Record::Request(&self.request, &self.content, roles))
            .set(variables::UPSTREAM, Record::Upstream(&self.stream))
            .set(variables::KEPT, kept);
        next_call(&conversation.turn, from, conversation, &scope)
            .map_err(|fault| with_client_param(fault, || self.content_param.clone()))
    }
}

/// The next call of a list from this step on; `None` after the last one.
pub fn next_of(
    conversation: &ConversationPlan,
    list: CallList,
    from: usize,
    kept: &Tree,
    values: &SessionValues,
) -> Result<Option<OutgoingCall>, Fault> {
    let calls = calls_of(conversation, list);
    next_call(calls, from, conversation, &values.scope().set(variables::KEPT, kept))
}

/// All calls of a list.
pub fn calls_of(conversation: &ConversationPlan, list: CallList) -> &[CallPlan] {
    match list {
        CallList::Session => &conversation.session,
        CallList::Cancel => &conversation.cancel,
        CallList::Close => &conversation.close,
        CallList::Fault => conversation.on_fault.as_ref().map_or(&[], |on_fault| &on_fault.calls),
        CallList::Silence => conversation.on_silence.as_ref().map_or(&[], |on_silence| &on_silence.calls),
    }
}

/// Whether the message reports a fault that is asked about.
pub fn reports_fault(conversation: &ConversationPlan, message: &Tree) -> bool {
    let cursor = Cursor::new(message);
    let is_met = |on_fault: &OnFault| on_fault.conditions.0.iter().all(|condition| condition.is_met(&cursor));
    conversation.on_fault.as_ref().is_some_and(is_met)
}

fn next_call(
    calls: &[CallPlan],
    from: usize,
    conversation: &ConversationPlan,
    scope: &Scope,
) -> Result<Option<OutgoingCall>, Fault> {
    for (step, call) in calls.iter().enumerate().skip(from) {
        let is_wanted = match &call.when {
            Some(when) => render::is_true(when, scope, &conversation.pool).map_err(render_fault)?,
            None => true,
        };
        if !is_wanted {
            continue;
        }
        let params = match &call.params {
            Some(params) => render::render(params, scope, &conversation.pool).map_err(render_fault)?,
            None => None,
        };
        return Ok(Some(OutgoingCall { method: call.method.clone(), params, step, is_answered: call.is_answered }));
    }
    Ok(None)
}

/// Adds what a call keeps of its answer.
pub fn keep(call: &CallPlan, message: &Tree, kept: &mut Tree) {
    for (name, selector) in &call.keep {
        if let Some(value) = selector.one(&Cursor::new(message)) {
            kept.insert(&**name, value.clone());
        }
    }
}

/// The text that identifies the turn of a message.
pub fn route_of<'m>(conversation: &ConversationPlan, message: &'m Tree) -> Option<&'m str> {
    let cursor = Cursor::new(message);
    conversation.route_by.message.iter().find_map(|selector| selector.one(&cursor)?.as_str())
}

/// The members `result` or `error` of the answer to a request of the process; `None` if it is not answered.
pub fn answer(conversation: &ConversationPlan, method: &str, message: &Tree) -> Option<(&'static str, Tree)> {
    let error = |code: Tree, text: &str| ("error", Tree::map([("code", code), ("message", Tree::from(text))]));
    match conversation.answer(method) {
        Some(AnswerPlan::Unanswered) => None,
        Some(AnswerPlan::Error(with)) => Some(error(with.code.0.clone(), &with.message)),
        Some(AnswerPlan::Result(result)) => {
            let scope = Scope::default().set(variables::MESSAGE, message);
            Some(match render::render(result, &scope, &conversation.pool) {
                Ok(result) => ("result", result.unwrap_or_default()),
                Err(why) => error(Tree::from(-32603_i64), &why.to_string()),
            })
        }
        None => Some(error(Tree::from(-32601_i64), "this client does not support the method")),
    }
}

/// All calls of a turn as JSON, for tests and `explain`. A kept value is shown as its name.
pub fn preview(prepared: &PreparedCalls) -> Result<Tree, Fault> {
    let conversation = prepared.calls.plan.conversation.as_ref().ok_or_else(no_conversation)?;
    let (mut kept, mut calls, mut from) = (Tree::Map(Vec::new()), Vec::new(), 0);
    while let Some(call) = prepared.calls.next(from, &kept, &SessionValues::empty())? {
        from = call.step + 1;
        for (name, _) in &conversation.turn[call.step].keep {
            kept.insert(&**name, Tree::from(format!("kept.{name}")));
        }
        let kind = if call.is_answered { "call" } else { "notify" };
        let params = call.params.into_iter().map(|params| ("params", params));
        calls.push(Tree::map([(kind, Tree::from(call.method))].into_iter().chain(params)));
    }
    let dropped: Vec<Tree> = prepared.dropped.iter().map(|name| Tree::from(name.as_str())).collect();
    Ok(Tree::map([("calls", Tree::List(calls)), ("dropped", Tree::List(dropped))]))
}

fn no_conversation() -> Fault {
    Fault::new(FaultKind::Internal, "the backend has no conversation")
}
