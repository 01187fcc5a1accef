//! Random turns with random policies, compared with the model that `check` verifies orders with.

use super::events::Script;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use reframe::testing::domain::policy::{BUILT_IN, ItemsOverlap, ReasoningPolicy};
use reframe::testing::domain::{
    Event, Fault, FaultKind, Moment, MomentKind, Policies, ReasoningKind, Scope, StreamEnd, ToolAliases,
};
use reframe::testing::order::turn_model::{ChoiceCount, OutputKinds, TurnModel};
use reframe::testing::turn::{Ids, Turn};

/// The conditions of a turn besides the backend's events.
#[derive(Clone, Debug)]
pub struct TurnConditions {
    pub policies: Policies,
    single_body: bool,
    aggregated: bool,
    started: bool,
    /// A custom tool is sent as a function.
    wraps_custom_tool: bool,
    /// The response format is sent as a tool.
    format_as_tool: bool,
    /// The turn is truncated after this number of events.
    truncated_after: Option<usize>,
    /// The moments that the order contains.
    visible: Vec<MomentKind>,
}

pub fn conditions() -> impl Strategy<Value = TurnConditions> {
    let values: Vec<_> = BUILT_IN.iter().filter(|p| !p.list).map(|p| select(p.values.to_vec())).collect();
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let visible = subsequence(MomentKind::ALL.to_vec(), 1..MomentKind::ALL.len());
    (values, flags, proptest::option::of(1usize..9), visible).prop_map(|(values, flags, truncated_after, visible)| {
        let mut policies = Policies::default();
        for (policy, value) in BUILT_IN.iter().filter(|p| !p.list).zip(values) {
            policies.set(policy.name, value);
        }
        let (single_body, aggregated, started, wraps_custom_tool, format_as_tool) = flags;
        TurnConditions {
            policies,
            single_body,
            aggregated: aggregated && single_body,
            started,
            wraps_custom_tool,
            format_as_tool,
            truncated_after,
            visible,
        }
    })
}

/// The result of playing a script.
#[derive(Debug)]
pub struct PlayedTurn {
    moments: Vec<Moment>,
    ended_well: bool,
    output: OutputKinds,
    choices: ChoiceCount,
}

impl PlayedTurn {
    pub fn of(script: &Script, conditions: &TurnConditions) -> PlayedTurn {
        let mut tool_aliases = ToolAliases::default();
        if conditions.wraps_custom_tool {
            tool_aliases.custom.push("f".into());
        }
        if conditions.format_as_tool {
            tool_aliases.answer = Some("g".into());
        }
        let mut turn = Turn::new(conditions.policies.clone(), Ids::Counting(0), "m", script.n, 0)
            .single_body(conditions.single_body)
            .tool_aliases(tool_aliases);
        if conditions.aggregated {
            turn.mark_aggregated();
        }
        let mut moments: Vec<Moment> = Vec::new();
        let mut record = |_: &_, moment: &Moment| moments.push(moment.clone());
        if conditions.started {
            turn.begin(&mut record);
        }
        for (at, event) in script.events.iter().enumerate() {
            if conditions.truncated_after == Some(at) {
                turn.truncate(&mut record);
            }
            turn.advance(event.clone(), &mut record);
        }
        match &script.ended {
            StreamEnd::Disconnected(why) => turn.fail(Fault::new(FaultKind::Truncated, why.as_str()), &mut record),
            _ => turn.advance(Event::End, &mut record),
        }
        let ended_well = moments.last().is_some_and(|m| m.kind == MomentKind::TurnEnd);
        let choices = if script.n > 1 { ChoiceCount::Several } else { ChoiceCount::One };
        PlayedTurn { moments, ended_well, output: output_kinds(script, conditions), choices }
    }

