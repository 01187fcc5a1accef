//! The words that rules may emit, with their fields. Backends emit events; dialects emit the parts of a request, and
//! what is observed in a capture of their own frames.

use super::{CallKind, Finish, Merge, ReasoningKind};

/// The type of a field that a rule fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string; numbers and booleans are written out.
    Text,
    Int,
    Number,
    Bool,
    Word(&'static [&'static str]),
    /// One string or a list of them.
    Texts,
    /// Anything, passed on with its key order and exact numbers.
    Json,
    /// A list of content parts, made by the named rules after `use:`.
    Parts,
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
}

/// One word of a vocabulary.
#[derive(Debug)]
pub struct Word {
    pub name: &'static str,
    /// For people.
    pub about: &'static str,
    pub fields: &'static [Field],
    /// When all of these are absent there is nothing to say, and nothing is emitted.
    /// Empty: the word is always said.
    pub payload: &'static [&'static str],
}

#[derive(Debug)]
pub struct Vocabulary {
    /// What one of its words is called in a diagnostic.
    pub noun: &'static str,
    /// In a stream an empty piece says nothing; in a request an empty message was meant.
    pub empty_is_nothing: bool,
    pub words: &'static [Word],
}

impl Vocabulary {
    pub fn find(&self, name: &str) -> Option<&'static Word> {
        self.words.iter().find(|w| w.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.words.iter().map(|w| w.name)
    }
}

const fn f(name: &'static str, kind: Kind) -> Field {
    Field { name, kind }
}

const CHOICE: Field = f("choice", Kind::Int);
const ITEM: Field = f("item", Kind::Text);
const PART: Field = f("part", Kind::Int);
const DELTA: Field = f("delta", Kind::Text);
const WHOLE: Field = f("whole", Kind::Text);

/// What an annotation points at.
pub const ANNOTATION_KINDS: &[&str] = &["url", "file", "other"];

pub static EVENTS: Vocabulary = Vocabulary {
    noun: "event",
    empty_is_nothing: true,
    words: &[
        Word {
            name: "start",
            about: "Who answers. Before anything was told, `model` replaces the model that was asked for.",
            fields: &[f("id", Kind::Text), f("model", Kind::Text), f("created", Kind::Int)],
            payload: &["id", "model", "created"],
        },
        Word {
            name: "text",
            about: "A piece of text; `whole` is a snapshot of all so far, of which only what is new counts.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        Word {
            name: "refusal",
            about: "A piece of a refusal; `whole` is a snapshot of all so far.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        Word {
            name: "reasoning",
            about: "Thoughts; `part` numbers the summaries.",
            fields: &[
                CHOICE,
                ITEM,
                f("kind", Kind::Word(ReasoningKind::WORDS)),
                PART,
                DELTA,
                WHOLE,
                f("encrypted", Kind::Text),
            ],
            payload: &["delta", "whole", "encrypted"],
        },
        Word {
            name: "annotation",
            about: "A citation; `value` is any JSON, for what has no field of its own.",
            fields: &[
                CHOICE,
                ITEM,
                f("kind", Kind::Word(ANNOTATION_KINDS)),
                f("url", Kind::Text),
                f("title", Kind::Text),
                f("file", Kind::Text),
                f("name", Kind::Text),
                f("start", Kind::Int),
                f("end", Kind::Int),
                f("index", Kind::Int),
                f("value", Kind::Json),
            ],
            payload: &["url", "file", "value"],
        },
        Word {
            name: "logprobs",
            about: "The log-probabilities of the text that comes next.",
            fields: &[CHOICE, ITEM, f("value", Kind::Json)],
            payload: &["value"],
        },
        Word {
            name: "tool",
            about: "A piece of a call; `key` is whatever names the call in this backend.",
            fields: &[
                CHOICE,
                f("key", Kind::Text),
                f("id", Kind::Text),
                f("name", Kind::Text),
                f("kind", Kind::Word(CallKind::WORDS)),
                f("arguments", Kind::Text),
                WHOLE,
            ],
            payload: &["id", "name", "arguments", "whole"],
        },
        Word {
            name: "batch",
            about: "The calls with these ids are complete.",
            fields: &[CHOICE, f("ids", Kind::Texts)],
            payload: &["ids"],
        },
        // Without a name it closes every open call of the choice.
        Word {
            name: "close",
            about: "This item, or this call (by key or id), is complete.",
            fields: &[CHOICE, ITEM, f("key", Kind::Text)],
            payload: &[],
        },
        Word {
            name: "usage",
            about: "Tokens, as far as the backend counted them.",
            fields: &[
                f("input", Kind::Int),
                f("output", Kind::Int),
                f("total", Kind::Int),
                f("cached", Kind::Int),
                f("cache_write", Kind::Int),
                f("reasoning", Kind::Int),
                f("merge", Kind::Word(Merge::WORDS)),
            ],
            payload: &["input", "output", "total", "cached", "cache_write", "reasoning"],
        },
        Word {
            name: "finish",
            about: "Why the choice ended; without `choice` it ends all that are open.",
            fields: &[CHOICE, f("reason", Kind::Word(Finish::WORDS))],
            payload: &["reason"],
        },
        Word {
            name: "fault",
            about: "An error; `final: false` when the backend goes on by itself.",
            fields: &[
                f("message", Kind::Text),
                f("code", Kind::Text),
                f("param", Kind::Text),
                f("status", Kind::Int),
                f("retry_after", Kind::Int),
                f("final", Kind::Bool),
            ],
            payload: &[],
        },
        Word {
            name: "end",
            about: "Nothing follows. Not needed where the framing has an end marker or the bytes end.",
            fields: &[],
            payload: &[],
        },
    ],
};

