//! `reframe explain --layers`: the layer and the line that each route, model, backend and policy comes from, and what
//! layers override.

use crate::cli::columns::aligned;
use crate::mapping::Plan;
use crate::mapping::provenance::origins::{layers, origins};

pub fn describe(plan: &Plan) -> String {
    let sources = &plan.sources;
    let mut text = format!("layers, the last one wins: {}\n\n", layers(sources).join(", "));
    let mut rows = vec![["kind", "name", "is", "layer", "defined at"].map(str::to_owned)];
    for origin in origins(plan) {
        let name = match &origin.route {
            Some(route) => format!("{} at {route}", origin.name),
            None => origin.name.clone(),
        };
        let layer = origin.layer(sources).to_owned();
        let place = origin.place(sources).unwrap_or_default();
        rows.push([origin.kind.name().to_owned(), name, origin.value, layer, place]);
    }
    text.push_str(&aligned(&rows, usize::MAX));
    if !plan.overrides.is_empty() {
        text.push('\n');
    }
    for one in &plan.overrides {
        let (by, of) = (sources.show(one.by), sources.show(one.of));
        text.push_str(&format!("override: {}: {by} {} {of}\n", one.what, one.action.name()));
    }
    text
}
