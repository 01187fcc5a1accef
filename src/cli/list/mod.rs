//! `reframe list`: what the mapping language offers, and what a set defines.

mod policies;
mod set;
mod variables;

use super::columns::aligned;
use super::{EXIT_OK, load_plan, print_report};
use crate::diagnostics::{Code, Phase};
use crate::domain::emit::{EVENTS, EmitKind};
use crate::domain::variables::variables_at;
use crate::domain::{MomentKind, NamedEnum};
use crate::mapping::Overrides;
use crate::mapping::language::field::Conversion;
use crate::mapping::language::filters::{FILTERS, TESTS};
use crate::reload::Layers;
use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct ListArgs {
    /// What to list; without it, the subjects
    #[arg(value_enum)]
    subject: Option<ListSubject>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ListSubject {
    /// The backend files of the set
    Backends,
    /// The dialects of the set
    Dialects,
    /// The profiles of the set
    Profiles,
    /// Every policy: its values, what it affects, and where the set changes it
    Policies,
    /// What the rules of a backend may emit, with the fields of each event
    Events,
    /// The moments of a turn, with the variables that a frame sees at each
    Moments,
    /// The variables of expressions: the fields of each, and where they are visible
    Variables,
    /// The filters and tests of expressions
    Filters,
    /// The warnings of `reframe check`
    Lints,
    /// The conversions of fields in rules
    Conversions,
}

pub fn run(args: &ListArgs, layers: &Layers, overrides: &Overrides) -> Result<u8, String> {
    let plan = || load_plan(layers, overrides);
    let text = match args.subject {
        None => subjects(),
        Some(ListSubject::Backends) => set::backends(&plan()?),
        Some(ListSubject::Dialects) => set::dialects(&plan()?),
        Some(ListSubject::Profiles) => set::profiles(&plan()?),
        Some(ListSubject::Policies) => policies::describe(&plan()?),
        Some(ListSubject::Events) => events(),
        Some(ListSubject::Moments) => moments(),
        Some(ListSubject::Variables) => variables::describe(),
        Some(ListSubject::Filters) => filters(),
        Some(ListSubject::Lints) => lints(),
        Some(ListSubject::Conversions) => conversions(),
    };
    print_report(&text, EXIT_OK)
}

fn subjects() -> String {
    let row = |subject: &ListSubject| {
        let value = subject.to_possible_value()?;
        Some([value.get_name().to_owned(), value.get_help().map(ToString::to_string).unwrap_or_default()])
    };
    let rows: Vec<[String; 2]> = ListSubject::value_variants().iter().filter_map(row).collect();
    aligned(&rows, usize::MAX)
}

fn events() -> String {
    let row = |kind: &EmitKind| {
        let payload = |name: &str| if kind.payload.contains(&name) { "*" } else { "" };
        let fields: Vec<String> = kind.fields.iter().map(|f| format!("{}{}", f.name, payload(f.name))).collect();
        [kind.name.to_owned(), fields.join(", "), one_line(kind.description)]
    };
    let mut rows = vec![["event", "fields", "meaning"].map(str::to_owned)];
    rows.extend(EVENTS.kinds.iter().map(row));
    aligned(&rows, usize::MAX) + "\n*: without any of these fields the event is not emitted\n"
}

fn moments() -> String {
    let mut rows = vec![["moment", "variables", "when"].map(str::to_owned)];
    for (moment, about) in MomentKind::ALL.iter().zip(MomentKind::VALUE_DESCRIPTIONS) {
        let variables: Vec<&str> = variables_at(*moment).map(|(name, _)| name).chain(["policy"]).collect();
        rows.push([moment.name().to_owned(), variables.join(", "), one_line(about)]);
    }
    aligned(&rows, usize::MAX)
}

fn filters() -> String {
    let row = |(name, about): &(&str, &str), kind: &str| [(*name).to_owned(), kind.to_owned(), (*about).to_owned()];
    let mut rows = vec![["name", "kind", "meaning"].map(str::to_owned)];
    rows.extend(FILTERS.iter().map(|filter| row(filter, "filter")));
    rows.extend(TESTS.iter().map(|test| row(test, "test")));
    aligned(&rows, usize::MAX)
}

fn lints() -> String {
    let lints = Code::ALL.iter().filter(|code| code.phase() == Phase::Lint);
    let mut rows = vec![["code", "severity", "meaning"].map(str::to_owned)];
    rows.extend(lints.map(|code| [code.as_str(), code.severity().as_str(), code.about()].map(str::to_owned)));
    aligned(&rows, usize::MAX) + "\n`reframe check --explain CODE` explains each\n"
}

fn conversions() -> String {
    let mut rows = vec![["conversion", "meaning"].map(str::to_owned)];
    let all = Conversion::NAMES.iter().zip(Conversion::VALUE_DESCRIPTIONS);
    rows.extend(all.map(|(name, about)| [(*name).to_owned(), one_line(about)]));
    aligned(&rows, usize::MAX)
}

/// A doc comment without its line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
