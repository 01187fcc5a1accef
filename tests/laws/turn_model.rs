//! Random turns under random policies, held against the model that `check` proves orders with.

use crate::events::Script;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use reframe::domain::policy::BUILT_IN;
use reframe::domain::{Ended, Event, Fault, FaultKind, Masks, Moment, MomentKind, Policies, ReasoningKind, Scope};
use reframe::order::turn_model::{Abilities, Choices, Life};
use reframe::turn::{Ids, Turn};

/// How a turn goes, apart from what the backend says.
#[derive(Clone, Debug)]
pub struct Way {
    pub policies: Policies,
    whole: bool,
    bridged: bool,
    begun: bool,
    /// A custom tool that travels as a function.
    wraps: bool,
    /// A form of the answer that travels as a tool.
    answers: bool,
    /// It falls silent after so many events, and is cut short.
    silent_after: Option<usize>,
    /// The moments that a reader of the order can see.
    sees: Vec<MomentKind>,
}

pub fn way() -> impl Strategy<Value = Way> {
    let values: Vec<_> = BUILT_IN.iter().filter(|p| !p.list).map(|p| select(p.values.to_vec())).collect();
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let sees = subsequence(MomentKind::ALL.to_vec(), 1..MomentKind::ALL.len());
    (values, flags, proptest::option::of(1usize..9), sees).prop_map(|(values, flags, silent_after, sees)| {
        let mut policies = Policies::default();
        for (policy, value) in BUILT_IN.iter().filter(|p| !p.list).zip(values) {
            policies.set(policy.name, value);
        }
        let (whole, bridged, begun, wraps, answers) = flags;
        Way { policies, whole, bridged: bridged && whole, begun, wraps, answers, silent_after, sees }
    })
}

/// A turn as it went.
#[derive(Debug)]
pub struct Lived {
    moments: Vec<Moment>,
    ended_well: bool,
    can: Abilities,
    choices: Choices,
}

impl Lived {
    pub fn by(script: &Script, way: &Way) -> Lived {
        let mut masks = Masks::default();
        if way.wraps {
            masks.custom.push("f".into());
        }
        if way.answers {
            masks.answer = Some("g".into());
        }
        let mut turn =
            Turn::new(way.policies.clone(), Ids::Counting(0), "m", script.n, 0).whole(way.whole).masks(masks);
        if way.bridged {
            turn.bridged();
        }
        let mut moments: Vec<Moment> = Vec::new();
        let mut tell = |_: &_, moment: &Moment| moments.push(moment.clone());
        if way.begun {
            turn.begin(&mut tell);
        }
        for (at, event) in script.events.iter().enumerate() {
            if way.silent_after == Some(at) {
                turn.cut_short(&mut tell);
            }
            turn.advance(event.clone(), &mut tell);
        }
        match &script.ended {
            Ended::Cut(why) => turn.fail(Fault::new(FaultKind::Truncated, why.as_str()), &mut tell),
            _ => turn.advance(Event::End, &mut tell),
        }
        let ended_well = moments.last().is_some_and(|m| m.kind == MomentKind::TurnEnd);
        let choices = if script.n > 1 { Choices::Several } else { Choices::One };
        Lived { moments, ended_well, can: abilities(script, way), choices }
    }

    /// The kinds of the moments that `of` takes, without the failure, which may come anywhere.
    fn told(&self, way: &Way, of: impl Fn(&Moment) -> bool) -> Vec<MomentKind> {
        let seen = |m: &&Moment| m.kind != MomentKind::TurnFail && way.sees.contains(&m.kind) && of(m);
        self.moments.iter().filter(seen).map(|m| m.kind).collect()
    }
}

/// No more than what this script says, so that the model has to be right about each of them.
fn abilities(script: &Script, way: &Way) -> Abilities {
    let mut can = Abilities::default();
    for event in &script.events {
        match event {
            Event::Text { .. } => can.text = true,
            Event::Refusal { .. } => can.refusal = true,
            Event::Annotation { .. } => can.annotations = true,
            Event::Reasoning { kind, encrypted, .. } => {
                can.sealed |= encrypted.is_some();
                can.summaries |= *kind == ReasoningKind::Summary;
                can.thoughts |= *kind == ReasoningKind::Raw;
            }
            Event::Tool { .. } => {
                can.tools = true;
                can.text |= way.answers;
            }
            Event::Usage { .. } => can.usage = true,
            _ => {}
        }
    }
    can
}

pub fn is_known(lived: &Lived, way: &Way) {
    let life = Life { policies: &way.policies, can: lived.can, choices: lived.choices };
    let sees = |moment: MomentKind| way.sees.contains(&moment);
    let known = |scope: Scope, told: Vec<Vec<MomentKind>>| {
        let model = life.model(scope, &sees);
        for told in told {
            let known = model.tells(&told, lived.ended_well);
            assert!(known, "{scope:?} of {:?}: {told:?}\n{lived:#?}", way.policies.words);
        }
    };
    known(Scope::Turn, vec![lived.told(way, |_| true)]);
    let choices = lived.moments.iter().filter_map(|m| m.choice).max().map_or(0, |last| last + 1);
    known(Scope::Choice, (0..choices).map(|choice| lived.told(way, |m| m.choice == Some(choice))).collect());
    let items = lived.moments.iter().filter_map(|m| m.item).max().map_or(0, |last| last + 1);
    known(Scope::Item, (0..items).map(|item| lived.told(way, |m| m.item == Some(item))).collect());
}
