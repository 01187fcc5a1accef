//! A frame that was filled once, as constant bytes with holes. The interpreter makes it, with marks in place of what
//! changes; after that a frame is its bytes with the piece written between them, and its tree with the piece set in it,
//! for the schema to look at.

use crate::domain::{Moment, Tree};
use reframe_json::write_str;

pub struct Form {
    place: Place,
    tree: Tree,
    /// In the order of the bytes; `runs` has one more.
    holes: Vec<Hole>,
    runs: Vec<Vec<u8>>,
    /// The event name, as the framing writes it.
    pub event: Option<String>,
}

/// Where the constants of a form hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    choice: Option<usize>,
    item: Option<usize>,
    part: Option<usize>,
}

impl Place {
    pub fn of(moment: &Moment) -> Place {
        Place { choice: moment.choice, item: moment.item, part: moment.part }
    }
}

struct Hole {
    /// From the root of the tree: which entry or element.
    steps: Vec<usize>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Piece,
    /// Counts from here.
    Seq(u64),
}

/// Stand where a piece and a count will be. No client knows the turn's id before its stream has begun, so none can send
/// the same text.
#[derive(Clone, Debug)]
pub struct Marks {
    pub piece: String,
    pub seq: u64,
}

impl Marks {
    pub fn of(turn: &str) -> Marks {
        Marks { piece: format!("\u{f8ff}{turn}\u{f8ff}"), seq: 7_000_000_000_000_000 }
    }

    fn find(&self, tree: &Tree) -> Option<What> {
        match tree {
            Tree::Str(text) if *text == self.piece => Some(What::Piece),
            Tree::Num(n) => {
                n.as_u64().and_then(|n| n.checked_sub(self.seq)).filter(|o| *o <= u64::from(u16::MAX)).map(What::Seq)
            }
            _ => None,
        }
    }
}

impl Form {
    /// `tree` was filled with `marks`. `None`: a mark stands where it cannot be patched.
    pub fn new(place: Place, tree: Tree, marks: &Marks, event: Option<String>) -> Option<Form> {
        if event.as_ref().is_some_and(|e| e.contains(&marks.piece)) {
            return None;
        }
        let mut form = Form { place, tree: Tree::Null, holes: Vec::new(), runs: vec![Vec::new()], event };
        form.lay(&tree, marks, &mut Vec::new());
        form.tree = tree;
        Some(form)
    }

    pub fn fits(&self, place: Place) -> bool {
        self.place == place
    }

    fn lay(&mut self, tree: &Tree, marks: &Marks, steps: &mut Vec<usize>) {
        if let Some(what) = marks.find(tree) {
            self.holes.push(Hole { steps: steps.clone(), what });
            self.runs.push(Vec::new());
            return;
        }
        match tree {
            Tree::Map(entries) => {
                self.run(b"{");
                for (at, (key, value)) in entries.iter().enumerate() {
                    self.run(if at > 0 { b"," } else { b"" });
                    write_str(key, self.last());
                    self.run(b":");
                    steps.push(at);
                    self.lay(value, marks, steps);
                    steps.pop();
                }
                self.run(b"}");
            }
            Tree::List(items) => {
                self.run(b"[");
                for (at, item) in items.iter().enumerate() {
                    self.run(if at > 0 { b"," } else { b"" });
                    steps.push(at);
                    self.lay(item, marks, steps);
                    steps.pop();
                }
                self.run(b"]");
            }
            scalar => scalar.write(self.last()),
        }
    }

    fn last(&mut self) -> &mut Vec<u8> {
        if self.runs.is_empty() {
            self.runs.push(Vec::new());
        }
        let at = self.runs.len() - 1;
        &mut self.runs[at]
    }

    fn run(&mut self, bytes: &[u8]) {
        self.last().extend_from_slice(bytes);
    }

    /// The frame as a tree, with this piece and this count in it.
    pub fn set(&mut self, piece: &str, seq: u64) -> &Tree {
        for hole in &self.holes {
            let Some(leaf) = leaf(&mut self.tree, &hole.steps) else { continue };
            match (hole.what, &mut *leaf) {
                (What::Piece, Tree::Str(text)) => {
                    text.clear();
                    text.push_str(piece);
                }
                (What::Piece, _) => *leaf = Tree::from(piece),
                (What::Seq(from), _) => *leaf = Tree::from((seq + from) as i64),
            }
        }
        &self.tree
    }

    /// The frame as bytes: the same as its tree would be.
    pub fn write(&self, piece: &str, seq: u64, out: &mut Vec<u8>) {
        for (run, hole) in self.runs.iter().zip(self.holes.iter().map(Some).chain([None])) {
            out.extend_from_slice(run);
            match hole.map(|h| h.what) {
                Some(What::Piece) => write_str(piece, out),
                Some(What::Seq(from)) => Tree::from((seq + from) as i64).write(out),
                None => {}
            }
        }
    }
}

fn leaf<'t>(tree: &'t mut Tree, steps: &[usize]) -> Option<&'t mut Tree> {
    steps.iter().try_fold(tree, |node, at| match node {
        Tree::Map(entries) => entries.get_mut(*at).map(|(_, value)| value),
        Tree::List(items) => items.get_mut(*at),
        _ => None,
    })
}
