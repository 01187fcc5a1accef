//! The records that variables consist of. Each field is declared once: its name, its type and how its value is read.

use super::record::{FieldName, field, records};
use super::request_values::{RequestRecords as Several, contents, message_parts};
use super::turn_values::{items_by_index, last_text, parts, texts, tokens};
use super::{Value, Variable, VariableType as T};
use crate::domain::request_item::{
    ChoiceMode, Content, ContentPart as P, ContentPartType, Format, FormatKind, RequestCall, RequestItem as I,
    RequestItemType, RequestReasoning, Tool, ToolChoice, ToolKind,
};
use crate::domain::{
    AnnotationKind, BackendHealth, CallKind, Choice, Fault, FaultKind, Finish, Health, HttpExchange, Item, ItemKind,
    ItemState, LogTime, Part, PartAnnotation, PartKind, RequestContent, RoleNames, TokenLogprob, TurnRequest,
    TurnState, TurnSummary, Usage, UsageBucket, UsageGroup, UsageReport, WorkerHealth,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The roles that every backend should expect. A dialect may emit others.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];

use RecordType as R;

records! {
    /// A model, for static routes.
    Model(id: str, backend: str, created: i64) {
        id: T::Text => id;
        backend: T::Text => backend;
        created: T::Int => *created;
    }
    /// The health of the gateway, for static routes.
    Health(health: Health) {
        ready: T::Bool => health.is_ready();
        draining: T::Bool => health.draining;
        turns: T::Int => health.turns;
        backends: T::List(R::BackendHealth) => Value::list(health.backends.iter().map(Record::BackendHealth));
    }
    BackendHealth(backend: BackendHealth) {
        name: T::Text => &backend.name;
        ready: T::Bool => backend.ready;
        // Of a child process: its state, such as `worker_exit`.
        reason: T::Text => backend.reason.as_ref();
        worker: T::Record(R::WorkerHealth) => backend.worker.as_ref().map(Record::WorkerHealth);
    }
    /// The child process of a backend. Times are milliseconds since 1970.
    WorkerHealth(worker: WorkerHealth) {
        pid: T::Int => worker.pid;
        // How often a process has failed, and how often in a row.
        restarts: T::Int => worker.restarts;
        failures: T::Int => worker.failures;
        // The pause before the next start, while it lasts.
        next_restart_ms: T::Int => worker.next_restart_ms;
        since: T::Int => worker.since;
        // What happened, if it is not ready.
        detail: T::Text => worker.detail.as_ref();
        last_exit: T::Text => worker.last_exit.as_ref();
        last_exit_at: T::Int => worker.last_exit_at;
        last_ready_at: T::Int => worker.last_ready_at;
        startup_ms: T::Int => worker.startup_ms;
    }
    /// What the usage log recorded in a period, for static routes.
    UsageReport(report: UsageReport) {
        // The period, in milliseconds since 1970.
        start: T::Int => report.start;
        end: T::Int => report.end;
        group: T::Enum(UsageGroup::NAMES) => report.group.map(UsageGroup::name);
        requests: T::Int => report.sum.requests;
        // How many requests have estimated counts.
        estimated: T::Int => report.sum.estimated;
        input: T::Int => report.sum.input;
        output: T::Int => report.sum.output;
        total: T::Int => report.sum.total;
        buckets: T::List(R::UsageBucket) => Value::list(report.buckets.iter().map(Record::UsageBucket));
        // The newest records as they are in the file, by time.
        records: T::Json => &report.records;
        // Of a large log, only the newest part is read.
        complete: T::Bool => report.complete;
    }
    /// The turns of an hour or a day.
    UsageBucket(bucket: UsageBucket) {
        start: T::Int => bucket.start;
        requests: T::Int => bucket.sum.requests;
        estimated: T::Int => bucket.sum.estimated;
        input: T::Int => bucket.sum.input;
        output: T::Int => bucket.sum.output;
        total: T::Int => bucket.sum.total;
    }
    /// A request and its response, for lines of a log.
    Http(http: HttpExchange) {
        method: T::Text => &http.method;
        // As gateway.yaml writes it.
        route: T::Text => &http.route;
        // As the client sent it.
        path: T::Text => http.path.as_ref();
        status: T::Int => http.status;
        user_agent: T::Text => http.user_agent.as_ref();
        client: T::Text => &http.client;
        // The name of the API key, and whether one was sent.
        key: T::Text => http.key.as_ref();
        auth: T::Text => http.auth;
        duration_ms: T::Int => http.duration_ms;
    }
    /// When a line of a log is written.
    Time(time: LogTime) {
        ms: T::Int => time.ms;
        iso: T::Text => &time.iso;
    }
    /// What was counted of a turn, for lines of a log.
    Summary(summary: TurnSummary) {
        status: T::Int => summary.status;
        outcome: T::Text => summary.outcome;
        error: T::Text => summary.error;
        finish: T::Enum(Finish::NAMES) => summary.finish;
        input_tokens: T::Int => summary.input_tokens;
        output_tokens: T::Int => summary.output_tokens;
        total_tokens: T::Int => summary.total_tokens;
        cached_tokens: T::Int => summary.cached_tokens;
        reasoning_tokens: T::Int => summary.reasoning_tokens;
        estimated: T::Bool => summary.estimated;
        choices: T::Int => summary.choices;
        tool_calls: T::Int => summary.tool_calls;
        // `structured`, or `textual`.
        tool_source: T::Text => summary.tool_source;
        tool_call_limit: T::Int => summary.tool_call_limit;
        frames: T::Int => summary.frames;
        first_frame_ms: T::Int => summary.first_frame_ms;
        duration_ms: T::Int => summary.duration_ms;
        // The metadata lines that were removed, their keys, and where the backend's mapping found keys.
        metadata_lines: T::Int => summary.metadata.lines;
        metadata_keys: T::ScalarList => Value::list(&summary.metadata.keys);
        metadata_sources: T::ScalarList => Value::list(&summary.metadata.sources);
    }
    /// This build of the gateway.
    Build(version: str) {
        version: T::Text => version;
    }
    /// Properties of the request to the backend.
    Upstream(stream: bool) {
        stream: T::Bool => *stream;
    }
    /// The API key of the backend.
    Secret(key: str) {
        key: T::Text => key;
    }
    Turn(turn: TurnState) {
        id: T::Text => &turn.id;
        created: T::Int => turn.created;
        model: T::Text => &turn.model;
        state: T::Enum(ItemState::NAMES) => turn.state().name();
        finish: T::Enum(Finish::NAMES) => turn.finish.map(Finish::name);
        choices: T::List(R::Choice) => Value::list(turn.choices.iter().map(|choice| Record::Choice(turn, choice)));
        items: T::List(R::Item) => items_by_index(turn);
        usage: T::Record(R::Usage) => turn.usage.as_ref().map(Record::Usage);
        // What is known at this moment; `usage` is null until the end.
        usage_so_far: T::Record(R::Usage) => turn.usage_so_far.is_known().then_some(Record::Usage(&turn.usage_so_far));
        // What reported it, in the word of the backend's mapping.
        usage_trigger: T::Text => turn.usage_trigger.as_ref();
        // A fault ended the turn, which the client does not see: policy `errors_after_tools`.
        ended_by_fault: T::Bool => turn.ended_by_fault;
        // Vendor fields, by the names that the backend's rules emit.
        extra: T::Json => turn.extra.as_ref();
        error: T::Record(R::Fault) => turn.error.as_ref().map(Record::Fault);
        truncated: T::Bool => turn.finish.is_some_and(Finish::is_truncated);
        // Seconds since 1970, once the turn has ended.
        ended: T::Int => turn.ended;
        elapsed_ms: T::Int => turn.elapsed_ms;
        first_ms: T::Int => turn.first_output_ms;
        // How many calls all choices have.
        call_count: T::Int => turn.items.iter().filter(|item| item.is_call()).count();
        // Ended by the policy `stop_after_tools`, or by `limits.tool_calls`.
        cut_after_tools: T::Bool => turn.cut_after_tools;
    }
    Choice(turn: TurnState, choice: Choice) {
        index: T::Int => choice.index;
        items: T::List(R::Item) => Value::list(turn.items_of(choice.index).map(Record::Item));
        text: T::Text => texts(turn, choice, &[PartKind::Text]);
        refusal: T::Text => texts(turn, choice, &[PartKind::Refusal]);
        // The text of the last message that has any.
        last_text: T::Text => last_text(turn, choice);
        // Text and refusals, in order of arrival.
        content: T::Text => texts(turn, choice, &[PartKind::Text, PartKind::Refusal]);
        thoughts: T::Text => texts(turn, choice, &[PartKind::Thought]);
        summary: T::Text => {
            let summaries = turn.items_of(choice.index).flat_map(|item| &item.summaries);
            Value::joined(summaries.map(|part| part.text.as_str()))
        };
        calls: T::List(R::Item) => {
            Value::list(turn.items_of(choice.index).filter(|item| item.is_call()).map(Record::Item))
        };
        // The calls that are written as text (`call_blocks:`).
        call_blocks: T::Text => {
            Value::joined(parts(turn, choice).filter(|part| part.is_call_block).map(|part| part.text.as_str()))
        };
        annotations: T::List(R::Annotation) => {
            Value::list(parts(turn, choice).flat_map(|part| &part.annotations).map(Record::Annotation))
        };
        logprobs: T::List(R::Token) => tokens(parts(turn, choice));
        finish: T::Enum(Finish::NAMES) => choice.finish.map(Finish::name);
        extra: T::Json => turn.choice_extra.get(&choice.index);
    }
    Item(item: Item) {
        id: T::Text => &item.id;
        index: T::Int => item.index;
        ordinal: T::Int => item.ordinal;
        kind: T::Enum(ItemKind::NAMES) => item.kind.name();
        state: T::Enum(ItemState::NAMES) => item.state.name();
        parts: T::List(R::Part) => Value::list(item.parts.iter().map(Record::Part));
        summaries: T::List(R::Part) => Value::list(item.summaries.iter().map(Record::Part));
        // A call has no parts, and no text.
        text: T::Text => Value::joined(item.parts.iter().map(|part| part.text.as_str()));
        encrypted: T::Text => item.encrypted.as_ref();
        call_id: T::Text => &item.call_id;
        name: T::Text => &item.name;
        arguments: T::Text => &item.arguments;
        // A call in the legacy form: policy `legacy_function_call`.
        legacy: T::Bool => item.legacy;
        // The arguments as JSON, once the call is closed.
        input: T::Json => item.input.as_ref();
        // The number of its first block.
        block: T::Int => item.block;
    }
    Part(part: Part) {
        index: T::Int => part.index;
        // Its number among all parts and calls of the turn.
        block: T::Int => part.block;
        kind: T::Enum(PartKind::NAMES) => part.kind.name();
        text: T::Text => &part.text;
        annotations: T::List(R::Annotation) => Value::list(part.annotations.iter().map(Record::Annotation));
        logprobs: T::List(R::Token) => tokens([part]);
    }
    /// A token with its log-probability.
    Token(token: TokenLogprob) {
        token: T::Text => &token.token;
        logprob: T::Number => &token.logprob;
        bytes: T::ScalarList => token.bytes().map(|bytes| Value::list(bytes.iter().copied().map(i64::from)));
        top_logprobs: T::List(R::Token) => Value::list(token.top.iter().map(Record::Token));
    }
    Annotation(part: PartAnnotation) {
        kind: T::Enum(AnnotationKind::NAMES) => part.annotation.kind.map(AnnotationKind::name);
        url: T::Text => part.annotation.url.as_ref();
        title: T::Text => part.annotation.title.as_ref();
        file: T::Text => part.annotation.file.as_ref();
        name: T::Text => part.annotation.name.as_ref();
        start: T::Int => part.annotation.start;
        end: T::Int => part.annotation.end;
        // Characters of the choice before the part that contains the annotation.
        shift: T::Int => part.shift;
        index: T::Int => part.annotation.index;
        value: T::Json => part.annotation.value.as_ref();
    }
    Usage(usage: Usage) {
        input: T::Int => usage.input.unwrap_or(0);
        output: T::Int => usage.output.unwrap_or(0);
        total: T::Int => usage.total();
        cached: T::Int => usage.cached;
        cache_write: T::Int => usage.cache_write;
        reasoning: T::Int => usage.reasoning;
    }
    Fault(fault: Fault) {
        kind: T::Enum(FaultKind::NAMES) => fault.kind.name();
        message: T::Text => &fault.message;
        param: T::Text => fault.param.as_ref();
        code: T::Text => fault.code.as_ref();
        status: T::Int => fault.status();
        retry_after: T::Int => fault.retry_after;
        // Of `faults:`.
        type: T::Text => fault.error_type.as_ref();
        retryable: T::Bool => fault.retryable;
        // The limit that was exceeded: of time (connect, first_event, idle, overall, stream, body), or of turns in flight
        // (streams, streams_per_client).
        limit: T::Text => fault.limit;
        // What the client sent: the name of an unknown model.
        value: T::Text => fault.value.as_deref();
        // What else the backend reported about it.
        details: T::Json => fault.details.as_deref();
    }
    Request(request: TurnRequest, content: RequestContent, roles: RoleNames) {
        model: T::Text => content.scalar(request, "model");
        stream: T::Bool => content.scalar(request, "stream");
        usage: T::Bool => content.scalar(request, "usage");
        n: T::Int => content.scalar(request, "n");
        max_tokens: T::Int => content.scalar(request, "max_tokens");
        temperature: T::Number => content.scalar(request, "temperature");
        top_p: T::Number => content.scalar(request, "top_p");
        stop: T::ScalarList => content.scalar(request, "stop");
        seed: T::Int => content.scalar(request, "seed");
        reasoning_effort: T::Text => content.scalar(request, "reasoning_effort");
        parallel_tool_calls: T::Bool => content.scalar(request, "parallel_tool_calls");
        metadata: T::Json => content.scalar(request, "metadata");
        user: T::Text => content.scalar(request, "user");
        previous_response_id: T::Text => content.scalar(request, "previous_response_id");
        stored_prompt: T::Json => content.scalar(request, "stored_prompt");
        tool_choice: T::Record(R::ToolChoice) => content.tool_choice.as_ref().map(Record::ToolChoice);
        format: T::Record(R::Format) => content.format.as_ref().map(Record::Format);
        tools: T::List(R::Tool) => Several::Tools(&content.tools);
        items: T::List(R::RequestItem) => Several::Items(roles, content.items());
        messages: T::List(R::RequestMessage) => Several::Messages(roles, content.items(), content.messages());
        history: T::List(R::RequestItem) => Several::Items(roles, content.history());
        // The history without the messages in `instructions`.
        earlier_items: T::List(R::RequestItem) => Several::Items(roles, content.earlier_items());
        last: T::Record(R::RequestItem) => content.items().last().map(|item| Record::RequestItem(roles, item));
        last_user_parts: T::List(R::RequestPart) => Several::Parts(content.last_user_parts());
        last_user_text: T::Text => content.last_user_text();
        instructions: T::Text => content.instructions();
        // The messages after those in `instructions`.
        conversation: T::List(R::RequestMessage) => Several::Messages(roles, content.items(), content.conversation());
        extra: T::Json => &request.extra;
        // The client's body as sent, for fields that are only echoed.
        raw: T::Json => &request.raw;
    }
    RequestItem(roles: RoleNames, item: I) {
        type: T::Enum(RequestItemType::NAMES) => item.kind().name();
        role: T::OpenEnum(ROLES) => field!(item, I::Message { role, .. } => role.as_ref().map(|role| roles.map(role)));
        text: T::Text => match item {
            I::Reasoning { reasoning } => reasoning.text.as_deref().map(Cow::Borrowed),
            _ => item.content().map(Content::text),
        };
        parts: T::List(R::RequestPart) => item.content().map(|content| Several::Parts(&content.parts));
        // Contains only text parts.
        plain: T::Bool => item.content().map(Content::is_plain);
        id: T::Text => {
            let id = item.call().map(|call| &call.id).or(item.reasoning().map(|reasoning| &reasoning.id));
            id.and_then(Option::as_ref)
        };
        name: T::Text => item.tool().and_then(|tool| tool.name.as_ref());
        // Of a call or its result: function or custom. Of another item: the client's type.
        kind: T::Text => match item {
            I::Other { kind, .. } => kind.as_deref(),
            _ => item.tool().and_then(|tool| tool.kind).map(CallKind::name),
        };
        arguments: T::Text => item.call().and_then(|call| call.arguments.as_ref());
        // The arguments as JSON, for backends that do not accept them as text.
        input: T::Json => item.call().map(RequestCall::input);
        call_id: T::Text => field!(item, I::Result { call_id, .. } => call_id.as_ref());
        failed: T::Bool => field!(item, I::Result { failed, .. } => *failed);
        summaries: T::ScalarList => item.reasoning().and_then(|r| r.summaries.as_ref()).map(Value::list);
        signature: T::Text => item.reasoning().and_then(|reasoning| reasoning.signature.as_ref());
        encrypted: T::Text => item.reasoning().and_then(|reasoning| reasoning.encrypted.as_ref());
        raw: T::Json => field!(item, I::Other { raw, .. } => raw);
    }
    /// One or more items that are one message.
    RequestMessage(roles: RoleNames, items: [Arc<I>]) {
        role: T::OpenEnum(ROLES) => items.iter().find_map(|item| item.message_role()).map(|role| roles.map(role));
        text: T::Text => contents(items).map(Content::text).reduce(|text, more| text + more);
        parts: T::List(R::RequestPart) => message_parts(items);
        calls: T::List(R::RequestCall) => {
            Value::list(items.iter().filter_map(|item| item.call()).map(Record::RequestCall))
        };
        // The reasoning before it, sent back by the client.
        reasoning: T::List(R::RequestReasoning) => {
            Value::list(items.iter().filter_map(|item| item.reasoning()).map(Record::RequestReasoning))
        };
        // The texts of its reasoning.
        thoughts: T::Text => {
            Value::joined(items.iter().filter_map(|item| item.reasoning()).filter_map(|r| r.text.as_deref()))
        };
        // Contains only text parts.
        plain: T::Bool => contents(items).all(Content::is_plain);
        call_id: T::Text => items.first().map(|item| field!(&**item, I::Result { call_id, .. } => call_id.as_ref()));
        // The name of the call that this is the result of.
        name: T::Text => items.first().map(|item| field!(&**item, I::Result { tool, .. } => tool.0.name.as_ref()));
        failed: T::Bool => items.first().map(|item| field!(&**item, I::Result { failed, .. } => *failed));
    }
    RequestReasoning(reasoning: RequestReasoning) {
        id: T::Text => reasoning.id.as_ref();
        text: T::Text => reasoning.text.as_ref();
        summaries: T::ScalarList => reasoning.summaries.as_ref().map(Value::list);
        signature: T::Text => reasoning.signature.as_ref();
        encrypted: T::Text => reasoning.encrypted.as_ref();
    }
    RequestCall(call: RequestCall) {
        id: T::Text => call.id.as_ref();
        name: T::Text => call.tool.name.as_ref();
        kind: T::Enum(CallKind::NAMES) => call.tool.kind.map(CallKind::name);
        arguments: T::Text => call.arguments.as_ref();
        input: T::Json => call.input();
    }
    RequestPart(part: P) {
        type: T::Enum(ContentPartType::NAMES) => part.kind().name();
        text: T::Text => part.text();
        url: T::Text => part.url();
        detail: T::Text => field!(part, P::Image { detail, .. } => detail.as_ref());
        id: T::Text => field!(part, P::File { id, .. } => id.as_ref());
        name: T::Text => field!(part, P::File { name, .. } => name.as_ref());
        data: T::Text => part.data();
        format: T::Text => part.format();
        // Of bytes, whichever form the client sent: the media type, and the bytes in base64.
        media_type: T::Text => part.media_type();
        base64: T::Text => part.base64();
    }
    Tool(tool: Tool) {
        kind: T::Enum(ToolKind::NAMES) => tool.kind.map(ToolKind::name);
        // The client's type of the tool.
        type: T::Text => tool.client_type.as_ref();
        name: T::Text => tool.name.as_ref();
        description: T::Text => tool.description.as_ref();
        parameters: T::Json => tool.parameters.as_ref();
        strict: T::Bool => tool.strict;
        raw: T::Json => tool.raw.as_ref();
    }
    ToolChoice(choice: ToolChoice) {
        mode: T::Enum(ChoiceMode::NAMES) => choice.mode.map(ChoiceMode::name);
        name: T::Text => choice.name.as_ref();
        allowed: T::ScalarList => choice.allowed.as_ref().map(Value::list);
        unknown: T::Json => choice.unknown.0.as_ref();
    }
    Format(format: Format) {
        kind: T::Enum(FormatKind::NAMES) => format.kind.map(FormatKind::name);
        name: T::Text => format.name.as_ref();
        schema: T::Json => format.schema.as_ref();
        strict: T::Bool => format.strict;
        description: T::Text => format.description.as_ref();
        unknown: T::Json => format.unknown.0.as_ref();
    }
}