pub static ITEMS: Vocabulary = Vocabulary {
    noun: "request item",
    empty_is_nothing: false,
    words: &[
        Word {
            name: "message",
            about: "What somebody said: `text`, or `parts`.",
            fields: &[f("role", Kind::Text), f("text", Kind::Text), f("parts", Kind::Parts)],
            payload: &["text", "parts"],
        },
        Word {
            name: "call",
            about: "A call that the model made earlier.",
            fields: &[
                f("id", Kind::Text),
                f("name", Kind::Text),
                f("kind", Kind::Word(CallKind::WORDS)),
                f("arguments", Kind::Text),
            ],
            payload: &["id", "name", "arguments"],
        },
        Word {
            name: "result",
            about: "What a call came to.",
            fields: &[
                f("call_id", Kind::Text),
                f("text", Kind::Text),
                f("parts", Kind::Parts),
                f("failed", Kind::Bool),
            ],
            payload: &[],
        },
        Word {
            name: "reasoning",
            about: "Earlier thoughts, given back.",
            fields: &[f("id", Kind::Text), f("summaries", Kind::Texts), f("encrypted", Kind::Text)],
            payload: &["id", "summaries", "encrypted"],
        },
        // An item of a kind that only a backend of the same dialect knows.
        Word {
            name: "other",
            about: "An item of a kind that only a backend of the same dialect knows.",
            fields: &[f("kind", Kind::Text), f("raw", Kind::Json)],
            payload: &["raw"],
        },
    ],
};

pub static PARTS: Vocabulary = Vocabulary {
    noun: "content part",
    empty_is_nothing: false,
    words: &[
        Word { name: "text", about: "A part that is text.", fields: &[f("text", Kind::Text)], payload: &["text"] },
        Word {
            name: "image",
            about: "A part that is an image.",
            fields: &[f("url", Kind::Text), f("detail", Kind::Text)],
            payload: &["url"],
        },
        Word {
            name: "file",
            about: "A part that is a file.",
            fields: &[f("id", Kind::Text), f("name", Kind::Text), f("data", Kind::Text), f("url", Kind::Text)],
            payload: &["id", "data", "url"],
        },
        Word {
            name: "audio",
            about: "A part that is sound.",
            fields: &[f("data", Kind::Text), f("format", Kind::Text)],
            payload: &["data"],
        },
        Word {
            name: "refusal",
            about: "A part that is a refusal.",
            fields: &[f("text", Kind::Text)],
            payload: &["text"],
        },
    ],
};

pub const TOOL_KINDS: &[&str] = &["function", "custom", "other"];

pub static TOOLS: Vocabulary = Vocabulary {
    noun: "tool",
    empty_is_nothing: false,
    words: &[Word {
        name: "tool",
        about: "A tool that the model may call.",
        fields: &[
            f("kind", Kind::Word(TOOL_KINDS)),
            f("type", Kind::Text),
            f("name", Kind::Text),
            f("description", Kind::Text),
            f("parameters", Kind::Json),
            f("strict", Kind::Bool),
            f("raw", Kind::Json),
        ],
        payload: &[],
    }],
};

