//! Which policies decided what a frame looks like: those that its expressions read, and those behind the variables and
//! the moment that it tells.

use crate::diagnostics::Span;
use crate::domain::MomentKind;
use crate::domain::policy::{BUILT_IN, Shows};
use crate::mapping::config::dialect::{Content, DialectPlan, FramePlan};
use crate::mapping::language::variables_read::Reads;
use crate::mapping::policy::resolve::{Resolved, Setting};

/// A policy that had a say in a frame.
#[derive(Debug)]
pub struct Deciding<'r> {
    pub name: String,
    pub value: String,
    pub how: How,
    /// Who set it; nobody where it has its default.
    pub set: Option<&'r Setting>,
    /// Is it what holds when nobody says anything?
    pub default: bool,
}

/// How a policy has a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `when:` asks it: without it the frame might not be there.
    When,
    /// The skeleton asks it.
    Shape,
    /// It chose the value of a variable that is told, or whether and when the moment comes.
    Behind,
}

/// `resolved`: of the client that is meant. Two clients may get one dialect for different reasons, and what is compiled
/// knows those of the first only.
pub fn deciding<'r>(resolved: &'r Resolved, frame: &FramePlan, moment: MomentKind) -> Vec<Deciding<'r>> {
    let mut names: Vec<(String, How)> = Vec::new();
    let when = frame.when.as_ref().map(Reads::of_expr).unwrap_or_default();
    for name in &frame.policies {
        let how = if when.contains(&format!("policy.{name}")) { How::When } else { How::Shape };
        names.push((name.clone(), how));
    }
    let (Content::Data(skeleton) | Content::Text(skeleton) | Content::Comment(skeleton)) = &frame.content;
    let reads = Reads::of(frame.when.as_ref(), skeleton);
    // Those of JSON answers decide no frame of a stream.
    for spec in BUILT_IN.iter().filter(|spec| !spec.name.starts_with("stream2json.")) {
        let behind = match spec.shows {
            Shows::In(variables) => reads.all().any(|read| variables.iter().any(|v| touches(read, v))),
            Shows::At(moments) => moments.contains(&moment),
            Shows::WhereRead | Shows::Anywhere => false,
        };
        if behind && !names.iter().any(|(name, _)| name == spec.name) {
            names.push((spec.name.to_owned(), How::Behind));
        }
    }
    names.into_iter().map(|(name, how)| of(resolved, name, how)).collect()
}

/// The policies that turned the frames of a moment off, and the line of each frame.
pub fn denying<'r>(
    resolved: &'r Resolved,
    dialect: &DialectPlan,
    moment: MomentKind,
) -> Vec<(Span, Vec<Deciding<'r>>)> {
    let denied = dialect.denied.iter().filter(|d| d.moment == moment);
    let of = |name: &String| of(resolved, name.clone(), How::When);
    denied.map(|d| (d.span, d.policies.iter().map(of).collect())).collect()
}

/// `turn.usage.input` is in `turn.usage`, and `turn.usage` holds it.
fn touches(read: &str, variable: &str) -> bool {
    let below = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    below(read, variable) || (read.contains('.') && below(variable, read))
}

fn of(resolved: &Resolved, name: String, how: How) -> Deciding<'_> {
    let set = resolved.settings.iter().rev().find(|s| s.name == name);
    let value = match (resolved.policies.word(&name), set) {
        (Some(word), _) => word.as_str().unwrap_or_default().to_owned(),
        (None, Some(setting)) => setting.value.clone(),
        (None, None) => resolved.policies.finish_precedence.iter().map(|f| f.word()).collect::<Vec<_>>().join(", "),
    };
    let own = resolved.own.iter().find(|p| p.name == name).and_then(|p| p.values.first());
    let built_in = BUILT_IN.iter().find(|p| p.name == name);
    let default = match (own, built_in) {
        (Some(first), _) => *first == value,
        (None, Some(spec)) if !spec.list => spec.values.first() == Some(&value.as_str()),
        (None, Some(_) | None) => set.is_none(),
    };
    Deciding { name, value, how, set, default }
}
