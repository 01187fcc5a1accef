//! `conversation:` of a backend that is a child process: its calls over JSON-RPC, as data. Which calls begin a session
//! and a turn, how messages find their turn, how requests of the process are answered.

use super::backend_request::{RequestFieldsRead, RequestSettings};
use super::capabilities::Capabilities;
use super::rename_fields::RenameFields;
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::domain::Tree;
use crate::domain::variables::{self, Variable};
use crate::mapping::grammar::collections::{List, Map, OneOrMore};
use crate::mapping::grammar::notation::{AnyValue, Spanned, TimeLimit};
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::grammar::{Named, section};
use crate::mapping::language::condition::Conditions;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;
use std::time::Duration;

/// The compiled conversation.
#[derive(Debug)]
pub struct ConversationPlan {
    /// Members of every message that is sent.
    pub members: Vec<(String, Tree)>,
    pub session: Vec<CallPlan>,
    pub turn: Vec<CallPlan>,
    pub cancel: Vec<CallPlan>,
    pub close: Vec<CallPlan>,
    /// By method.
    pub answers: Vec<(String, AnswerPlan)>,
    pub route_by: RouteBy,
    pub ended_by: Vec<String>,
    pub on_fault: Option<OnFault>,
    pub on_silence: Option<OnSilence>,
    pub pool: ExpressionPool,
    pub settings: RequestSettings,
    pub reads: RequestFieldsRead,
    /// The value of `turn:`.
    pub span: Span,
}

/// One call, or one notification.
#[derive(Debug)]
pub struct CallPlan {
    pub method: String,
    /// A notification has no answer.
    pub is_answered: bool,
    pub when: Option<Expression>,
    pub params: Option<Skeleton>,
    pub keep: Vec<(Arc<str>, Selector)>,
}

/// What is asked about a message that reports a fault.
#[derive(Debug)]
pub struct OnFault {
    pub conditions: Conditions,
    pub calls: Vec<CallPlan>,
}

/// What is asked about a turn without messages.
#[derive(Debug)]
pub struct OnSilence {
    pub after: Duration,
    pub calls: Vec<CallPlan>,
}

/// How a request of the child process is answered.
#[derive(Debug)]
pub enum AnswerPlan {
    Result(Skeleton),
    Error(AnswerError),
    /// Not at all: the turn ends instead.
    Unanswered,
}

section! {
    /// The conversation with a child process over JSON-RPC, one message per line. A request field that no call of `turn`
    /// reads does not reach the backend: it is rejected, or dropped and listed.
    #[subject = "`conversation:`"]
    #[title = "conversation"]
    pub struct ConversationSection<'n> {
        /// Members of every message that is sent, such as `jsonrpc: "2.0"`.
        members: Map<AnyValue> = Map::default(),
        /// The calls after the start of the process, which is ready when all are answered. They see `env`, `build.version`
        /// and `session`, the values that earlier calls keep.
        session: List<CallSection<'n>> = List::default(),
        /// The calls of a turn, one after the other. They see `request`, `env`, `session`, `build.version` and `kept`, the
        /// values that earlier calls of the turn keep. Answers are events of the turn, like other messages of it.
        turn: Spanned<List<CallSection<'n>>>,
        /// The calls that end a turn early: the client has disconnected, a timeout has expired, or the turn is finished
        /// before the process has ended it. They see `kept`, `session` and `env`.
        cancel: List<CallSection<'n>> = List::default(),
        /// The calls after a turn, however it ended. They see `kept`, `session` and `env`.
        close: List<CallSection<'n>> = List::default(),
        /// The answers to requests of the process, by method. Any other request is answered with the error -32601.
        answers: Map<AnswerSection<'n>> = Map::default(),
        /// How messages find their turn. A message that belongs to no turn is discarded.
        route_by: RouteBy,
        /// The methods of messages after which the process has ended its turn: there is nothing to cancel.
        ended_by: List<String> = List::default(),
        /// What is asked about a message that reports a fault, before the rules read it.
        on_fault: Option<FaultSection<'n>>,
        /// What is asked about a turn without messages: the one that ends it may be lost.
        on_silence: Option<SilenceSection<'n>>,
        ..capabilities: Capabilities,
    }
}

