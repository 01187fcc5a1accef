//! What a schema says about a tree, in plain words.

use crate::domain::Tree;
use reframe_json::Breach;

pub fn of(breach: &Breach, tree: &Tree) -> String {
    let path = dotted(&breach.pointer);
    let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let whole = || if path.is_empty() { "this".to_owned() } else { format!("`{path}`") };
    match breach.keyword.as_str() {
        "required" => format!("{} is missing{place}", names(&breach.message, '"')),
        "additionalProperties" | "unevaluatedProperties" => {
            format!(
                "{} does not belong{}",
                names(&breach.message, '\''),
                if path.is_empty() { " here" } else { &place }
            )
        }
        "type" => {
            let found = at(tree, &breach.pointer).map_or("nothing", Tree::type_name);
            let expected = breach.message.rsplit_once(" of type").map_or("", |(_, e)| e.trim_start_matches('s'));
            format!(
                "{} must be of type {}, and is of type {found}",
                whole(),
                expected.trim().replace('"', "").replace(", ", " or ")
            )
        }
        "const" => {
            let expected = breach.message.trim_end_matches(" was expected");
            let found = at(tree, &breach.pointer).map(Tree::to_json).unwrap_or_default();
            format!("{} must be {expected}, and is {}", whole(), brief(&found))
        }
        // Which of the alternatives was meant is not known; that none is met is all there is to say.
        "anyOf" | "oneOf" => {
            let found = at(tree, &breach.pointer).map(Tree::to_json).unwrap_or_default();
            format!("{} cannot be {}", whole(), brief(&found))
        }
        _ if path.is_empty() => breach.message.clone(),
        _ => format!("`{path}`: {}", breach.message),
    }
}

/// The same, with the value where the sentence names its type only: for whoever may see what was said.
pub fn with_value(breach: &Breach, tree: &Tree) -> String {
    let sentence = of(breach, tree);
    match at(tree, &breach.pointer).filter(|_| breach.keyword == "type") {
        Some(value) => format!("{sentence} ({})", brief(&value.to_json())),
        None => sentence,
    }
}

/// `/choices/0/delta` → `choices[0].delta`
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for step in steps(pointer) {
        match step.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(&step),
            Err(_) => path.push_str(&format!(".{step}")),
        }
    }
    path
}

pub fn steps(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
}

/// What stands at a pointer.
pub fn at<'t>(tree: &'t Tree, pointer: &str) -> Option<&'t Tree> {
    steps(pointer).try_fold(tree, |node, step| match step.parse::<usize>() {
        Ok(index) if node.as_list().is_some() => node.at(index),
        _ => node.get(&step),
    })
}

/// The names that stand in quotes.
fn names(message: &str, quote: char) -> String {
    let quoted: Vec<String> = message.split(quote).skip(1).step_by(2).map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

fn brief(json: &str) -> String {
    const MOST: usize = 40;
    if json.chars().count() <= MOST { json.to_owned() } else { json.chars().take(MOST).chain(['…']).collect() }
}