    /// The kinds of the visible moments that match `of`, without failures, which may occur anywhere.
    fn visible_kinds(&self, conditions: &TurnConditions, of: impl Fn(&Moment) -> bool) -> Vec<MomentKind> {
        let is_visible = |m: &&Moment| m.kind != MomentKind::TurnFail && conditions.visible.contains(&m.kind) && of(m);
        self.moments.iter().filter(is_visible).map(|m| m.kind).collect()
    }
}

/// Exactly the kinds of output in this script, so that the model is tested for each of them.
fn output_kinds(script: &Script, conditions: &TurnConditions) -> OutputKinds {
    let mut output = OutputKinds::default();
    for event in &script.events {
        match event {
            Event::Text { .. } => output.text = true,
            Event::Refusal { .. } => output.refusal = true,
            Event::Annotation { .. } => output.annotations = true,
            Event::Reasoning { kind, encrypted, .. } => {
                output.encrypted_reasoning |= encrypted.is_some();
                output.summaries |= *kind == ReasoningKind::Summary;
                output.thoughts |= *kind == ReasoningKind::Raw;
            }
            Event::Tool { .. } => {
                output.tools = true;
                output.text |= conditions.format_as_tool;
            }
            Event::Usage { .. } => output.usage = true,
            _ => {}
        }
    }
    output
}

/// Policy `items_overlap: serial`: a choice has at most one open item. Policy `reasoning: drop`: no moment is about
/// reasoning. Returns how many items were opened under the first, and the number of moments if the backend sent reasoning
/// under the second.
pub fn assert_policies_apply(played: &PlayedTurn, conditions: &TurnConditions) -> usize {
    use MomentKind as M;
    let serial = conditions.policies.items_overlap == ItemsOverlap::Serial;
    let dropped = conditions.policies.reasoning == ReasoningPolicy::Drop;
    let mut opened = 0;
    let mut open: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for moment in &played.moments {
        let item = (moment.choice, moment.item);
        match moment.kind {
            M::MessageOpen | M::ReasoningOpen | M::ToolOpen => {
                open.push(item);
                opened += 1;
                let count = open.iter().filter(|(choice, _)| *choice == moment.choice).count();
                assert!(!serial || count == 1, "{count} items are open\n{played:#?}");
            }
            M::MessageClose | M::ReasoningClose | M::ToolClose => open.retain(|other| *other != item),
            _ => {}
        }
        assert!(
            !dropped || !matches!(moment.kind, M::ReasoningOpen | M::SummaryDelta | M::ThoughtDelta),
            "{played:#?}"
        );
    }
    let serial_items = if serial { opened } else { 0 };
    let reasoning = played.output.summaries || played.output.thoughts;
    serial_items + if dropped && reasoning { played.moments.len() } else { 0 }
}

/// Returns the number of visible moments, in all scopes.
pub fn assert_accepted(played: &PlayedTurn, conditions: &TurnConditions) -> usize {
    let turn_model = TurnModel { policies: &conditions.policies, output: played.output, choices: played.choices };
    let visible = |moment: MomentKind| conditions.visible.contains(&moment);
    let mut compared = 0;
    let mut known = |scope: Scope, kinds: Vec<Vec<MomentKind>>| {
        let model = turn_model.model(scope, &visible);
        for kinds in kinds {
            let known = model.accepts_moments(&kinds, played.ended_well);
            assert!(known, "{scope:?} of {:?}: {kinds:?}\n{played:#?}", conditions.policies.values);
            compared += kinds.len();
        }
    };
    known(Scope::Turn, vec![played.visible_kinds(conditions, |_| true)]);
    let choices = played.moments.iter().filter_map(|m| m.choice).max().map_or(0, |last| last + 1);
    known(
        Scope::Choice,
        (0..choices).map(|choice| played.visible_kinds(conditions, |m| m.choice == Some(choice))).collect(),
    );
    let items = played.moments.iter().filter_map(|m| m.item).max().map_or(0, |last| last + 1);
    known(Scope::Item, (0..items).map(|item| played.visible_kinds(conditions, |m| m.item == Some(item))).collect());
    compared
}
