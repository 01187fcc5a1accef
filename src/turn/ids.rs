//! Ids generated from a seed. The core uses no other randomness, so a turn can be reproduced exactly.

#[derive(Clone, Debug)]
pub enum Ids {
    /// 24 base-62 characters each, from a generator that starts at the seed.
    Seeded(u128),
    /// `1`, `2`, `3`: for readable golden files.
    Counting(u64),
}

const LENGTH: usize = 24;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// True if an id of the backend can be used in frames unchanged.
pub(super) fn is_usable_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
}

/// A turn's id without the prefixes of the backend's API: up to two words that end in `_` or `-`. Dialects add their own.
pub(super) fn without_prefixes(id: &str) -> &str {
    (0..2).fold(id, |id, _| {
        let letters = id.bytes().take_while(u8::is_ascii_lowercase).count();
        let is_prefix = (2..=8).contains(&letters) && matches!(id.as_bytes().get(letters), Some(b'_' | b'-'));
        id.get(letters + 1..).filter(|rest| is_prefix && !rest.is_empty()).unwrap_or(id)
    })
}

impl Ids {
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> String {
        match self {
            Ids::Counting(n) => {
                *n += 1;
                n.to_string()
            }
            Ids::Seeded(state) => (0..LENGTH)
                .map(|_| {
                    // A 128-bit linear congruential step; the high bits are the good ones.
                    *state = state
                        .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645)
                        .wrapping_add(0x5851_F42D_4C95_7F2D_1405_7B7E_F767_814F);
                    let high = (*state >> 96) as u64;
                    DIGITS[((high * DIGITS.len() as u64) >> 32) as usize] as char
                })
                .collect(),
        }
    }
}
