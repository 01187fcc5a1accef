//! The variables of a frame. Each is declared once: its name, its type, the moments at which it is visible, and how its
//! value is read.

use super::{FAULT, FRAME, REQUEST, Record, RecordType as R, TURN, Value, Variable, VariableType as T};
use crate::domain::moment::Subject;
use crate::domain::{Item, Moment, MomentKind as M, Part, TurnRequest, TurnState};

/// What the variables of a frame are read from.
pub struct FrameContext<'a> {
    pub state: &'a TurnState,
    pub moment: &'a Moment,
    pub request: &'a TurnRequest,
    pub seq: u64,
    /// The name of the frame.
    pub frame: &'a str,
}

struct FrameVariable {
    variable: Variable,
    visible: Visible,
    value: for<'a> fn(&FrameContext<'a>) -> Value<'a>,
}

/// The moments at which a variable is visible.
enum Visible {
    /// Those of this subject, and of a more specific one.
    From(Subject),
    At(&'static [M]),
}

use Visible::{At, From};

const fn variable(
    variable: Variable,
    visible: Visible,
    value: for<'a> fn(&FrameContext<'a>) -> Value<'a>,
) -> FrameVariable {
    FrameVariable { variable, visible, value }
}

/// All of them except `policy`.
const FRAME_VARIABLES: &[FrameVariable] = &[
    variable(TURN, From(Subject::Turn), |cx| Record::Turn(cx.state).into()),
    variable(REQUEST, From(Subject::Turn), |cx| Record::request(cx.request).into()),
    variable(("seq", T::Int), From(Subject::Turn), |cx| cx.seq.into()),
    variable(FRAME, From(Subject::Turn), |cx| cx.frame.into()),
    variable(("choice", T::Record(R::Choice)), From(Subject::Choice), |cx| {
        let choice = cx.moment.choice.and_then(|at| cx.state.choices.get(at));
        choice.map(|choice| Record::Choice(cx.state, choice)).into()
    }),
    variable(("item", T::Record(R::Item)), From(Subject::Item), |cx| cx.item().map(Record::Item).into()),
    variable(("part", T::Record(R::Part)), From(Subject::Part), |cx| cx.part().map(Record::Part).into()),
    variable(("text", T::Text), At(&[M::TextDelta, M::RefusalDelta, M::SummaryDelta, M::ThoughtDelta]), |cx| {
        (&cx.moment.text).into()
    }),
    // Null without log-probabilities.
    variable(("logprobs", T::List(R::Token)), At(&[M::TextDelta]), |cx| {
        cx.moment.logprobs.as_ref().map(|tokens| Value::list(tokens.iter().map(Record::Token))).into()
    }),
    // When a call opens: what is sent with it, by the policy `tool_first_delta_args`.
    variable(("args", T::Text), At(&[M::ToolOpen, M::ToolArgs]), |cx| (&cx.moment.text).into()),
    variable(("annotation", T::Record(R::Annotation)), At(&[M::Annotation]), |cx| {
        cx.part().and_then(|part| part.annotations.last()).map(Record::Annotation).into()
    }),
    // The index of the annotation in its part.
    variable(("ordinal", T::Int), At(&[M::Annotation]), |cx| {
        cx.part().map(|part| part.annotations.len() as i64 - 1).into()
    }),
    variable(FAULT, At(&[M::TurnFail]), |cx| cx.state.error.as_ref().map(Record::Fault).into()),
    variable(("usage", T::Record(R::Usage)), At(&[M::Usage]), |cx| cx.state.usage.as_ref().map(Record::Usage).into()),
];

fn visible_at(moment: M) -> impl Iterator<Item = &'static FrameVariable> {
    FRAME_VARIABLES.iter().filter(move |variable| match variable.visible {
        From(subject) => moment.subject() >= subject,
        At(moments) => moments.contains(&moment),
    })
}

/// The variables of a frame at this moment, in addition to `policy`.
pub fn variables_at(moment: M) -> impl Iterator<Item = Variable> {
    visible_at(moment).map(|visible| visible.variable)
}

/// The same variables, with their values.
pub fn frame_variables<'a>(cx: &FrameContext<'a>) -> impl Iterator<Item = (&'static str, Value<'a>)> {
    visible_at(cx.moment.kind).map(|visible| (visible.variable.0, (visible.value)(cx)))
}

impl<'a> FrameContext<'a> {
    fn item(&self) -> Option<&'a Item> {
        self.moment.item.and_then(|at| self.state.items.get(at))
    }

    fn part(&self) -> Option<&'a Part> {
        let item = self.item()?;
        let parts = match self.moment.kind {
            M::SummaryOpen | M::SummaryDelta | M::SummaryClose => &item.summaries,
            _ => &item.parts,
        };
        self.moment.part.and_then(|at| parts.get(at))
    }
}