section! {
    /// A call of the conversation.
    #[subject = "a call"]
    #[title = "call"]
    #[exactly_one("call", "notify")]
    pub struct CallSection<'n> {
        /// The method of a request. The next call waits for the answer.
        call: Option<String>,
        /// The method of a notification, which has no answer.
        notify: Option<String>,
        /// Without it, or if it is true, the call is made.
        when: Option<ExpressionNode<'n>>,
        /// The parameters.
        params: Option<SkeletonNode<'n>>,
        /// Values of the answer that are kept for later calls, by name. `$` is the whole message: `$.result.id`.
        keep: Map<Selector> = Map::default(),
    }
}

section! {
    /// The calls about a message that reports a fault, such as one for a login. What they keep becomes the member `kept` of
    /// the message, which rules can read: `$.kept.url`. Without answers the message is read after 5 seconds.
    #[subject = "`on_fault:`"]
    #[title = "on_fault"]
    pub struct FaultSection<'n> {
        /// Which messages: selector to test; all must match.
        conditions as "where": Conditions,
        /// The calls. They see `kept`, `session` and `env`.
        calls: List<CallSection<'n>>,
    }
}

section! {
    /// The calls about a turn without messages. Their answers are events of the turn. They are made once, until the next
    /// message of the turn.
    #[subject = "`on_silence:`"]
    #[title = "on_silence"]
    pub struct SilenceSection<'n> {
        /// The time without a message of the turn.
        after: TimeLimit,
        /// The calls. They see `kept`, `session` and `env`.
        calls: List<CallSection<'n>>,
    }
}

section! {
    /// How messages find their turn.
    #[subject = "`route_by:`"]
    #[title = "route_by"]
    pub struct RouteBy {
        /// The kept value that identifies a turn.
        keep: Spanned<String>,
        /// Where messages contain that value: the first selector that finds one.
        message: OneOrMore<Selector>,
    }
}

section! {
    /// The answer to a request of the process.
    #[subject = Named("the answer to")]
    #[title = "answer"]
    #[exactly_one("result", "error", "unanswered")]
    pub struct AnswerSection<'n> {
        /// The result. It sees `message`, the request of the process.
        result: Option<SkeletonNode<'n>>,
        /// The error.
        error: Option<AnswerError>,
        /// `true`: it is not answered, because an event of the turn ends the turn.
        unanswered: Option<bool>,
    }
}

section! {
    /// An error of JSON-RPC.
    #[subject = "`error:`"]
    pub struct AnswerError {
        /// Its code.
        code: AnyValue = AnyValue(Tree::from(-32601_i64)),
        /// Its message.
        message: String,
    }
}

impl ConversationPlan {
    pub fn new(
        section: ConversationSection,
        fragments: &[Entry],
        shared_fragments: &[Entry],
        tables: &Tables,
        cx: LoadContext,
    ) -> Option<ConversationPlan> {
        let mut all_fragments = Fragments::default();
        all_fragments.add(fragments);
        all_fragments.add(shared_fragments);
        let pool = ExpressionPoolBuilder::new(tables.clone());
        let skeletons =
            SkeletonCompiler { cx, pool: &pool, fragments: &all_fragments, rename_fields: &RenameFields::default() };
        let compiler = CallCompiler { skeletons };
        let (env, session, kept) = (variables::ENV, variables::SESSION, variables::KEPT);
        let mut kept_by_session = Kept { root: "session", names: Vec::new() };
        let in_session = [env, variables::BUILD, session];
        let session_calls = compiler.calls(&section.session, "a call of `session:`", in_session, &mut kept_by_session);
        let mut kept_by_turn = Kept { root: "kept", names: Vec::new() };
        let in_turn = [variables::REQUEST, variables::UPSTREAM, env, variables::BUILD, session, kept];
        let turn = compiler.calls(&section.turn, "a call of `turn:`", in_turn, &mut kept_by_turn);
        let known = kept_by_turn.clone();
        let after = |calls: &[CallSection], place| {
            compiler.calls(calls, place, [env, session, kept, variables::BUILD], &mut known.clone())
        };
        let cancel = after(&section.cancel, "a call of `cancel:`");
        let close = after(&section.close, "a call of `close:`");
        let on_fault = section.on_fault.map(|section| {
            let calls = after(&section.calls, "a call of `on_fault:`");
            OnFault { conditions: section.conditions, calls }
        });
        let on_silence = section.on_silence.and_then(|section| {
            let calls = after(&section.calls, "a call of `on_silence:`");
            Some(OnSilence { after: section.after.0?, calls })
        });
        let identifier = &section.route_by.keep;
        if !kept_by_turn.names.contains(&identifier.value) {
            let message = format!("no call of `turn:` keeps `{}`", identifier.value);
            let known = kept_by_turn.names.iter().map(String::as_str);
            cx.unknown(Code::UnknownReference, identifier.span, message, identifier, known);
        }
        let answers = section.answers.0.iter().filter_map(|answer| {
            let scope = VariableScope::new("an answer", [variables::MESSAGE]);
            let plan = match (&answer.value.result, &answer.value.error) {
                (Some(result), _) => AnswerPlan::Result(compiler.skeletons.compile(result.0, &scope)?),
                (None, Some(error)) => AnswerPlan::Error(error.clone()),
                (None, None) => AnswerPlan::Unanswered,
            };
            Some((answer.key.clone(), plan))
        });
        let answers = answers.collect();
        let reads = RequestFieldsRead::of(turn.iter().filter_map(|call| call.params.as_ref()))
            .and_expressions(turn.iter().filter_map(|call| call.when.as_ref()));
        let members = section.members.0.into_iter().map(|member| (member.key, member.value.0)).collect();
        Some(ConversationPlan {
            members,
            session: session_calls,
            turn,
            cancel,
            close,
            answers,
            route_by: section.route_by,
            ended_by: section.ended_by.0,
            on_fault,
            on_silence,
            pool: pool.build(),
            settings: RequestSettings { capabilities: section.capabilities, entry: None },
            reads,
            span: section.turn.span,
        })
    }

