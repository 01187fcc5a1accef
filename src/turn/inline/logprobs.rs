//! Log-probabilities of text that is searched for blocks. They are sent with the text of their tokens; those of tags and
//! of the content of blocks are dropped.

use crate::domain::{Logprobs, TokenLogprob};
use std::collections::VecDeque;
use std::mem::size_of;

#[derive(Debug, Default)]
pub(super) struct HeldLogprobs {
    /// Of the next text delta.
    next: Logprobs,
    /// The position of a token in the text of the choice, with what it costs.
    tokens: VecDeque<(usize, TokenLogprob)>,
    pub bytes: usize,
}

impl HeldLogprobs {
    /// Log-probabilities arrive before their text, and replace those that still wait for text.
    pub fn wait(&mut self, logprobs: Logprobs) {
        self.bytes -= self.next.heap_bytes();
        self.bytes += logprobs.heap_bytes();
        self.next = logprobs;
    }

    /// Their text has arrived, from position `start` to `end`. Tokens that are longer than the text belong to its end.
    pub fn arrive(&mut self, start: usize, end: usize) {
        if self.next.is_empty() {
            return;
        }
        let arrived = std::mem::take(&mut self.next);
        self.bytes -= arrived.heap_bytes();
        let mut at = start;
        for token in arrived.tokens.iter() {
            self.bytes += token_bytes(token);
            self.tokens.push_back((at.min(end.saturating_sub(1)), token.clone()));
            at += token.token.as_str().map_or(0, str::len);
        }
    }

    /// Those of the text from `start` to `end`. Earlier ones belong to no text.
    pub fn take(&mut self, start: usize, end: usize) -> Option<Logprobs> {
        let mut tokens = Vec::new();
        while self.tokens.front().is_some_and(|(at, _)| *at < end) {
            let Some((at, token)) = self.tokens.pop_front() else { break };
            self.bytes -= token_bytes(&token);
            if at >= start {
                tokens.push(token);
            }
        }
        (!tokens.is_empty()).then(|| Logprobs { tokens: tokens.into(), malformed: 0 })
    }
}

fn token_bytes(token: &TokenLogprob) -> usize {
    size_of::<(usize, TokenLogprob)>() + token.heap_bytes()
}