pub const CHOICE_MODES: &[&str] = &["auto", "none", "required", "named"];
pub const FORMAT_KINDS: &[&str] = &["text", "json_object", "json_schema"];

/// The scalars of a request. `tool_choice` and `format` have fields of their own.
pub const SCALARS: &[Field] = &[
    f("model", Kind::Text),
    f("stream", Kind::Bool),
    f("usage", Kind::Bool),
    f("n", Kind::Int),
    f("max_tokens", Kind::Int),
    f("temperature", Kind::Number),
    f("top_p", Kind::Number),
    f("stop", Kind::Texts),
    f("seed", Kind::Int),
    f("effort", Kind::Text),
    f("parallel", Kind::Bool),
    f("metadata", Kind::Json),
    f("user", Kind::Text),
    f("previous", Kind::Text),
];

pub const TOOL_CHOICE: &[Field] = &[f("mode", Kind::Word(CHOICE_MODES)), f("name", Kind::Text)];

pub const FORMAT: &[Field] = &[
    f("kind", Kind::Word(FORMAT_KINDS)),
    f("name", Kind::Text),
    f("schema", Kind::Json),
    f("strict", Kind::Bool),
    f("description", Kind::Text),
];

/// What a piece of an answer is a piece of.
pub const STRANDS: &[&str] = &["text", "refusal", "arguments", "summary", "thought"];

const ID: Field = f("id", Kind::Text);
const INDEX: Field = f("index", Kind::Int);
const STRAND: Field = f("kind", Kind::Word(STRANDS));
/// An item is known by its id, by its index, or by both; the rest must never change.
const ITEM_FACTS: &[Field] = &[CHOICE, ID, INDEX, f("kind", Kind::Text), f("call", Kind::Text), f("name", Kind::Text)];

/// What one frame of a capture says, in the words that the laws of a stream are about.
pub static OBSERVATIONS: Vocabulary = Vocabulary {
    noun: "observation",
    empty_is_nothing: true,
    words: &[
        Word {
            name: "turn",
            about: "whose frame it is: id, model and time never change within a stream",
            fields: &[ID, f("model", Kind::Text), f("created", Kind::Int)],
            payload: &["id", "model", "created"],
        },
        Word { name: "number", about: "the frame's number", fields: &[f("value", Kind::Int)], payload: &["value"] },
        Word { name: "begin", about: "a choice begins", fields: &[CHOICE], payload: &[] },
        Word { name: "open", about: "an item begins", fields: ITEM_FACTS, payload: &["id", "index"] },
        Word {
            name: "open_part",
            about: "a part of an item begins",
            fields: &[CHOICE, ID, INDEX, PART, STRAND],
            payload: &["part"],
        },
        Word {
            name: "piece",
            about: "a piece of text, arguments or thoughts",
            fields: &[CHOICE, ID, INDEX, PART, STRAND, f("text", Kind::Text)],
            payload: &["text"],
        },
        // Always said: a whole that is empty is one, too.
        Word {
            name: "whole",
            about: "all of a part, as it is told at its end",
            fields: &[CHOICE, ID, INDEX, PART, STRAND, f("text", Kind::Text)],
            payload: &[],
        },
        Word {
            name: "close_part",
            about: "a part is over",
            fields: &[CHOICE, ID, INDEX, PART, STRAND],
            payload: &["part"],
        },
        Word { name: "close", about: "an item is over", fields: ITEM_FACTS, payload: &["id", "index"] },
        // An item that is told once more, when all is over.
        Word {
            name: "item",
            about: "an item, told once more when all is over",
            fields: ITEM_FACTS,
            payload: &["id", "index"],
        },
        Word {
            name: "finish",
            about: "why a choice ended",
            fields: &[CHOICE, f("reason", Kind::Text)],
            payload: &["reason"],
        },
        Word { name: "usage", about: "what was counted", fields: &[f("total", Kind::Int)], payload: &["total"] },
        Word { name: "end", about: "the stream is complete", fields: &[f("items", Kind::Int)], payload: &[] },
        Word { name: "fail", about: "the stream failed", fields: &[], payload: &[] },
        // A mistake that one frame shows by itself, in the mapping's own words.
        Word {
            name: "wrong",
            about: "a mistake that one frame shows by itself",
            fields: &[f("message", Kind::Text)],
            payload: &["message"],
        },
    ],
};