    pub fn answer(&self, method: &str) -> Option<&AnswerPlan> {
        self.answers.iter().find(|(name, _)| name == method).map(|(_, answer)| answer)
    }
}

/// The names that calls keep, which later ones read below `root`.
#[derive(Clone)]
struct Kept {
    root: &'static str,
    names: Vec<String>,
}

struct CallCompiler<'c, 'n> {
    skeletons: SkeletonCompiler<'c, 'n>,
}

impl CallCompiler<'_, '_> {
    /// Adds the names that the calls keep to `kept`.
    fn calls(
        &self,
        calls: &[CallSection],
        place: &str,
        visible: impl IntoIterator<Item = Variable>,
        kept: &mut Kept,
    ) -> Vec<CallPlan> {
        let scope = VariableScope::new(place, visible);
        let compiled = calls.iter().filter_map(|section| {
            let known = kept.clone();
            kept.names.extend(section.keep.iter().map(|entry| entry.key.clone()));
            let when = match &section.when {
                Some(when) => Some(self.skeletons.condition(when.0, &scope)?),
                None => None,
            };
            let params = match &section.params {
                Some(params) => Some(self.skeletons.compile(params.0, &scope)?),
                None => None,
            };
            if let (Some(when), Some(node)) = (&when, &section.when) {
                self.check_names(&known, when, node.0);
            }
            if let (Some(params), Some(node)) = (&params, &section.params) {
                params.visit(&mut |visited| self.check_names(&known, visited.expression, node.0));
            }
            let method = section.call.as_ref().or(section.notify.as_ref())?;
            Some(CallPlan {
                method: method.clone(),
                is_answered: section.call.is_some(),
                when,
                params,
                keep: section.keep.iter().map(|entry| (Arc::from(&*entry.key), entry.value.clone())).collect(),
            })
        });
        compiled.collect()
    }

    /// Reports names that no earlier call keeps.
    fn check_names(&self, known: &Kept, expression: &Expression, node: &Node) {
        let root = known.root;
        for path in expression.variables() {
            let [first, name, ..] = &*path.0 else { continue };
            if **first != *root || known.names.iter().any(|kept| **kept == **name) {
                continue;
            }
            let message = format!("no earlier call keeps `{root}.{name}`");
            let help = did_you_mean(name, known.names.iter().map(String::as_str))
                .map_or("add it to `keep:` of an earlier call".to_owned(), |near| {
                    format!("did you mean `{root}.{near}`?")
                });
            let cx = self.skeletons.cx;
            let path = format!("{root}.{name}");
            let place = cx.sources.within(text_with(node, &path).unwrap_or(node).span, &path);
            cx.add(Diagnostic::new(Code::UnknownReference, place, message).help(help));
        }
    }
}

/// The first text of a YAML tree that contains the words.
fn text_with<'n>(node: &'n Node, words: &str) -> Option<&'n Node> {
    match &node.kind {
        YamlKind::Text(text) => text.contains(words).then_some(node),
        YamlKind::List(nodes) => nodes.iter().find_map(|node| text_with(node, words)),
        YamlKind::Map(entries) => entries.iter().find_map(|entry| text_with(&entry.value, words)),
        YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) => None,
    }
}
